/* SPDX-License-Identifier: Apache-2.0 */
/* What operations side by side cost each other in virtual time (docs/simulator.md). */
#ifndef ENGINE_TRAFFIC_H
#define ENGINE_TRAFFIC_H

#include "engine/compile/plan.h"
#include "engine/cost/origin.h"

/* What passes virtual time: decisions follow the tasks, their curves, levels and allotment, under the setting; time
 * passes by `truth`. */
struct simulated {
    const struct compiled *compiled;
    const graphi_machine *machine;
    const struct tasks *tasks;
    struct decided decided;
    const struct cost_curve *truth; /* one a class; tasks.curves, or others */
};

struct traffic {
    struct simulated what;
    double gbs, core_gbs; /* of the memory: all cores, one core */
    double slowdown;      /* of threads that the system places (graphi.txt Fig. 3); 1: pinned */
    bool in_order;        /* array order: what was measured in it counts */
    bool shared;          /* durations are not just the tasks' curves: traffic_duration is needed */
    double *bytes;        /* one a curve: what an operation moves from and to memory; 0: in caches */
    double *usual;        /* one a curve: part of the measured `beside` that sharing the memory explains */
    struct seat *seat;    /* one a task: what it started on */
    struct origins origins; /* empty where no class was measured with operands from other cores */
};
graphi_status traffic_open(const struct simulated *what, struct traffic *out);
void traffic_close(struct traffic *traffic); /* accepts a zeroed one */

/* A task_duration; the context is the traffic. */
double traffic_duration(void *context, int32_t task, struct seat seat, const int32_t *running, int count);

#endif
