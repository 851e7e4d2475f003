/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: what happens between a leader and its members, and nothing else. No lock, no allocation, no system call unless
 * threads outnumber cores. Usual life of a team: 0.2 µs to form and dissolve, 1 µs to 10 ms of work, 1 to 4 barriers.
 *
 * Invariants: between runs of a team `arrived` is 0; a mailbox holds a job only from its leader's store until its owner
 * has taken it, and the leader may not store another before team_run has returned. Unless a phase is open all of its
 * pieces are taken; `claim` never has a value twice (in 2^48 phases), so that who exchanges it for the next one has a
 * piece of the very phase that it had seen, which then stays open until that piece has ended. */
#include "machine/team.h"

#include "base/clock.h"
#include "machine/parking.h"

/* A member's watch runs while it works. */
static void start_watch(const struct team *team, int member)
{
    if (team->worked_ns)
        team->worked_ns[member] -= clock_ns();
}

static void stop_watch(const struct team *team, int member)
{
    if (team->worked_ns)
        team->worked_ns[member] += clock_ns();
}

static void take_part(struct team *team, int member)
{
    start_watch(team, member);
    team->function(team->job, team, member, team->width);
    stop_watch(team, member);
}

void team_run(struct team *team, struct mailbox *boxes, const uint16_t *members, int width, team_function function,
              void *job)
{
    /* Plain and relaxed stores: published by the release stores into the mailboxes below. */
    team->function = function;
    team->job = job;
    team->width = width;
    team->boxes = boxes;
    team->members = members;
    atomic_store_explicit(&team->finished, 0, memory_order_relaxed);
    for (int i = 1; i < width; i++) {
        struct mailbox *box = &boxes[members[i]];
        box->member = i;
        atomic_store_explicit(&box->job, team, memory_order_release); /* pairs with the acquire in team_poll() */
    }
    take_part(team, 0);
    unsigned turns = 0;
    /* pairs with the release in team_poll(): what the members wrote is the leader's from here on */
    while (atomic_load_explicit(&team->finished, memory_order_acquire) != width - 1)
        spin_turn(&turns);
}

bool team_poll(struct mailbox *box)
{
    /* pairs with the release in team_run(): member, function, job, width and watches are visible */
    struct team *team = atomic_load_explicit(&box->job, memory_order_acquire);
    if (!team)
        return false;
    /* relaxed: the next leader stores after an acquire of `finished` (directly, or through the scheduler that learns
     * from this leader that the worker is idle), hence after this */
    atomic_store_explicit(&box->job, NULL, memory_order_relaxed);
    take_part(team, box->member);
    /* pairs with the acquire in team_run(), which hands over the watch too; the last touch of the team, which may be
     * formed anew at once */
    atomic_fetch_add_explicit(&team->finished, 1, memory_order_release);
    return true;
}

static void meet(struct team *team)
{
    /* relaxed: this member saw the current phase when it left the last barrier, and it cannot end without this member
     */
    unsigned phase = atomic_load_explicit(&team->phase, memory_order_relaxed);
    /* Release: each arrival publishes its member's writes; acquire: the last arrival has those of all others (they form
     * one release sequence), and hands them on by its store to phase. */
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) + 1 == team->width) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->phase, phase + 1, memory_order_release); /* pairs with the acquire just below */
        return;
    }
    unsigned turns = 0;
    while (atomic_load_explicit(&team->phase, memory_order_acquire) == phase)
        spin_turn(&turns);
}

void team_barrier(struct team *team, int member)
{
    if (team->width == 1)
        return;
    stop_watch(team, member);
    meet(team);
    start_watch(team, member);
}

/* --- loops over steps --- */

/* Numbers of all loops of these mailboxes rise: a worker's line never holds one that a later loop waits for, though it
 * was in other teams meanwhile, and what it writes in later teams lets go whoever still waits here. */
void team_loop(struct team *team, int member)
{
    if (team->width == 1)
        return;
    if (member == 0) /* relaxed: only that numbers differ matters; the barrier publishes this one */
        team->loop = (atomic_fetch_add_explicit(&team->boxes[0].loops, 1, memory_order_relaxed) + 1) << 32;
    team_barrier(team, member);
}

/* Polls before the first pause, which takes longer than a line between two cores. */
enum { STEP_POLLS = 200 };

static void await_step(const atomic_uint_least64_t *line, uint64_t number)
{
    unsigned turns = 0;
    /* acquire: pairs with the release in team_step(): what the other wrote in its step is visible */
    for (int i = 0; atomic_load_explicit(line, memory_order_acquire) < number; i++)
        if (i >= STEP_POLLS)
            spin_turn(&turns);
}

void team_step(struct team *team, int member, uint32_t step)
{
    const uint64_t number = team->loop + step;
    if (team->width == 1)
        return;
    stop_watch(team, member);
    /* release: pairs with the acquire in await_step() */
    atomic_store_explicit(&team->boxes[team->members[member]].step, number, memory_order_release);
    for (int i = 0; i < team->width; i++)
        if (i != member)
            await_step(&team->boxes[team->members[i]].step, number);
    start_watch(team, member);
}

/* --- open phases --- */

/* Takes the next piece; -1: none is left. */
static int take_piece(struct team *team, uint64_t *claim)
{
    *claim = atomic_load_explicit(&team->claim, memory_order_relaxed);
    while ((*claim & 255) < (*claim >> 8 & 255)) {
        /* acquire: pairs with the release in team_open(), whose release sequence the claims of others continue: what
         * the leader and its job's inputs hold is visible. relaxed on failure: nothing was taken */
        if (atomic_compare_exchange_weak_explicit(&team->claim, claim, *claim + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return (int)(*claim & 255);
    }
    return -1;
}

void team_open(struct team *team, piece_function function, void *job, int pieces)
{
    /* Plain and relaxed: nobody looks at them before the release store below, and those who took pieces of the phase
     * before have ended (the acquire below). */
    team->piece = function;
    team->piece_job = job;
    atomic_store_explicit(&team->joined, 0, memory_order_relaxed);
    uint64_t claim = atomic_load_explicit(&team->claim, memory_order_relaxed);
    claim = ((claim >> 16) + 1) << 16 | (uint64_t)pieces << 8;
    atomic_store_explicit(&team->claim, claim, memory_order_release); /* pairs with the acquire in take_piece() */
    int others = pieces;
    for (int piece; (piece = take_piece(team, &claim)) >= 0; others--)
        function(job, piece, pieces, team->worker);
    if (others == 0)
        return;
    stop_watch(team, 0);
    unsigned turns = 0;
    /* pairs with the release in team_join(): what they wrote is the leader's from here on */
    while (atomic_load_explicit(&team->joined, memory_order_acquire) != others)
        spin_turn(&turns);
    start_watch(team, 0);
}

bool team_join(struct team *team, int worker, bool timed, struct team_piece *piece)
{
    uint64_t claim;
    int taken = take_piece(team, &claim);
    if (taken < 0)
        return false;
    *piece = (struct team_piece){.begin_ns = timed ? clock_ns() : 0, .label = team->label};
    team->piece(team->piece_job, taken, (int)(claim >> 8 & 255), worker);
    if (timed)
        piece->end_ns = clock_ns();
    /* pairs with the acquire in team_open(); the last touch of the team and of its job */
    atomic_fetch_add_explicit(&team->joined, 1, memory_order_release);
    return true;
}
