/* SPDX-License-Identifier: Apache-2.0 */
/* A stage of a path (path.h): one plan, then nodes on the host. It is made by one thread, immutable then, and shared by
 * paths. */
#ifndef FLOW_STAGE_H
#define FLOW_STAGE_H

#include "flow/segment.h"
#include "onnx/graph_run.h"

/* A node on the host; where `join` is given, the outputs of an If are those of that branch. */
struct host_step {
    const struct model_node *node;
    const struct model_graph *join;
};

struct stage {
    atomic_int holders; /* paths */
    ARRAY(struct stage_constant {
        int number;
        graphi_tensor *content;
    })
    constants; /* what is known and is read on the host, or by the caller */
    ARRAY(struct stage_move {
        int from;
        int to;
    })
    moves;                   /* joins of what was there before the stage */
    struct segment *segment; /* NULL: none */
    ARRAY(struct host_step) host;
    ARRAY(int) drops; /* values that nothing reads any more */
    bool ends;
};

graphi_status stage_create(struct stage **out); /* MEMORY; one holder */
void stage_drop(struct stage *stage);           /* one holder fewer; NULL is accepted */

/* Bodies of control nodes run by `graph_run`. Errors: of executions and of the host's operators. */
graphi_status stage_run(const struct stage *stage, struct interpreter *run, graph_run_fn *graph_run);
/* Up to the nodes on the host. */
graphi_status stage_begin(const struct stage *stage, struct interpreter *run);
graphi_status host_step_run(const struct host_step *step, struct interpreter *run, graph_run_fn *graph_run);

#endif
