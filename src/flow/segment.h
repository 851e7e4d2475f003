/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a block as one plan: host values in, host values out. Inputs are read and outputs are written where they
 * lie, unless memory is not aligned. Any number of threads run one, each with a run of its own, of which idle ones are
 * kept. */
#ifndef FLOW_SEGMENT_H
#define FLOW_SEGMENT_H

#include "flow/lower.h"
#include "graphi/run.h"

struct segment_port {
    int number, port; /* of the value, and of the plan */
    graphi_dtype dtype;
    struct graphi_tensor like; /* of an output: type and sizes */
};

struct segment {
    struct weights *weights;
    graphi_graph *graph;
    graphi_plan *plan;
    double flops; /* of the graph, before passes */
    ARRAY(struct segment_port) inputs;
    ARRAY(struct segment_port) outputs;
    pthread_mutex_t lock; /* of what follows */
    ARRAY(graphi_run *) idle;
    bool traced; /* runs keep records of their operations */
};

/* Compiles what was lowered, with `outputs` of the block leaving it; takes the graph over. `like` is the same part of a
 * block at other sizes, whose setting serves where the work is about as much: then none is searched for. NULL: there is
 * none. Errors: of plans; MEMORY. */
graphi_status segment_create(struct lowering *l, const int *outputs, size_t count, const struct segment *like,
                             struct weights *weights, const graphi_machine *machine, bool traced, struct segment **out);
void segment_free(struct segment *segment); /* NULL is accepted */

/* values[]: by number. Errors: of executions. */
graphi_status segment_run(struct segment *segment, graphi_tensor **values);

#endif
