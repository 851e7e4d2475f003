/* SPDX-License-Identifier: Apache-2.0 */
/* See simulated_core.h. */
#include "schedule/simulated_core.h"

#include "schedule/scheduler.h"

#include <math.h>

/* Programs of their own, on one core: 2,000 pauses, as of spin_turn(), took 49.8 us, two threads that yield to each
 * other 2.75 us for a turn of both. */
static const double SPIN_NS = 50000, SWITCH_NS = 1400;

/* Between two of the driver's turns a team has a slice of Linux's scheduler, 0.7 ms and as much again per doubling of
 * the cores up to 8 (two of two: 1.4 ms; a program of its own had 1,311 turns in two seconds beside one that
 * computes). */
struct shared_core shared_core_of(const struct schedule *s)
{
    const int cores = s->machine->cores;
    const bool shared = s->setting.driver == GRAPHI_DRIVER_DEDICATED && s->workers == cores;
    return (struct shared_core){.worker = shared ? s->workers + s->siblings - 1 : -1,
                                .leader = -1,
                                .idle = -SPIN_NS,
                                .due = -1,
                                .slice_ns = 0.7e6 * (1 + floor(log2(cores < 8 ? cores : 8)))};
}

/* When the driver comes to run the step that is due, as things are. */
static double turn_from(const struct shared_core *c, double now)
{
    double from = fmax(c->due, now);
    double turn = c->leader < 0 ? fmax(from, c->idle + SPIN_NS)
                                : c->turn + c->slice_ns * ceil((from - c->turn) / c->slice_ns);
    return turn + SWITCH_NS;
}

double shared_core_step_due(struct shared_core *c, double now, double due)
{
    if (c->worker < 0)
        return due;
    c->due = due;
    return c->at = turn_from(c, now);
}

/* Once the driver's turn has begun it changes nothing any more. */
static bool passes(struct shared_core *c, double now, int leader)
{
    c->leader = leader;
    if (c->due < 0 || c->at - SWITCH_NS <= now)
        return false;
    c->at = turn_from(c, now);
    return true;
}

bool shared_core_enter(struct shared_core *c, double now, int leader)
{
    if (c->idle + SPIN_NS <= now)
        c->turn = now;
    return passes(c, now, leader);
}

bool shared_core_leave(struct shared_core *c, double now)
{
    c->idle = now;
    return passes(c, now, -1);
}

/* One that follows another at once has the core already: what runs there was held up until `held`. */
double shared_core_step(struct shared_core *c, double now, double ends)
{
    const double from = fmax(now - SWITCH_NS, c->held);
    c->due = -1;
    c->held = ends + SWITCH_NS;
    return from;
}
