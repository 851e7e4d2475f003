/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes part in what others run, in virtual time (simulated_join.c). One thread. */
#ifndef SCHEDULE_SIMULATED_JOIN_H
#define SCHEDULE_SIMULATED_JOIN_H

#include "schedule/simulated_world.h"

/* The worker begins a task, which takes it so long alone, in pieces; returns what the first of them takes. */
double join_open(struct world *world, int leader, int pieces, double ns);
/* On EVENT_ENDS; false: it is the task of this worker that has ended. */
bool join_ends(struct world *world, int worker);
void join_look(struct world *world, int worker);  /* it has nothing to do */
void join_looks(struct world *world, int worker); /* on EVENT_LOOKS */

#endif
