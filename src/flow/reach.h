/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a model's values before anything runs: which contents sizes and conditions follow from, and what the
 * body of a control node reads of the graphs around it. */
#ifndef FLOW_REACH_H
#define FLOW_REACH_H

#include "onnx/model.h"

struct reach {
    bool *asked; /* by value: its content reaches a shape, an axis, a count or a condition */
    ARRAY(struct reach_graph {
        const struct model_graph *graph;
        ARRAY(int) captures; /* values of graphs around it that it, or a body in it, reads; no constants */
    })
    graphs; /* the model's own first, then all bodies */
};

graphi_status reach_find(const struct onnx_model *model, struct reach *out); /* MEMORY */
void reach_free(struct reach *reach);
const struct reach_graph *reach_of(const struct reach *reach, const struct model_graph *graph);

#endif
