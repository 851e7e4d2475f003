/* SPDX-License-Identifier: Apache-2.0 */
/* A canonical graph while it becomes a graph of ours. Each value is known (a host tensor), or computed by the graph.
 * ONNX has channels in dimension 1, our images have them last: a computed value is there in either order, or both, and
 * is transposed where another order is asked for. One thread lowers. */
#ifndef FLOW_LOWER_H
#define FLOW_LOWER_H

#include "graphi/graph.h"
#include "graphi/ops.h"
#include "onnx/model.h"

struct flow_value {
    graphi_tensor *known;      /* its content; NULL: computed */
    bool computed;             /* or an input */
    struct graphi_tensor like; /* type and sizes of what is computed; no data */
    graphi_value plain, last;  /* as ONNX has it, and with channels last (rank 3 and more); GRAPHI_NONE: not there */
};

struct lowering {
    const struct onnx_model *model;
    graphi_graph *graph;
    struct flow_value *values; /* by number */
    int parameters;            /* made so far: their names */
    int64_t planned, folded;
};

/* One node, as the functions of lowerings see it: `call` has tensors without data in place of what is computed. */
struct lower_call {
    struct lowering *l;
    const struct model_node *node;
    const struct lower_row *row;
    struct op_call call;
};

/* Sets the node's outputs. Anything but OK and MEMORY: the node has no lowering here, and the message says why. */
typedef graphi_status lower_fn(struct lower_call *c);

struct lower_row {
    const char *op;
    lower_fn *lower;
    const char *builds; /* operation of ours, for functions shared by rows; NULL */
};

#define LOWERINGS(X) X(elementwise) X(images) X(shapes) X(products) X(recurrent)
#define X(family) extern const struct lower_row lower_##family[];
LOWERINGS(X)
#undef X

/* UNSUPPORTED at the node. */
#define lower_fail(c, ...) fail(GRAPHI_UNSUPPORTED, (c)->node->where, __VA_ARGS__)

const struct lower_row *lower_find(const char *op);
/* Lowers the whole graph; *l must be zeroed but for the model, and values[] holds inputs. The graph's outputs are
 * "o0", "o1", ... and its inputs "i" with their numbers. Ends with the graph's own status. */
graphi_status lower_all(struct lowering *l);
void lower_free(struct lowering *l); /* values and graph */

/* --- for the functions --- */

/* Input i, NULL: left out. */
struct flow_value *lower_in(const struct lower_call *c, int i);
/* Input i must be there as float32. */
graphi_status lower_floats(const struct lower_call *c, int i);

/* The value in ONNX's order, or with channels last. GRAPHI_NONE after an error of the graph. */
graphi_value lower_plain(struct lowering *l, struct flow_value *value);
graphi_value lower_last(struct lowering *l, struct flow_value *value);
/* With dimensions of 1 before it up to `rank`. */
graphi_value lower_ranked(struct lowering *l, struct flow_value *value, int rank, bool last);
/* A known tensor in another order of dimensions as a parameter or constant; perm NULL: as it is. */
graphi_value lower_known(struct lowering *l, const graphi_tensor *known, const int64_t *perm);
/* The same of any value. */
graphi_value lower_permuted(struct lowering *l, struct flow_value *value, const int64_t *perm);
/* A transpose of what has that rank, or a reshape where no element moves. */
graphi_value lower_move(struct lowering *l, graphi_value value, int rank, const int64_t *perm);
graphi_value lower_number(struct lowering *l, double number);
graphi_value lower_floats_of(struct lowering *l, int rank, const int64_t *dims, const float *data);

/* Makes it a computed value of that type and size. */
void lower_be_like(struct flow_value *value, graphi_element type, int rank, const int64_t *dims);
/* Output i is that value of the graph. INVALID: the graph has an error. */
graphi_status lower_set(struct lower_call *c, int i, graphi_value value, bool last);

/* Whether channels-last is the cheaper order for the value: it is there in that alone. */
static inline bool lower_is_last(const struct flow_value *v)
{
    return v->computed && v->plain == GRAPHI_NONE && v->last != GRAPHI_NONE;
}
/* Where dimension `axis` of ONNX's order is with channels last. */
static inline int lower_axis(int axis, int rank)
{
    return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

#endif
