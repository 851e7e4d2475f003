/* SPDX-License-Identifier: Apache-2.0 */
/* What the interpreter, its control nodes and flow share. A control node runs a body by the function that its caller
 * passes. */
#ifndef ONNX_GRAPH_RUN_H
#define ONNX_GRAPH_RUN_H

#include "onnx/interpret.h"

typedef graphi_status graph_run_fn(struct interpreter *run, const struct model_graph *graph);

graphi_status control_run(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run);

/* One node whose inputs are there; bodies by `graph_run`. */
graphi_status interpreter_node(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run);
/* All nodes of a graph, one by one, and of bodies in it. */
graphi_status interpreter_graph(struct interpreter *run, const struct model_graph *graph);

/* Makes it the value of a number, of which it takes over the holder's place. */
void interpreter_set(struct interpreter *run, int number, graphi_tensor *value);

#endif
