/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores have touched last what an operation reads and writes: those of the operations that it waited for. What
 * other cores have in their caches comes from there, and an operation bound by memory takes several times as long for
 * it. Who wrote how many bytes is not told apart: each predecessor counts alike, those that only gave their memory up
 * among them. */
#ifndef ENGINE_ORIGIN_H
#define ENGINE_ORIGIN_H

#include "schedule/schedule.h"

struct origins { /* predecessors of t: from[begin[t]] .. */
    int32_t *begin, *from;
};
graphi_status origins_open(const struct tasks *tasks, struct origins *out);
void origins_close(struct origins *origins); /* accepts a zeroed one */

/* 0 .. 1: the part of the predecessors of `task` that ran on other teams than it, when they ran on these seats. */
double origins_elsewhere(const struct origins *origins, const struct seat *seat, int32_t task);

/* For measuring what that costs: executions whose teams are told apart, and two halves of the classes such that an
 * operation and those before and after it are mostly of different ones. */
struct seating {
    struct origins origins;
    struct seat *seat;        /* one a task, of the execution at hand */
    bool *half, *other_half;  /* one a class */
};
graphi_status seating_open(const struct tasks *tasks, struct seating *out);
void seating_close(struct seating *seating); /* accepts a zeroed one, and one whose opening failed */

#endif
