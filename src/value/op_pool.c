/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of any number of spatial dimensions, and those over whole images. Source: ONNX MaxPool, AveragePool, LpPool,
 * Global*Pool, MaxUnpool, MaxRoiPool is not here. Any thread. */
#include "base/memory.h"
#include "value/dense.h"
#include "value/families.h"
#include "value/window.h"

#include <math.h>
#include <string.h>

enum kind { MAX, AVERAGE, LP };

struct pool {
    struct window w;
    enum kind kind;
    bool pads_count;   /* of an average */
    bool column_major; /* of the places of maxima */
    double p;
};

struct pooled {
    double value;
    int64_t at; /* of a maximum; -1: the window holds padding alone */
};

/* How many taps of the window lie in the image and its padding: those beyond come from rounding up. */
static bool in_padding(const struct window *w, const int64_t *out, const int64_t *tap)
{
    for (int i = 0; i < w->rank; i++)
        if (out[i] * w->stride[i] + tap[i] * w->dilation[i] >= w->before[i] + w->in[i] + w->after[i])
            return false;
    return true;
}

static struct pooled pool_one(const struct pool *p, const graphi_tensor *x, int64_t base, const int64_t *out)
{
    int64_t tap[WINDOW_RANK] = {0}, count = 0;
    struct pooled result = {.value = p->kind == MAX ? -INFINITY : 0, .at = -1};
    do {
        const int64_t at = window_place(&p->w, out, tap);
        count += at >= 0 || (p->pads_count && in_padding(&p->w, out, tap));
        if (at < 0)
            continue;
        const double number =
            x->type == T_F32 ? (double)((const float *)x->data)[base + at] : value_double(x, base + at);
        if (p->kind == AVERAGE)
            result.value += number;
        else if (p->kind == LP)
            result.value += pow(fabs(number), p->p);
        else if (result.at < 0 || number > result.value || (isnan(number) && !isnan(result.value))) {
            result.value = number;
            result.at = at;
        }
    } while (window_next(p->w.rank, p->w.kernel, tap));
    if (p->kind == AVERAGE)
        result.value /= (double)(count ? count : 1);
    if (p->kind == LP)
        result.value = pow(result.value, 1 / p->p);
    return result;
}

/* A place in C order as one in Fortran's order. */
static int64_t turned(const struct window *w, int64_t at)
{
    int64_t result = 0, index[WINDOW_RANK];
    for (int i = w->rank - 1; i >= 0; i--) {
        index[i] = at % w->in[i];
        at /= w->in[i];
    }
    for (int i = w->rank - 1; i >= 0; i--)
        result = result * w->in[i] + index[i];
    return result;
}

static void pool_all(const struct pool *p, const graphi_tensor *x, graphi_tensor *out, graphi_tensor *places)
{
    const size_t size = element_size(x->type);
    const int64_t images = x->dims[0] * x->dims[1];
    int64_t to = 0;
    for (int64_t i = 0; i < images && p->w.outs; i++) {
        int64_t index[WINDOW_RANK] = {0};
        do {
            const struct pooled one = pool_one(p, x, i * p->w.ins, index);
            element_store(DOMAIN_F64, x->type, &one.value, 1, (char *)out->data + (size_t)to * size);
            if (places)
                ((int64_t *)places->data)[to] = i * p->w.ins + (one.at < 0        ? 0
                                                                : p->column_major ? turned(&p->w, one.at)
                                                                                  : one.at);
            to++;
        } while (window_next(p->w.rank, p->w.out, index));
    }
}

static graphi_status run_pool(struct op_call *call)
{
    struct pool p = {.kind = (enum kind)call->op->variant};
    graphi_tensor *out, *places = NULL;
    size_t given;
    int64_t dims[VALUE_RANK];
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t *kernel = op_ints(call, "kernel_shape", &given);
    if (given != (size_t)(x->rank - 2))
        return op_fail(call, "found %zu sizes of kernel_shape for rank %d, expected %d", given, x->rank, x->rank - 2);
    TRY(window_find(call, x, kernel, &p.w));
    p.pads_count = op_int(call, "count_include_pad", 0) != 0;
    p.column_major = op_int(call, "storage_order", 0) != 0;
    p.p = (double)op_int(call, "p", 2);
    memcpy(dims, x->dims, sizeof dims);
    memcpy(dims + 2, p.w.out, (size_t)p.w.rank * sizeof *dims);
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    if (op_wants(call, 1))
        TRY(op_new(call, 1, T_I64, x->rank, dims, &places));
    pool_all(&p, x, out, places);
    return GRAPHI_OK;
}

static graphi_status run_global(struct op_call *call)
{
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], each = 1;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const double p = (double)op_int(call, "p", 2);
    if (x->rank < 2)
        return op_fail(call, "found rank %d, expected [N, C, ...]", x->rank);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i < 2 ? x->dims[i] : 1;
        each *= i < 2 ? 1 : x->dims[i];
    }
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    for (int64_t k = 0; k < out->count; k++) {
        double sum = call->op->variant == MAX ? -INFINITY : 0;
        for (int64_t i = 0; i < each; i++) {
            const double number = value_double(x, k * each + i);
            if (call->op->variant == MAX)
                sum = isnan(number) || number > sum ? number : sum;
            else
                sum += call->op->variant == LP ? pow(fabs(number), p) : number;
        }
        sum = call->op->variant == AVERAGE ? sum / (double)each : call->op->variant == LP ? pow(sum, 1 / p) : sum;
        element_store(DOMAIN_F64, x->type, &sum, 1, (char *)out->data + (size_t)k * element_size(x->type));
    }
    return GRAPHI_OK;
}

static graphi_status run_unpool(struct op_call *call)
{
    struct window w = {0};
    graphi_tensor *out;
    size_t given;
    int64_t dims[VALUE_RANK];
    int count;
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, T_I64));
    const graphi_tensor *x = call->in[0], *places = call->in[1];
    const int64_t *kernel = op_ints(call, "kernel_shape", &given);
    w.rank = x->rank - 2;
    if (x->rank < 3 || given != (size_t)w.rank || places->count != x->count)
        return op_fail(call, "found rank %d, %zu sizes of kernel_shape, %lld places, expected them to agree", x->rank,
                       given, (long long)places->count);
    TRY(window_attributes(call, &w));
    TRY(op_numbers(call, 2, dims, &count));
    int64_t inner[VALUE_RANK];
    memcpy(inner, x->dims, sizeof inner);
    for (int i = 0; i < w.rank; i++)
        inner[i + 2] = (x->dims[i + 2] - 1) * w.stride[i] + kernel[i] - w.before[i] - w.after[i];
    if (count < 0)
        memcpy(dims, inner, sizeof dims);
    else if (count != x->rank)
        return op_fail(call, "found an output_shape of %d sizes, expected %d", count, x->rank);
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    memset(out->data, 0, out->bytes);
    const size_t size = element_size(x->type);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t from = ((const int64_t *)places->data)[i], to = 0, strides[VALUE_RANK];
        dims_strides(x->rank, inner, strides);
        bool inside = from >= 0;
        for (int k = 0, r; k < x->rank; k++) {
            const int64_t at = strides[k] ? from / strides[k] : 0;
            r = k;
            from -= at * strides[k];
            inside = inside && at < dims[r];
            to = to * dims[r] + at;
        }
        if (!inside)
            return op_fail(call, "found place %lld, expected one of the result",
                           (long long)((const int64_t *)places->data)[i]);
        memcpy((char *)out->data + (size_t)to * size, (const char *)x->data + (size_t)i * size, size);
    }
    return GRAPHI_OK;
}

#define GEOMETRY "auto_pad ceil_mode dilations kernel_shape pads strides "
const struct host_op host_ops_pool[] = {
    {"MaxPool", 1, 1, 2, GEOMETRY "storage_order", run_pool, MAX},
    {"AveragePool", 1, 1, 1, GEOMETRY "count_include_pad", run_pool, AVERAGE},
    {"LpPool", 1, 1, 1, GEOMETRY "p", run_pool, LP},
    {"GlobalMaxPool", 1, 1, 1, "", run_global, MAX},
    {"GlobalAveragePool", 1, 1, 1, "", run_global, AVERAGE},
    {"GlobalLpPool", 1, 1, 1, "p", run_global, LP},
    {"MaxUnpool", 2, 3, 1, "kernel_shape pads strides", run_unpool, 0},
    {0},
};
