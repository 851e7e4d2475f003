/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of dynamic networks as builder, shape rules, binding, gradients and passes see them. `vertices` and
 * `vertices_gradient` have one region a vertex function, of which rows are vertices (symbol 0) or edges (symbol 1).
 *
 * Inputs of a region by position: the frontier, rows from outside, then what is gathered (backward: gradients of all
 * states), then what has no rows. Outputs of a region are named "o7": output 7 of the node; those that nobody reads may
 * be missing. Inputs of a node: the frontier, backward the gradients of states that there are (attribute "seeds"), then
 * of each function its rows and what has none. Outputs of `vertices`: the states, up to VERTICES_FIRST_KEPT (fillers
 * beyond), then what the functions computed. */
#ifndef OPS_VERTICES_H
#define OPS_VERTICES_H

#include "kernels/vertices.h"
#include "ops/check.h"

enum { VERTICES_STATES = 4, VERTICES_FIRST_KEPT = VERTICES_STATES };
enum { BODY_ROWS, BODY_EDGES }; /* symbols of a region */

/* What a function gathers, as the attribute "format" has it. */
struct vertices_gather {
    int64_t state, work, child, output; /* work: enum vertices_work; output: backward, of the gradient */
};

struct vertices_function {
    const graphi_graph *body;
    int64_t rows, gathers, weights;
    const struct vertices_gather *gather;
    int input; /* of the node: its first */
};

struct vertices_node {
    struct frontier_bounds bounds;
    bool backward;
    int64_t states, seeds; /* seeds: bit i: there is a gradient of state i */
    const int64_t *width;
    int functions;
    struct vertices_function function[FRONTIER_FUNCTIONS];
    const int64_t *symbol; /* of all vertices, then of each function its vertices and edges */
};

/* INVALID where attributes, regions and inputs do not agree. */
graphi_status vertices_node_of(const char *where, const struct node *node, struct vertices_node *out);

/* The attribute "bounds". */
enum { VERTEX_BOUNDS = 5 };
void vertex_bounds_put(const struct frontier_bounds *bounds, int64_t ints[VERTEX_BOUNDS]);
graphi_status vertex_bounds_of(const char *where, const struct node *node, struct frontier_bounds *bounds);

/* Input i is the result of a frontier with these bounds, or, in a region, an input. */
graphi_status vertex_expect_frontier(const struct shape_call *call, int input, const struct frontier_bounds *bounds);

/* The type of an array with rows of a function, whose other dimensions are those of `like`. */
graphi_status vertex_rows_type(const struct shape_call *call, int64_t symbol, int64_t bound,
                               const struct value_type *like, struct value_type *out);

/* Which output of the node an output of a region is; -1: none. */
int64_t vertices_output(const char *name);

/* Inputs of a region in their order, frontier first; `list` has room for all values. Gives their number. */
int vertices_body_inputs(const graphi_graph *body, int32_t *list);

/* The type of an output as the attribute "types" has it: function, enum vertices_rows, dtype, rank, sizes behind the
 * first. */
enum { VERTICES_TYPE = 4 + GRAPHI_MAX_RANK };
void vertices_type_put(int64_t ints[VERTICES_TYPE], int function, enum vertices_rows rows,
                       const struct value_type *type);

graphi_status vertices_bind_node(const struct bind_call *call, struct kernel *kernel);
void vertices_rule(struct gradient_call *call);

/* A node of one graph built again in another one. map: values of `from` in `to`, GRAPHI_NONE: not there. Constants come
 * along. Attributes named "symbol" are translated. */
struct vertices_copy {
    const graphi_graph *from;
    graphi_graph *to;
    graphi_value *map;
    const graphi_value *transposed; /* in `to`, of weights: products read these instead of them; NULL: none are there */
    int64_t symbol[2];
};
graphi_value vertices_copy_value(struct vertices_copy *copy, int32_t value);
void vertices_copy_node(struct vertices_copy *copy, int32_t node);

/* Does the node multiply rows by a matrix that is stored the other way round and has no rows itself? Products in a loop
 * read a transposed copy of it, made once outside. */
bool vertices_transposes(const graphi_graph *graph, const struct node *node);

/* Its transpose as a node. */
graphi_value vertices_transpose(graphi_graph *graph, graphi_value matrix);

/* An empty region with its symbols and the frontier as input. NULL: an error, recorded in `graph`. */
graphi_graph *vertices_body(graphi_graph *graph, const struct frontier_bounds *bounds);

/* What a node is made of, while it is gathered. */
struct vertices_build {
    graphi_graph *graph;
    struct frontier_bounds bounds;
    int64_t states, width[VERTICES_STATES], seeds, symbol[1 + 2 * FRONTIER_FUNCTIONS];
    int outputs;
    ARRAY(int64_t) format, types;
    ARRAY(graphi_value) inputs; /* of the node */
    graphi_graph *body[FRONTIER_FUNCTIONS];
    bool broken; /* out of memory */
};
void vertices_build_output(struct vertices_build *b, int function, graphi_graph *body, graphi_value value);
void vertices_build_function(struct vertices_build *b, int64_t rows, int64_t gathers, int64_t weights,
                             const struct vertices_gather *gather);
graphi_value vertices_build_end(struct vertices_build *b, const struct op_kind *kind);

/* vertices, then vertices_gradient. */
extern const struct op_kind ops_vertices[];

#endif
