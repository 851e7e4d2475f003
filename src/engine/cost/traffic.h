/* SPDX-License-Identifier: Apache-2.0 */
/* What operations side by side cost each other in virtual time (docs/simulator.md). */
#ifndef ENGINE_TRAFFIC_H
#define ENGINE_TRAFFIC_H

#include "engine/cost/origin.h"

struct graphi_plan;

struct traffic {
    const struct graphi_plan *plan;
    double gbs, core_gbs; /* of the memory: all cores, one core */
    double slowdown;      /* of threads that the system places (graphi.txt Fig. 3); 1: pinned */
    bool in_order;        /* array order: what was measured in it counts */
    bool shared;          /* durations depend on what runs beside: traffic_duration is needed */
    double *bytes;        /* one a curve: what an operation moves from and to memory; 0: in caches */
    double *usual;        /* one a curve: part of the measured `beside` that sharing the memory explains */
    struct seat *seat;    /* one a task: what it started on */
    struct origins origins; /* empty where no class was measured with operands from other cores */
};
/* Durations by the plan's curves, of an execution under `setting`. */
graphi_status traffic_open(const struct graphi_plan *plan, const graphi_setting *setting, struct traffic *out);
void traffic_close(struct traffic *traffic); /* accepts a zeroed one */

/* A task_duration; the context is the traffic. */
double traffic_duration(void *context, int32_t task, struct seat seat, const int32_t *running, int count);

#endif
