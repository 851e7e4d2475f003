/* SPDX-License-Identifier: Apache-2.0 */
/* A team: any group of leased workers that runs one job together. The leader writes one job pointer into each member's
 * mailbox, takes part itself, and returns when all have finished; forming, running and dissolving a team of two around
 * an empty job takes under 250 ns.
 *
 * During a run each worker that leads no team polls its mailbox (team_poll) between its own polls, in the executor loop
 * of the scheduler, so any worker can be leader now and member a moment later.
 *
 * A leader without members may leave a phase open: it is cut into pieces, which the leader takes in order, and workers
 * that have nothing to do take some too (team_join). Nobody is waited for who has not taken one. */
#ifndef MACHINE_TEAM_H
#define MACHINE_TEAM_H

#include "machine/workers.h"

#include <stdatomic.h>

struct team;

/* What members execute: called once by every member with its index (leader 0) and the width. */
typedef void (*team_function)(void *job, struct team *team, int member, int width);

/* What runs a piece of an open phase, once each, on any worker. */
typedef void (*piece_function)(void *job, int piece, int pieces, int worker);

enum { TEAM_MOST_PIECES = 255 };

/* Mailboxes of one run: one per worker of its lease. */
struct mailbox {
    _Alignas(64) _Atomic(struct team *) job; /* stored by the leader (release), taken by the member (acquire) */
    int member;                              /* written before job */
    _Alignas(64) atomic_uint_least64_t step; /* how far this worker is in a loop over steps (team_step) */
    atomic_uint_least64_t loops;             /* of box 0: those begun by all teams */
    /* prefetchers fetch lines in pairs: one box a pair */
};
_Static_assert(sizeof(struct mailbox) == 128, "one mailbox a pair of cache lines");

/* One team in flight; lives with the leader (one per worker, preallocated and zeroed by the run). */
struct team {
    team_function function;
    void *job;
    int width;
    struct mailbox *boxes;   /* of team_run, for the steps of a loop */
    const uint16_t *members;
    uint64_t loop;           /* what the steps of the loop under way count from; written by member 0 */
    int64_t *worked_ns; /* by member: added to, the time from its begin to its end less that in barriers; NULL: nobody
                           asks. Set by the leader before team_run, read after it. */
    /* Prefetchers fetch lines in pairs: what different members write stands two lines apart. */
    _Alignas(64) char apart1[64];
    atomic_int arrived; /* central barrier: members count up */
    _Alignas(64) char apart2[64];
    atomic_uint phase; /* barrier generation */
    _Alignas(64) char apart3[64];
    atomic_int finished; /* members that returned from function */
    _Alignas(64) char apart4[64];
    /* The open phase. Workers that idle look at `claim` all the time: what they would wait for stands apart. */
    atomic_uint_least64_t claim; /* which phase it is, of all of this team's, its pieces, and those taken: in this
                                    order, 48, 8 and 8 bits */
    _Alignas(64) char apart5[64];
    atomic_int joined; /* pieces that others than the leader have ended */
    /* Set by the leader before it opens a phase: its own index, the most pieces to cut one into, and what to tell who
     * joins. */
    int worker, pieces;
    int32_t label;
    piece_function piece;
    void *piece_job;
    _Alignas(64) char apart6[64];
};

/* Runs function(job) on the caller (member 0) and on members[1..width-1] (mailbox indices); returns when all are done.
 */
void team_run(struct team *team, struct mailbox *boxes, const uint16_t *members, int width, team_function function,
              void *job);

/* If a leader asks for this worker, takes part and returns true. */
bool team_poll(struct mailbox *box);

/* Barrier among the members of a running team, called by each; a width of 1 costs nothing. Spins; yields after a
 * bounded time so that an oversubscribed machine makes progress. */
void team_barrier(struct team *team, int member);

/* A loop over steps, between which all members wait for each other. Each calls team_loop once, then team_step with 1,
 * 2, ... between one step and the next. A member publishes its number on a line of its own and reads the others', which
 * takes two of them half as long as a general barrier. At most 2^32 - 1 steps. */
void team_loop(struct team *team, int member);
void team_step(struct team *team, int member, uint32_t step);

/* By the leader of a team of width 1: as
 *     for (int i = 0; i < pieces; i++) function(job, i, pieces, team->worker);
 * but that others may take pieces meanwhile; returns when all are done. At most TEAM_MOST_PIECES. Costs an atomic
 * operation a piece. */
void team_open(struct team *team, piece_function function, void *job, int pieces);

/* Runs a piece of what the team has open; false: there is none to be had, *piece untouched. */
struct team_piece {
    int64_t begin_ns, end_ns; /* clock_ns, where it is timed */
    int32_t label;
};
bool team_join(struct team *team, int worker, bool timed, struct team_piece *piece);
static inline bool team_is_open(const struct team *team)
{
    /* relaxed: a hint; team_join() looks again */
    uint64_t claim = atomic_load_explicit(&team->claim, memory_order_relaxed);
    return (claim & 255) < (claim >> 8 & 255);
}

#endif
