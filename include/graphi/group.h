/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: training by several solvers, each a replica of the training step with cores, memory and a thread of its own.
 * A step's samples are divided, gradients are added, and every solver makes the same update.
 *
 *     graphi_group_options how = {.build = build, .batch = 128, .solvers = 2};
 *     graphi_group_create(&how, &group);
 *     graphi_trainer_options train = {.graph = {graphi_group_graph(group)}, .state = graphi_group_state(group),
 *                                     .stepper = graphi_group_stepper(group), ...};
 *
 * Gradients are those of the mean over all samples: of a solver's loss, which is a mean over its own, weighted by its
 * share. Parameters have roles. Those that graphi_minimize updates, with its slots, are the same in all solvers. What
 * the graph assigns beside it (running statistics) becomes the mean over solvers. "state/..." belongs to samples: rows
 * of dimension 0, divided as they are. Clipping is by the norm of the summed gradients; batch normalization takes the
 * statistics of a solver's samples; dropout's numbers follow the global sample.
 *
 * A group is used by one thread at a time. Zero is the default everywhere. docs/solvers.md has more.
 * Source: numa-caffe.txt 4. */
#ifndef GRAPHI_GROUP_H
#define GRAPHI_GROUP_H

#include "graphi/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_group graphi_group;

/* --- ranks: processes that train together, on one host or many --- */

typedef struct graphi_ranks graphi_ranks;

/* Loads a transport's plugin (`graphi-mpi.so`, which `graphi` finds beside itself) and joins the processes that were
 * started together. Once in a process. Whoever sends nothing for `timeout_s` (0: 60 seconds) is given up. *out is the
 * caller's (graphi_ranks_close). Errors, *out untouched: UNSUPPORTED (no such plugin, or the transport does not start),
 * INVALID, MEMORY. */
GRAPHI_API graphi_status graphi_ranks_open(const char *plugin, double timeout_s, graphi_ranks **out);

typedef struct graphi_ranks_info {
    int rank, ranks;             /* of all processes */
    int local_rank, local_ranks; /* of those on this host */
} graphi_ranks_info;

/* False where there are none, *info untouched. */
GRAPHI_API bool graphi_ranks_get_info(const graphi_ranks *ranks, graphi_ranks_info *info);

/* After its groups. Leaves the other processes, or, where one of them was given up, ends them all. NULL is accepted. */
GRAPHI_API void graphi_ranks_close(graphi_ranks *ranks);

/* --- groups --- */

/* How gradients are added. X(NAME, "as --reduction has it") */
#define GRAPHI_REDUCTION_LIST(X)                                                                                       \
    X(AUTO, "auto")                                                                                                    \
    X(PAIR, "pair")   /* two solvers: each reads the other's gradients in its update */                                \
    X(OWNER, "owner") /* each chunk has an owner, who adds it and whom the others take it from */                      \
    X(TREE, "tree")   /* up a tree of solvers and down again */                                                        \
    X(RING, "ring")   /* segments go round */                                                                          \
    X(FLAT, "flat")   /* one solver adds everything */                                                                 \
    X(NONE, "none")   /* not at all, for measuring what it costs: solvers drift apart */

typedef enum graphi_reduction {
#define X(NAME, text) GRAPHI_REDUCTION_##NAME,
    GRAPHI_REDUCTION_LIST(X)
#undef X
        GRAPHI_REDUCTIONS
} graphi_reduction;

/* Solvers and leaves of a group at most. */
enum { GRAPHI_GROUP_SOLVERS = 256, GRAPHI_GROUP_LEAVES = 1024 };

typedef struct graphi_group_options {
    /* Makes the training graph for so many samples; that of all of them is made first. Called from several threads, one
     * at a time. *out becomes the group's. */
    graphi_status (*build)(void *context, int64_t batch, graphi_graph **out);
    void *context;
    int64_t batch; /* of a step, of all solvers */
    int solvers;   /* 0: one for each NUMA node of the machine */
    /* The batch is cut into `leaves` (0: 8), one solver computes some of them one after the other, and gradients are
     * added by one tree over leaves: any number of solvers gives the same bits. Otherwise solvers give those of one up
     * to the order of additions. */
    bool deterministic;
    int leaves;
    graphi_reduction reduction; /* AUTO: pair of two solvers, owner of more and where it is deterministic */
    int arity;                  /* of TREE; 0: 2 */
    bool oversubscribe;         /* more solvers than cores, which take turns: for tests */
    bool must_place;            /* UNSUPPORTED where a solver's threads cannot be kept on its cores */
    const graphi_machine *machine;     /* NULL: all cores of this one */
    const graphi_plan_options *plan;   /* of each solver; executors * width at most its cores */
    const char *loss[GRAPHI_TRAINER_LOSSES]; /* outputs of which the mean is told; none: "loss" */
    /* Other processes have `solvers` of their own of one group: each is given the whole batch and takes its part, and
     * all have the same state after a step. Reductions are OWNER. NULL: this process alone. */
    graphi_ranks *ranks;
    bool (*stop)(void *context); /* asked in each step, with `context`: whether any process does is told to all */
    uint64_t seed;
    graphi_state *state; /* the caller's, of the first solver; NULL: the group's own, made with `seed` */
} graphi_group_options;

/* Makes solvers, each on a thread of its own. *out is the caller's (graphi_group_destroy). Errors, *out untouched:
 * INVALID (a batch that leaves do not divide, fewer samples or leaves than solvers, a graph without updates), USAGE
 * (more solvers than cores, a reduction that is not for so many), UNSUPPORTED (an assigned parameter that has no mean,
 * a table that is updated by rows, threads that cannot be placed), what `build` returned, those of making plans and
 * states; MEMORY. A solver's failure names it. With ranks also INVALID (another graph, batch or instruction set in
 * another rank, naming both), IO (a rank that was given up, by its number). */
GRAPHI_API graphi_status graphi_group_create(const graphi_group_options *options, graphi_group **out);

/* For graphi_trainer_options: the graph of the whole batch, the state of all parameters, and what takes the steps. They
 * live as long as the group, which has to outlive the trainer. */
GRAPHI_API const graphi_graph *graphi_group_graph(const graphi_group *group);
GRAPHI_API graphi_state *graphi_group_state(const graphi_group *group);
GRAPHI_API const graphi_stepper *graphi_group_stepper(graphi_group *group);

/* One step of all solvers: as the stepper's function. After a failure, which names the solver, the group can only be
 * destroyed (INVALID). Allocates nothing but in the first step. */
GRAPHI_API graphi_status graphi_group_step(graphi_group *group, const graphi_step_batch *batch, float *loss);

typedef struct graphi_group_info {
    int solvers, leaves; /* leaves: 0 where it is not deterministic */
    graphi_reduction reduction;
    int64_t gradient_bytes; /* that are added in a step */
    uint64_t steps;
    double step_ms; /* of the last step: all of it */
    /* Of the last step, of the solver that had most of it: waiting for others and adding, which nothing hides. */
    double exchange_ms;
    bool stopped; /* a process asked to stop */
} graphi_group_info;

/* All zero for NULL. */
GRAPHI_API void graphi_group_get_info(const graphi_group *group, graphi_group_info *info);

typedef struct graphi_solver_info {
    int cores;             /* that it has */
    int64_t first, samples; /* of the batch */
    /* Of the last step: gradients, exchange as above, the update. */
    double gradient_ms, exchange_ms, update_ms;
    bool placed;      /* its threads are pinned */
    char note[320];   /* what the user should know; "" otherwise */
    const graphi_plan *plan; /* of its gradients; the group's */
} graphi_solver_info;

/* The i-th solver, from 0. False past the last, *info untouched. */
GRAPHI_API bool graphi_group_at(const graphi_group *group, int i, graphi_solver_info *info);

/* NULL is accepted. */
GRAPHI_API void graphi_group_destroy(graphi_group *group);

#ifdef __cplusplus
}
#endif
#endif
