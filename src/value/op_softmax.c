/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and its kin along an axis. `flat` is ours: opsets before 13 take all dimensions from the axis on as one.
 * Source: ONNX Softmax, LogSoftmax, Hardmax. Any thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>

enum kind { SOFT, LOG, HARD };

static void line(enum kind kind, double *x, int64_t n)
{
    double peak = -INFINITY, sum = 0;
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i] > peak || isnan(x[i])) {
            peak = x[i];
            best = i;
        }
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - peak);
    for (int64_t i = 0; i < n; i++)
        x[i] = kind == HARD ? i == best : kind == LOG ? x[i] - peak - log(sum) : exp(x[i] - peak) / sum;
}

static graphi_status run_softmax(struct op_call *call)
{
    graphi_tensor *out;
    int64_t strides[VALUE_RANK];
    int axis;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const bool flat = op_int(call, "flat", 0) != 0;
    TRY(op_axis(call, op_int(call, "axis", flat ? 1 : -1), x->rank, &axis));
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    dims_strides(x->rank, x->dims, strides);
    const int64_t stride = flat ? 1 : strides[axis], n = flat ? strides[axis] * x->dims[axis] : x->dims[axis];
    const size_t size = element_size(x->type);
    double *room = mem_alloc((size_t)n * sizeof *room);
    if (!room)
        return fail_memory(call->where, (size_t)n * sizeof *room);
    for (int64_t at = 0; n && at < x->count; at++) {
        if (at / stride % n != 0)
            continue;
        element_load(DOMAIN_F64, x->type, (const char *)x->data + (size_t)at * size, stride, n, room);
        if (x->type == T_F64 && stride == 1) /* the elements themselves were given */
            for (int64_t i = 0; i < n; i++)
                room[i] = ((const double *)x->data)[at + i];
        line((enum kind)call->op->variant, room, n);
        for (int64_t i = 0; i < n; i++)
            element_store(DOMAIN_F64, x->type, &room[i], 1, (char *)out->data + (size_t)(at + i * stride) * size);
    }
    mem_free(room);
    return GRAPHI_OK;
}

const struct host_op host_ops_softmax[] = {
    {"Softmax", 1, 1, 1, "axis flat", run_softmax, SOFT},
    {"LogSoftmax", 1, 1, 1, "axis flat", run_softmax, LOG},
    {"Hardmax", 1, 1, 1, "axis flat", run_softmax, HARD},
    {0},
};
