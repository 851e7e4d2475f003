/* SPDX-License-Identifier: Apache-2.0 */
/* The core of the last worker in virtual time, if a dedicated driver is on it too: executors that take all cores leave
 * it none of its own (driver_dedicated.c). One of the two runs at a time. While a team works there, a step that is due
 * waits for the next turn of the system's scheduler; with none, until the worker has polled for a while and yields. A
 * step holds up what runs or starts on that core until it ends, and each change of threads takes its time.
 *
 * Only times pass through here: the caller has the events, the steps and the teams (simulated_world.c). */
#ifndef SCHEDULE_SIMULATED_CORE_H
#define SCHEDULE_SIMULATED_CORE_H

#include <stdbool.h>

struct schedule;

struct shared_core {
    int worker;      /* -1: the driver has a core of its own */
    int leader;      /* of the team that works there now, or -1 */
    double idle;     /* since when none does */
    double turn;     /* when the driver was last there before that team went on */
    double held;     /* until when its last step is */
    double due;      /* of the step that waits for the core; < 0: none */
    double at;       /* when that step begins, as things are */
    double slice_ns; /* between two turns while a team works */
};

struct shared_core shared_core_of(const struct schedule *schedule);

/* A step is due; returns when it begins, as things are. */
double shared_core_step_due(struct shared_core *core, double now, double due);

/* A team begins on that core, or ends there. True: the step that is due begins at core->at instead. */
bool shared_core_enter(struct shared_core *core, double now, int leader);
bool shared_core_leave(struct shared_core *core, double now);

/* A step has the core from now until `ends`; returns since when it has held up what runs there: until core->held. */
double shared_core_step(struct shared_core *core, double now, double ends);

#endif
