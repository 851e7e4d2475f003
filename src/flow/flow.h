/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical ONNX graphs as plans: a graph whose operators all have a lowering is compiled at the shapes of its inputs
 * and kept; everything else stays with the interpreter. A flow belongs to one model, which outlives it. Any number of
 * threads run one. */
#ifndef FLOW_FLOW_H
#define FLOW_FLOW_H

#include "onnx/model.h"

struct flow;

graphi_status flow_create(const struct onnx_model *model, int threads, struct flow **out);
void flow_free(struct flow *flow); /* NULL is accepted; nobody may be running it */

/* Runs the model as a plan: `values` holds the inputs by number and takes the outputs. *done false: it has no plan at
 * these shapes, and nothing was changed. The first run at other shapes compiles. Errors: of runs; MEMORY. */
graphi_status flow_run(struct flow *flow, graphi_tensor **values, bool *done);

/* Whether there is a lowering of an operator of the default domain. */
bool flow_knows(const char *op);

/* Nodes that run in a plan, 0 or all but those that were folded, at the shapes of `values`, and why not ("" where
 * there is a plan). Inputs that are not there have the declared sizes, 1 where none is. */
struct flow_report {
    int64_t planned, folded;
    char reason[320];
};
graphi_status flow_inspect(const struct onnx_model *model, struct flow_report *out);

#endif
