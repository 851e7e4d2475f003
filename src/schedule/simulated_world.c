/* SPDX-License-Identifier: Apache-2.0 */
/* Workers in virtual time: what runs on their cores, how fast, and until when. What they run next is known above
 * (simulated_play.c).
 *
 * Hardware threads share their core: with more than one of them busy it does SIBLING_YIELD times what it does with one,
 * divided evenly. A team goes on with what its cores have left for it (its members are taken to share out the rest of
 * their work), and what runs takes another time from the moment on at which a neighbour on its cores comes or goes.
 *
 * A dedicated driver whose executors take all cores shares the last one (simulated_core.c). One thread. */
#include "schedule/simulated_world.h"

#include <math.h>
#include <string.h>

static int core_of(const struct schedule *s, int worker)
{
    return worker < s->workers ? worker : s->machine->core[worker].sibling_of;
}

void world_set_end(struct world *w, int worker, double ends, double cores)
{
    struct virtual_worker *v = &w->workers[worker];
    w->busy += cores * (ends - w->now) - v->cores * (v->ends - w->now);
    v->ends = ends;
    v->cores = cores;
    event_move(&w->events, ends, EVENT_ENDS, worker);
}

static void set_pace(struct world *w, int worker, double pace, double cores)
{
    struct virtual_worker *v = &w->workers[worker];
    if (v->pace == pace && v->cores == cores)
        return;
    double ends = w->now + (v->ends - w->now) * v->pace / pace;
    v->pace = pace;
    world_set_end(w, worker, ends, cores);
}

/* Something has started or ended on a sibling, or beside one. */
void world_share_cores(struct world *w)
{
    struct schedule *s = w->schedule;
    memset(w->threads, 0, (size_t)s->workers * sizeof *w->threads);
    for (int i = 0; i < w->running_count; i++) {
        int worker = w->running_worker[i];
        for (int m = 0; m < w->workers[worker].width; m++)
            w->threads[core_of(s, s->executors[worker].members[m])]++;
    }
    for (int i = 0; i < w->running_count; i++) {
        int worker = w->running_worker[i], width = w->workers[worker].width;
        double pace = 0, cores = 0;
        for (int m = 0; m < width; m++) {
            int threads = w->threads[core_of(s, s->executors[worker].members[m])];
            pace += threads > 1 ? SIBLING_YIELD / threads : 1;
            cores += 1.0 / threads;
        }
        set_pace(w, worker, pace / width, cores);
    }
}

/* --- the driver on the last worker's core --- */

static void move_step(struct world *w, bool moved)
{
    if (moved)
        event_move(&w->events, w->core.at, EVENT_STEP, -1);
}

double world_enter_core(struct world *w, int leader, int width)
{
    if (w->core.worker < 0)
        return 0;
    const uint16_t *members = w->schedule->executors[leader].members;
    int m = 0;
    while (m < width && members[m] != w->core.worker)
        m++;
    if (m == width)
        return 0;
    move_step(w, shared_core_enter(&w->core, w->now, leader));
    return fmax(w->core.held - w->now, 0);
}

void world_leave_core(struct world *w, int leader)
{
    if (leader == w->core.leader)
        move_step(w, shared_core_leave(&w->core, w->now));
}

/* --- operations --- */

double world_ns(struct world *w, int32_t task, struct seat seat, int others)
{
    const struct tasks *t = w->schedule->tasks;
    return w->duration ? w->duration(w->context, task, seat, w->running, others)
                       : curve_mode_ns(&t->curves[t->curve_of[task]], seat.width, seat.spread);
}

void world_put(struct world *w, int position, int32_t task, int worker)
{
    w->running[position] = task;
    w->running_worker[position] = worker;
    w->workers[worker].position = position;
}

void world_put_last(struct world *w, int worker)
{
    const int from = w->workers[worker].position, last = w->running_count - 1;
    const int32_t task = w->running[from];
    world_put(w, from, w->running[last], w->running_worker[last]);
    world_put(w, last, task, worker);
}

void world_occupy(struct world *w, int worker, double ns, int width)
{
    struct virtual_worker *v = &w->workers[worker];
    v->ends = w->now + ns;
    v->pace = 1;
    v->cores = v->width = width;
    w->busy += ns * width;
    event_add(&w->events, v->ends, EVENT_ENDS, worker);
}
