/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a canonical graph while they become a graph of ours. Each value is known (a host tensor), held (there when
 * the graph runs: an input of it), or computed by it. ONNX has channels in dimension 1, our images have them last: a
 * value is there in either order, or both, and is transposed where another order is asked for. Bool, float16 and
 * bfloat16 values are float32 inside the graph and themselves again where they leave it. One thread lowers. */
#ifndef FLOW_LOWER_H
#define FLOW_LOWER_H

#include "flow/weights.h"
#include "graphi/graph.h"
#include "graphi/ops.h"
#include "onnx/model.h"

struct flow_value {
    graphi_tensor *known;      /* its content; NULL: computed or held, or not there yet */
    bool computed;             /* by the graph, or held */
    bool held;                 /* there before the graph runs */
    bool varies;               /* known: from sizes or contents of inputs, so other shapes have another content */
    int stage, gone;           /* that gave it, and behind which nothing reads it, plus 1; 0: there (path.h) */
    struct graphi_tensor like; /* type and sizes of what is computed; no data */
    graphi_value plain, last;  /* as ONNX has it, and with channels last (rank 3 and more); GRAPHI_NONE: not there */
};

struct lowering {
    const struct onnx_model *model;
    graphi_graph *graph;
    struct flow_value *values; /* by number */
    struct weights_wanted wanted;
    ARRAY(int) inputs; /* numbers of the held values that the graph reads, as "i" with the number */
};

/* One node, as the functions of lowerings see it: `call` has tensors without data in place of what is computed. */
struct lower_call {
    struct lowering *l;
    const struct model_node *node;
    const struct lower_row *row;
    graphi_element type; /* of outputs that are float32 inside the graph; at first that of input 0 */
    struct op_call call;
};

/* Sets the node's outputs. Anything but OK and MEMORY: the node has no lowering here, and the message says why. */
typedef graphi_status lower_fn(struct lower_call *c);

struct lower_row {
    const char *op;
    lower_fn *lower;
    const char *builds; /* operation of ours, for functions shared by rows; NULL */
};

/* clang-format off */
#define LOWERINGS(X)                                                                                                   \
    X(elementwise) X(activations) X(comparisons) X(images) X(resampling) X(shapes) X(indexing) X(products)             \
    X(reductions) X(norms) X(quantization) X(recurrent)
/* clang-format on */
#define X(family) extern const struct lower_row lower_##family[];
LOWERINGS(X)
#undef X

/* UNSUPPORTED at the node. */
#define lower_fail(c, ...) fail(GRAPHI_UNSUPPORTED, (c)->node->where, __VA_ARGS__)

const struct lower_row *lower_find(const char *op);

/* A graph without nodes, of which all values but known ones are held or not there. */
graphi_status lower_begin(struct lowering *l);
/* One operator whose inputs are there: it is computed now where all are known, lowered otherwise (*folded tells).
 * Errors: MEMORY; INVALID where the graph has an error now, and is of no more use; others: there is no lowering,
 * outputs are not there, and the message says why. */
graphi_status lower_operator(struct lowering *l, const struct model_node *node, bool *folded);
/* The value as an output of the graph, in ONNX's order and of its own type, of which *dtype is the graph's. */
graphi_status lower_output(struct lowering *l, int number, const char *name, graphi_dtype *dtype);
void lower_end(struct lowering *l); /* the graph goes, if it is still there */

/* --- for the functions --- */

/* Input i, NULL: left out. */
struct flow_value *lower_in(const struct lower_call *c, int i);
/* Input i must be there as floats of at most 32 bits. */
graphi_status lower_floats(const struct lower_call *c, int i);
/* Input i must be there, of a type that the graph can move. */
graphi_status lower_movable(const struct lower_call *c, int i);
/* Inputs from i on must be known or left out. */
graphi_status lower_constants(const struct lower_call *c, int i);

/* The value in ONNX's order, or with channels last. GRAPHI_NONE after an error of the graph. */
graphi_value lower_plain(struct lowering *l, struct flow_value *value);
graphi_value lower_last(struct lowering *l, struct flow_value *value);
/* With dimensions of 1 before it up to `rank`. */
graphi_value lower_ranked(struct lowering *l, struct flow_value *value, int rank, bool last);
/* In another order of dimensions. */
graphi_value lower_permuted(struct lowering *l, struct flow_value *value, const int64_t *perm);
/* A transpose of what has that rank, or a reshape where no element moves. */
graphi_value lower_move(struct lowering *l, graphi_value value, int rank, const int64_t *perm);
graphi_value lower_number(struct lowering *l, double number);
/* Numbers that a lowering made of constants, kept as "n" with the node's first output and `part`; the same for all
 * shapes. */
graphi_value lower_kept(struct lower_call *c, const char *part, int rank, const int64_t *dims, const float *data);

/* Elements index[0], index[1], ... along an axis. */
graphi_value lower_pick(struct lowering *l, graphi_value x, int axis, int64_t count, const int64_t *index);

/* The tensor that stands for a value: its content, or type and sizes alone. */
static inline const graphi_tensor *lower_form(const struct flow_value *value)
{
    return value->known ? value->known : &value->like;
}

/* Makes it a computed value of that type and size. */
void lower_be_like(struct flow_value *value, graphi_element type, int rank, const int64_t *dims);
/* Output i is that value of the graph, of the call's type where it is float32. INVALID: the graph has an error. */
graphi_status lower_set(struct lower_call *c, int i, graphi_value value, bool last);
/* The same where the result is a truth value, as 0 and 1. */
graphi_status lower_set_bool(struct lower_call *c, int i, graphi_value value, bool last);

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
