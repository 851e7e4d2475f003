/* SPDX-License-Identifier: Apache-2.0 */
/* A companion of graphi/plan.h: the simulated machine, the same scheduler in virtual time. Everything that comes from
 * here is labelled simulated. */
#ifndef GRAPHI_SIMULATE_H
#define GRAPHI_SIMULATE_H

#include "graphi/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_simulation {
    double makespan_ms, critical_path_ms, work_ms; /* work: sum of p * t(p) at the cheapest p */
    double lower_bound_ms; /* no order and width is shorter; hardware-thread siblings (s1234) by 3 % at most */
    double utilization;   /* core time inside operations / (all cores of the machine * makespan) */
    double scheduling_ms; /* spent in scheduling steps, queues and wake-ups, summed */
    int64_t operations;
    double mean_corunning;  /* operations running side by side, averaged over events */
    double host_ns_per_op;  /* what the simulation itself cost: computing time of this thread */
    uint64_t decisions;     /* hash of every decision in order */
    double widths_bound_ms; /* malleable: no schedule in which every operation has one width is shorter, but for the
                               sequential one, whose operands were just written; 0: not known */
    /* Real time that scheduling steps took, all together (from the first and one in 16 of the others): successors that
     * become ready, what is learned of operations that ended, and placing what is ready. */
    double deciding_ms;
    /* Malleable: operations simulated in search of widths, or other work of the search that took as long. */
    int64_t searched;
    graphi_decision setting; /* what ran */
} graphi_simulation;

/* NULL: the plan's own. */
typedef struct graphi_simulate_options {
    const graphi_setting *setting; /* these two as in graphi_plan_change */
    const graphi_machine *machine;
    /* Decisions follow the curves of the plan, but time passes by those of this one, of the same compiled graph for the
     * same machine (`machine`, if given): what a schedule directed by a model's predictions takes. */
    const graphi_plan *truth;
    const char *timeline; /* PREFIX.json and PREFIX.html are written; NULL: neither */
} graphi_simulate_options;

/* The plan's setting in virtual time by the plan's curves. options NULL: the defaults. Errors, *out untouched: as
 * graphi_plan_with; INVALID, a `truth` of another compiled graph or machine, or a prefix of more than 4,096 characters;
 * IO; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_plan_simulate(const graphi_plan *plan, const graphi_simulate_options *options,
                                              graphi_simulation *out);

/* The makespan on all cores of a machine (NULL: the plan's) when widths and order are given, for searches other than
 * that of the malleable policy: each class of operations (graphi_plan_class_at) with one width, and by how many ms its
 * operations go before others of the same level. rules, 0 to 11: what happens while the first in order waits for
 * workers: 0, 4, 8: nothing else starts, or what fits without delaying it, or whatever fits; + 1: it starts on fewer
 * if it ends no later; + 2: workers that nobody wants widen others. One thread at a time; plan and machine must
 * outlive it. */
typedef struct graphi_simulator graphi_simulator;

/* *out is the caller's. Errors, *out untouched: UNSUPPORTED, a machine of more than 65,535 cores; MEMORY. */
GRAPHI_API graphi_status graphi_simulator_create(const graphi_plan *plan, const graphi_machine *machine,
                                                 graphi_simulator **out);

/* width and priority_ms have an entry for every class of the plan. Errors, *makespan_ms untouched: USAGE, a width that
 * is not 1 to the machine's cores, or a priority beyond 1e9 ms, naming the class, or rules outside 0 to 11; MEMORY. */
GRAPHI_API graphi_status graphi_simulator_run(graphi_simulator *simulator, const int *width, const double *priority_ms,
                                              int rules, double *makespan_ms);

/* NULL is accepted. */
GRAPHI_API void graphi_simulator_destroy(graphi_simulator *simulator);

#ifdef __cplusplus
}
#endif
#endif
