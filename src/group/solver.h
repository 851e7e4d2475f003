/* SPDX-License-Identifier: Apache-2.0 */
/* A solver: a replica of the training step, made and run on a thread of its own, and the group that it is one of.
 * group.c makes solvers and gives steps, solver.c is what a solver has, solver_step.c its step. */
#ifndef GROUP_SOLVER_H
#define GROUP_SOLVER_H

#include <pthread.h>
#include <string.h>

#include "engine/run/run.h"
#include "graphi/group.h"
#include "group/exchange.h"
#include "group/split.h"

/* Where the two parts of a split read and write their blocks: places in the plans. */
struct solver_ports {
    int *gradient, *sum, *other; /* one a summed value */
};

struct solver {
    struct graphi_group *group;
    int index;
    pthread_t thread;
    bool started;
    /* What of the batch it computes: `leaves` parts of `rows` samples, one after the other. */
    int first_leaf, leaves;
    int64_t first_row, rows;
    /* All that follows is made on its thread. */
    graphi_machine *machine;
    int cores;
    graphi_graph *graph;
    struct split split;
    graphi_plan *gradient_plan, *update_plan;
    graphi_state *own_state, *state;
    graphi_run *gradient, *update;
    struct solver_ports ports;
    float *block[EXCHANGE_NODES];
    int blocks;
    bool bound; /* the update reads its blocks */
    struct lease_state *lease_room;
    float (*loss)[GRAPHI_TRAINER_LOSSES]; /* of each leaf */
    /* Told to the group. */
    atomic_uint_least64_t done; /* 1: it is made; then one more a step */
    graphi_status status;
    char message[512];
    double gradient_ms, exchange_ms, update_ms;
};

struct graphi_group {
    graphi_group_options how; /* defaults settled */
    bool owns_machine;
    bool by_node;                 /* a solver has the cores of one node */
    int rank, ranks;              /* 0 of 1 where this process is alone */
    graphi_machine *part;         /* this rank's part of the host's cores; NULL: all that it may use */
    struct exchange all;          /* the solvers of all ranks, and room for what others send */
    atomic_uint_least64_t summed; /* steps of which the sum over ranks is in the first solver's block */
    float *record, *records;      /* losses and a wish to stop, of this rank and of all */
    size_t record_floats;
    bool stopped;
    graphi_machine *machine;
    graphi_graph *graph; /* of the whole batch */
    graphi_state *own_state, *state;
    graphi_stepper stepper;
    struct solver *solver;
    struct exchange exchange;
    struct parking bell;
    atomic_int failed;          /* the first solver that did, plus one; 0: none */
    pthread_mutex_t building;   /* `build` is called by one thread at a time */
    atomic_uint_least64_t told; /* 1 after solvers are made; then one more a step */
    atomic_int ends;
    const graphi_step_batch *batch;
    bool differs;          /* replicas are no longer what the first solver's state is */
    uint64_t versions;     /* of its parameters after the last step */
    uint64_t steps_before; /* that its state counts, before the step at hand */
    uint64_t steps;
    double step_ms;
};

/* What has to do with other processes (group_ranks.c). Which cores are this rank's; then, when solvers are made, that
 * ranks agree and have room; the sum over ranks, by the first solver's thread; and losses. */
graphi_status group_ranks_place(struct graphi_group *group);
graphi_status group_ranks_open(struct graphi_group *group);
void group_ranks_close(struct graphi_group *group);
graphi_status group_ranks_sum(struct graphi_group *group);
graphi_status group_ranks_losses(struct graphi_group *group, float *loss);

/* Makes all that a solver has, by its thread. What was made is taken away by solver_close, also where it fails. */
graphi_status solver_open(struct solver *solver);
void solver_close(struct solver *solver);

/* One step, from 1 on, by its thread. */
graphi_status solver_step(struct solver *solver, uint64_t step);

/* A parameter of samples, or of evaluation: not a replica's. */
static inline bool solver_keeps(const char *parameter)
{
    return strncmp(parameter, "state/", 6) != 0 && strncmp(parameter, "eval/", 5) != 0;
}

#endif
