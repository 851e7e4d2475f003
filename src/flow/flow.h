/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical ONNX graphs as plans: what has a lowering is compiled at the shapes of the inputs, everything else runs on
 * the host in between (path.h). A flow belongs to one model, which outlives it. Any number of threads run one. */
#ifndef FLOW_FLOW_H
#define FLOW_FLOW_H

#include "onnx/interpret.h"

struct flow;

struct flow_options {
    int threads; /* of plans; 0: all cores */
    bool traced; /* flow_timeline may be asked for */
};

graphi_status flow_create(const struct onnx_model *model, const struct flow_options *options, struct flow **out);
void flow_free(struct flow *flow); /* NULL is accepted; nobody may be running it */

/* As interpreter_run, in plans where there are any. The first run at other shapes compiles. Errors: of plans and of
 * the host's operators; MEMORY. */
graphi_status flow_run(struct flow *flow, struct interpreter *run);

/* Whether there is a lowering of an operator of the default domain. */
bool flow_knows(const char *op);

/* How the model runs at sizes of its inputs. */
struct flow_report {
    int64_t planned, folded, host, open; /* nodes: in plans, constants, on the host, and those that a run decides on */
    int64_t plans;
    double flops; /* of all plans */
    int64_t arena_bytes, packed_bytes;
    int executors, width; /* of the plan with the most FLOPs; 0: there is none */
    char *hosts;          /* a line for each node on the host, with the reason; the caller's (mem_free) */
};
/* Compiles, and runs nothing. Inputs are values[] by number; where there is none the declared sizes count, 1 where they
 * are open. MEMORY. */
graphi_status flow_inspect(const struct onnx_model *model, graphi_tensor *const *values,
                           const struct flow_options *options, struct flow_report *out);

/* Timelines of the plans that ran last: PREFIX.json and PREFIX.html of the first, PREFIX-2 and so on. INVALID: none
 * ran, or they were not traced. Errors: IO; MEMORY. While nobody runs it. */
graphi_status flow_timeline(const struct flow *flow, const char *prefix);

#endif
