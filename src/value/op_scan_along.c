/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products along an axis. Source: ONNX CumSum, CumProd. Any thread. */
#include "value/element.h"
#include "value/families.h"

/* One line of n elements, `stride` apart. */
static void cumulate(const graphi_tensor *x, graphi_tensor *out, int64_t at, int64_t n, int64_t stride, bool product,
                     bool exclusive, bool reverse)
{
    const bool floats = element_is_float(x->type);
    const size_t size = element_size(x->type);
    double number = product;
    int64_t integer = product;
    for (int64_t k = 0; k < n; k++) {
        const int64_t place = at + (reverse ? n - 1 - k : k) * stride;
        const double d = number;
        const int64_t i = integer;
        if (floats)
            number = product ? number * value_double(x, place) : number + value_double(x, place);
        else
            integer = (int64_t)(product ? (uint64_t)integer * (uint64_t)value_int(x, place)
                                        : (uint64_t)integer + (uint64_t)value_int(x, place));
        char *to = (char *)out->data + (size_t)place * size;
        if (floats)
            element_store(DOMAIN_F64, x->type, exclusive ? &d : &number, 1, to);
        else
            element_store(DOMAIN_I64, x->type, exclusive ? &i : &integer, 1, to);
    }
}

static graphi_status run_cumulate(struct op_call *call)
{
    graphi_tensor *out;
    int64_t axes[VALUE_RANK], strides[VALUE_RANK];
    int axis, count;
    TRY(op_tensor(call, 0, 0));
    TRY(op_numbers(call, 1, axes, &count));
    const graphi_tensor *x = call->in[0];
    if (count != 1)
        return op_fail(call, "found %d axes of %s, expected 1", count, call->op->name);
    TRY(op_axis(call, axes[0], x->rank, &axis));
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    dims_strides(x->rank, x->dims, strides);
    const bool exclusive = op_int(call, "exclusive", 0) != 0, reverse = op_int(call, "reverse", 0) != 0;
    const int64_t n = x->dims[axis], stride = strides[axis];
    for (int64_t at = 0; at < x->count; at += n * stride)
        for (int64_t i = 0; i < stride; i++)
            cumulate(x, out, at + i, n, stride, call->op->variant, exclusive, reverse);
    return GRAPHI_OK;
}

const struct host_op host_ops_scan_along[] = {
    {"CumSum", 2, 2, 1, "exclusive reverse", run_cumulate, 0},
    {"CumProd", 2, 2, 1, "exclusive reverse", run_cumulate, 1},
    {0},
};
