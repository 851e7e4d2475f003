/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that join, in virtual time: machine/team.c (team_open, team_join) and executor.c (join_other) as events.
 * The leader of an open task takes its pieces in order. Who has nothing to do takes the next one, looks for a task of
 * its own, and takes another. The task ends when the pieces that were taken have ended.
 *
 * All phases of a task are one here, of equal pieces. Taking a piece is an atomic; what somebody has opened is seen one
 * message later, and so is the end of the last piece. Who idles looks at all executors at once, and those with the
 * lowest index come first: where each looks at that moment is chance on the real machine.
 *
 * One event a piece, at most MOST_PIECES a task; a task that nobody may join is none of this file's business. */
#include "schedule/simulated_join.h"

#include <math.h>

/* Where it was measured what operations on other cores cost each other, those who are at the same task do so, too. A
 * team's time would have in it what its members waited for each other, as nobody does who joins: on a disturbed machine
 * that is several times as long. */
static double beside_ns(struct world *w, int leader, int others)
{
    const struct virtual_worker *l = &w->workers[leader];
    for (int i = 1; i < l->there; i++) /* who joins leads nothing, so there is room */
        w->running[others++] = l->task;
    return world_ns(w, l->task, (struct seat){.leader = (uint16_t)leader, .width = 1}, others);
}

/* What all pieces would take one after the other with so many workers at the task, one of them at each. By a team's
 * time a piece takes its part of what the busiest member does, and no less than its part of what one worker takes. */
static double pieces_ns(struct world *w, int leader)
{
    const struct virtual_worker *l = &w->workers[leader];
    const struct tasks *t = w->schedule->tasks;
    const int others = w->running_count - 1;
    world_put_last(w, leader); /* it is not beside itself */
    if (t->curves[t->curve_of[l->task]].beside > 0)
        return beside_ns(w, leader, others);
    struct seat seat = {.leader = (uint16_t)leader, .width = 1};
    const double alone = world_ns(w, l->task, seat, others);
    if (l->there == 1)
        return alone;
    seat.width = (uint16_t)l->there;
    const int most = (l->pieces + l->there - 1) / l->there;
    return fmax(alone, world_ns(w, l->task, seat, others) * l->pieces / most);
}

static double piece_ns(struct world *w, int leader)
{
    return pieces_ns(w, leader) / w->workers[leader].pieces + w->schedule->machine->atomic_ns;
}

/* What is left until the task may end. Pieces that were begun beside few would have become slower as more came, where
 * a resource that they share has no more to give: together they are no faster than the fastest team. What was measured
 * beside others says by itself what they lose. */
static double rest_ns(const struct world *w, int leader)
{
    const struct virtual_worker *l = &w->workers[leader];
    const struct tasks *t = w->schedule->tasks;
    const struct cost_curve *curve = &t->curves[t->curve_of[l->task]];
    return curve->beside > 0 ? 0 : l->opened + curve_least_ns(curve) - w->now;
}

static void begin_piece(struct world *w, int leader, int worker)
{
    struct virtual_worker *l = &w->workers[leader];
    double ns = piece_ns(w, leader);
    if (++l->taken == l->pieces) {
        bitmap_clear(&w->open, leader);
        ns = fmax(ns, rest_ns(w, leader));
    }
    if (worker != leader)
        ns += world_enter_core(w, worker, 1);
    world_occupy(w, worker, ns, 1);
}

/* Of the task that it helped with last, or of the next one that is open. */
static bool join_other(struct world *w, int worker)
{
    struct virtual_worker *v = &w->workers[worker];
    int leader = bitmap_next(&w->open, v->looked, w->schedule->workers);
    if (leader < 0)
        leader = bitmap_first(&w->open);
    if (leader < 0)
        return false;
    v->looked = v->joined = leader;
    v->began = w->now;
    w->workers[leader].there++;
    begin_piece(w, leader, worker);
    return true;
}

void join_look(struct world *w, int worker)
{
    struct virtual_worker *v = &w->workers[worker];
    if (!w->schedule->executors[worker].joins || v->looks)
        return;
    if (!w->open.count) {
        bitmap_set(&w->onlook, worker);
        return;
    }
    bitmap_clear(&w->onlook, worker);
    v->looks = true;
    event_add(&w->events, w->now + w->schedule->machine->wake_ns, EVENT_LOOKS, worker);
}

/* Somebody for each piece. Who has got a task of its own when it sees them leaves them to those who are called with the
 * leader's next one. */
static void call(struct world *w, int pieces)
{
    for (int worker; pieces > 0 && (worker = bitmap_first(&w->onlook)) >= 0; pieces--)
        join_look(w, worker);
}

void join_looks(struct world *w, int worker)
{
    struct virtual_worker *v = &w->workers[worker];
    v->looks = false;
    bool idle = !v->steps && v->task < 0 && v->joined < 0;
    if (idle && !join_other(w, worker))
        join_look(w, worker);
}

double join_open(struct world *w, int leader, int pieces, double ns)
{
    struct virtual_worker *l = &w->workers[leader];
    l->pieces = pieces;
    l->taken = l->there = 1;
    l->opened = w->now;
    bitmap_set(&w->open, leader);
    call(w, pieces - 1);
    return ns / pieces + w->schedule->machine->atomic_ns;
}

static void note_piece(struct world *w, int worker)
{
    const struct virtual_worker *v = &w->workers[worker];
    struct schedule *s = w->schedule;
    if (s->records && s->joined)
        executor_note_joined(s, (struct joined){.start_ns = whole_ns(v->began),
                                                .end_ns = whole_ns(w->now),
                                                .task = w->workers[v->joined].task,
                                                .worker = (uint16_t)worker});
}

/* Somebody who joined has done a piece. The last one is seen by a leader that waits. */
static void part_ends(struct world *w, int worker)
{
    struct virtual_worker *v = &w->workers[worker], *l = &w->workers[v->joined];
    note_piece(w, worker);
    world_leave_core(w, worker);
    l->there--;
    if (l->waits && l->there == 1) {
        l->waits = false;
        event_add(&w->events, w->now + w->schedule->machine->wake_ns, EVENT_ENDS, v->joined);
    }
    v->joined = -1;
    if (!w->playing->start_own(w, worker) && !join_other(w, worker))
        join_look(w, worker);
}

/* How long the leader worked: until the last of its own pieces ended. */
static void note_leader(struct world *w, int leader)
{
    const struct virtual_worker *l = &w->workers[leader];
    struct schedule *s = w->schedule;
    if (s->records && s->teams.row)
        s->teams.worked_ns[(size_t)l->task * s->teams.row] = whole_ns(l->ends) - s->records[l->task].start_ns;
}

bool join_ends(struct world *w, int worker)
{
    struct virtual_worker *v = &w->workers[worker];
    if (v->joined >= 0) {
        part_ends(w, worker);
    } else if (v->taken < v->pieces) {
        begin_piece(w, worker, worker);
        call(w, v->pieces - v->taken);
    } else if (v->pieces && v->there > 1) { /* polls, as who has nothing to do */
        v->waits = true;
        world_leave_core(w, worker);
    } else {
        if (v->pieces)
            note_leader(w, worker);
        v->pieces = v->taken = 0;
        return false;
    }
    return true;
}
