/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of tables that lookups alone read, as lists of rows: what graphi_minimize updates such a table by. */
#ifndef GRAPH_SPARSE_H
#define GRAPH_SPARSE_H

#include "graph/graph.h"

/* What is updated: a parameter by its gradient. Of a table by a list, `rows` is the list and `gradient` has a row for
 * each of it. */
struct update_target {
    graphi_value parameter, gradient;
    graphi_value rows; /* GRAPHI_NONE: all of the parameter */
};

/* How many ids a list of the target's gradient is of, at the bound; 0: the gradient cannot be one. */
struct sparse_ids {
    int64_t count;
    bool alike;   /* ids of all lookups have one shape but for dimension 0: the dense gradient is one sum, too */
    bool bounded; /* it could be a list, but for ids of several lookups that follow a symbol */
};
struct sparse_ids sparse_ids(const graphi_graph *graph, const struct update_target *target);

/* Makes it one, where sparse_ids gives more than 0: duplicate ids are summed in the order of the dense gradient. */
void sparse_gradient(graphi_graph *graph, struct update_target *target);

/* Of a parameter of the target's shape the rows of the list, or all of it; and its next content, which has `value` for
 * these. */
graphi_value sparse_read(graphi_graph *graph, const struct update_target *target, graphi_value parameter);
graphi_value sparse_written(graphi_graph *graph, const struct update_target *target, graphi_value parameter,
                            graphi_value value);

/* The sum of squares of the whole gradient, the same bits in either form. */
graphi_value sparse_squares(graphi_graph *graph, const struct update_target *target);

#endif
