/* SPDX-License-Identifier: Apache-2.0 */
/* Host forms of operators: a function from values to values, known by ONNX's name in the default domain at the newest
 * opset. A family is a file that ends in one table of rows, which op.c lists. They are the fallback for what no plan
 * does, fold constants, and are the oracle of tests. docs/add-an-onnx-operator.md walks through one. Functions keep
 * nothing between calls; any thread. */
#ifndef VALUE_OP_H
#define VALUE_OP_H

#include "base/status.h"
#include "value/value.h"

enum attribute_kind {
    ATTRIBUTE_INT,
    ATTRIBUTE_FLOAT,
    ATTRIBUTE_STRING,
    ATTRIBUTE_TENSOR,
    ATTRIBUTE_INTS,
    ATTRIBUTE_FLOATS,
    ATTRIBUTE_STRINGS
};

struct attribute {
    const char *name;
    enum attribute_kind kind;
    size_t count; /* of lists */
    int64_t i;
    float f;
    const char *s;
    graphi_tensor *tensor;
    int64_t *ints;
    float *floats;
    const char **strings;
};

struct op_call {
    const struct host_op *op;
    const char *where; /* the node, for messages */
    int ins, outs;
    graphi_tensor *const *in; /* NULL: left out */
    graphi_tensor **out;      /* NULL before the call; a function fills those that exist */
    const bool *wanted;       /* of each output; what is not may be left NULL */
    const struct attribute *attributes;
    size_t attribute_count;
};

struct host_op {
    const char *name;
    int least, most;        /* inputs; most -1: any number */
    int outs;               /* outputs at most; -1: any number */
    const char *attributes; /* names that it takes, separated by blanks; others are refused when a model is opened */
    graphi_status (*run)(struct op_call *call);
    int variant; /* which of the file's operators a shared function is to be */
};

/* NULL: there is no host form of that name, which is "DOMAIN.TYPE" of operators outside the default domain. */
const struct host_op *host_op_find(const char *name);
/* All of them, one a call from 0 on; NULL: no more. */
const struct host_op *host_op_at(size_t i);

/* Runs an operator: checks numbers of inputs and outputs, and afterwards that what is wanted is there. On failure all
 * outputs are NULL. */
graphi_status host_op_run(struct op_call *call);

/* --- for the functions ----------------------------------------------------------------------------------------- */

/* Attributes; the second value where there is none. */
const struct attribute *op_attribute(const struct op_call *call, const char *name);
int64_t op_int(const struct op_call *call, const char *name, int64_t otherwise);
float op_float(const struct op_call *call, const char *name, float otherwise);
const char *op_string(const struct op_call *call, const char *name, const char *otherwise);
/* NULL and *count 0 where there is none. */
const int64_t *op_ints(const struct op_call *call, const char *name, size_t *count);

static inline graphi_tensor *op_in(const struct op_call *call, int i)
{
    return i < call->ins ? call->in[i] : NULL;
}
static inline bool op_wants(const struct op_call *call, int i)
{
    return i < call->outs && (!call->wanted || call->wanted[i]);
}

/* Output i, to be filled. */
graphi_status op_new(struct op_call *call, int i, graphi_element type, int rank, const int64_t *dims,
                     graphi_tensor **out);
/* Output i is a view of a value. */
graphi_status op_view(struct op_call *call, int i, graphi_tensor *of, int rank, const int64_t *dims);

/* INVALID at the node. */
#define op_fail(call, ...) fail(GRAPHI_INVALID, (call)->where, __VA_ARGS__)

/* Input i must be there as a tensor, of that type where one is given. */
graphi_status op_tensor(const struct op_call *call, int i, graphi_element type);
/* Inputs i and up that are there must be tensors of input i's type. */
graphi_status op_same_types(const struct op_call *call, int from, int to);

/* An axis of -rank to rank - 1 as one of 0 to rank - 1. */
graphi_status op_axis(const struct op_call *call, int64_t axis, int rank, int *out);

/* The numbers of an integer input as int64, at most VALUE_RANK many; *count -1 where the input is left out. */
graphi_status op_numbers(const struct op_call *call, int i, int64_t numbers[VALUE_RANK], int *count);
/* Input i, else the attribute `name`; *count -1 where there is neither. */
graphi_status op_list(const struct op_call *call, int i, const char *name, int64_t numbers[VALUE_RANK], int *count);

/* The shape that all of them broadcast to. */
graphi_status op_broadcast(const struct op_call *call, graphi_tensor *const *values, int count, int *rank,
                           int64_t dims[VALUE_RANK]);

#endif
