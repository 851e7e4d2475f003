/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of events of the simulated backend, and the drivers that it plays. One thread. */
#ifndef SCHEDULE_SIMULATED_PLAY_H
#define SCHEDULE_SIMULATED_PLAY_H

#include "schedule/simulated_world.h"

/* Plays until nothing happens any more; `events`: how many of `own` there may be at a time. MEMORY. */
graphi_status world_play(struct schedule *schedule, task_duration duration, void *context,
                         const struct playing *playing, void *own, size_t events, struct simulation *out);
void world_start(struct world *world, int32_t task, struct seat seat, bool inlined);
void world_go_on(struct world *world, int worker); /* its next task, else another's, unless it is at something */

/* simulated_steps.c, simulated_static.c, and the loops without a step, simulated_loops.c; MEMORY */
graphi_status simulate_steps(struct schedule *schedule, task_duration duration, void *context, struct simulation *out);
graphi_status simulate_static(struct schedule *schedule, task_duration duration, void *context,
                              struct simulation *out);
graphi_status simulate_naive(struct schedule *schedule, task_duration duration, void *context, struct simulation *out);
graphi_status simulate_sequential(struct schedule *schedule, task_duration duration, void *context,
                                  struct simulation *out);

#endif
