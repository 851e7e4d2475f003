/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise nodes as programs: what fusion asks, and helpers for gradient rules. */
#ifndef OPS_ELEMENTWISE_H
#define OPS_ELEMENTWISE_H

#include "graph/op.h"
#include "kernels/program.h"

/* Appends the instructions of an OP_ELEMENTWISE node (a single operation, add_n, or a whole program) to `program`,
 * reading the values argument[i] for its inputs. Instructions are added behind those there are, so program->inputs
 * must be final. result[k] is the value number of output k (PROGRAM_MAX_OUTPUTS at most). UNSUPPORTED when the program
 * would be too long. */
graphi_status elementwise_append(const struct node *node, const int16_t *argument, struct program *program,
                                 int16_t *result);

/* Shorthands for rules that build graphs. */
graphi_value build1(graphi_graph *graph, const char *kind, graphi_value a);
graphi_value build2(graphi_graph *graph, const char *kind, graphi_value a, graphi_value b);
graphi_value build3(graphi_graph *graph, const char *kind, graphi_value a, graphi_value b, graphi_value c);
graphi_value build_scalar(graphi_graph *graph, float value);

/* `gradient` summed over what broadcasting repeated, so that it has the type of `like`. */
graphi_value sum_like(graphi_graph *graph, graphi_value gradient, graphi_value like);

/* `value` repeated to the type of `like`. */
graphi_value broadcast_like(graphi_graph *graph, graphi_value value, graphi_value like);

#endif
