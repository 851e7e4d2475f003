/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that ask for a shape or give a value another one: results are views of their input. Source: ONNX Shape,
 * Size, Reshape, Flatten, Squeeze, Unsqueeze. Any thread. */
#include "value/families.h"

#include <string.h>

static graphi_status run_shape(struct op_call *call)
{
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    int64_t from = op_int(call, "start", 0), to = op_int(call, "end", x->rank);
    from = from < 0 ? from + x->rank : from;
    to = to < 0 ? to + x->rank : to;
    from = from < 0 ? 0 : from > x->rank ? x->rank : from;
    to = to < from ? from : to > x->rank ? x->rank : to;
    return value_list(call->where, to - from, x->dims + from, &call->out[0]);
}

static graphi_status run_size(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    TRY(op_new(call, 0, T_I64, 0, NULL, &out));
    *(int64_t *)out->data = call->in[0]->count;
    return GRAPHI_OK;
}

static graphi_status run_reshape(struct op_call *call)
{
    struct value_text a, b;
    int64_t dims[VALUE_RANK], known = 1;
    int rank, open = -1;
    TRY(op_tensor(call, 0, 0));
    TRY(op_list(call, 1, "shape", dims, &rank));
    graphi_tensor *x = call->in[0];
    const bool zeros = op_int(call, "allowzero", 0) != 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0 && !zeros && i < x->rank)
            dims[i] = x->dims[i];
        if (dims[i] == -1 && open >= 0)
            return op_fail(call, "found two sizes -1 in the shape %s, expected at most one",
                           dims_describe(rank, dims, &a));
        if (dims[i] == -1)
            open = i;
        else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
            return op_fail(call, "found the shape %s, expected sizes of 0 and more", dims_describe(rank, dims, &a));
    }
    if (open >= 0) {
        if (known == 0 ? x->count != 0 : x->count % known != 0)
            return op_fail(call, "found the shape %s for %s, expected as many elements", dims_describe(rank, dims, &a),
                           value_describe(x, &b));
        dims[open] = known == 0 ? 0 : x->count / known;
    }
    return op_view(call, 0, x, rank < 0 ? 0 : rank, dims);
}

static graphi_status run_flatten(struct op_call *call)
{
    TRY(op_tensor(call, 0, 0));
    graphi_tensor *x = call->in[0];
    int64_t axis = op_int(call, "axis", 1), dims[2] = {1, 1};
    if (axis < -x->rank || axis > x->rank)
        return op_fail(call, "found axis %lld of Flatten, expected %d to %d", (long long)axis, -x->rank, x->rank);
    axis = axis < 0 ? axis + x->rank : axis;
    for (int i = 0; i < x->rank; i++)
        dims[i >= axis] *= x->dims[i];
    return op_view(call, 0, x, 2, dims);
}

static graphi_status run_squeeze(struct op_call *call)
{
    int64_t axes[VALUE_RANK], dims[VALUE_RANK];
    bool out[VALUE_RANK] = {false};
    int count, rank = 0;
    TRY(op_tensor(call, 0, 0));
    graphi_tensor *x = call->in[0];
    TRY(op_list(call, 1, "axes", axes, &count));
    for (int k = 0, axis; k < count; k++) {
        TRY(op_axis(call, axes[k], x->rank, &axis));
        if (x->dims[axis] != 1)
            return op_fail(call, "found size %lld at axis %d of Squeeze, expected 1", (long long)x->dims[axis], axis);
        out[axis] = true;
    }
    for (int i = 0; i < x->rank; i++)
        if (count < 0 ? x->dims[i] != 1 : !out[i])
            dims[rank++] = x->dims[i];
    return op_view(call, 0, x, rank, dims);
}

static graphi_status run_unsqueeze(struct op_call *call)
{
    int64_t axes[VALUE_RANK], dims[VALUE_RANK];
    bool added[VALUE_RANK] = {false};
    int count, from = 0;
    TRY(op_tensor(call, 0, 0));
    graphi_tensor *x = call->in[0];
    TRY(op_list(call, 1, "axes", axes, &count));
    const int rank = x->rank + (count < 0 ? 0 : count);
    if (rank > VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, call->where, "found rank %d, expected at most %d", rank, VALUE_RANK);
    for (int k = 0, axis; k < count; k++) {
        TRY(op_axis(call, axes[k], rank, &axis));
        if (added[axis])
            return op_fail(call, "found axis %d twice, expected it once", axis);
        added[axis] = true;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = added[i] ? 1 : x->dims[from++];
    return op_view(call, 0, x, rank, dims);
}

const struct host_op host_ops_shape[] = {
    {"Shape", 1, 1, 1, "start end", run_shape, 0},
    {"Size", 1, 1, 1, "", run_size, 0},
    {"Reshape", 1, 2, 1, "shape allowzero", run_reshape, 0},
    {"Flatten", 1, 1, 1, "axis", run_flatten, 0},
    {"Squeeze", 1, 2, 1, "axes", run_squeeze, 0},
    {"Unsqueeze", 1, 2, 1, "axes", run_unsqueeze, 0},
    {0},
};
