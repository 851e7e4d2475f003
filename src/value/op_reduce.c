/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any axes, in doubles or 64-bit integers whatever the type, and places of maxima. Elements are taken
 * in the order of memory. Source: ONNX Reduce*, ArgMax, ArgMin. Any thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"
#include "value/map.h"

#include <math.h>
#include <string.h>

enum kind { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE };

static double start_double(enum kind kind)
{
    return kind == PROD ? 1 : kind == MAX || kind == LOG_SUM_EXP ? -INFINITY : kind == MIN ? INFINITY : 0;
}

/* Of no elements at all: the least and greatest of the type. */
static int64_t start_int(enum kind kind, graphi_element type)
{
    if (kind == PROD)
        return 1;
    if (kind != MAX && kind != MIN)
        return 0;
    const int bits = type == T_BOOL ? 1 : 8 * (int)element_size(type);
    const bool has_sign = type == T_I8 || type == T_I16 || type == T_I32 || type == T_I64;
    const int64_t most = has_sign ? (int64_t)(UINT64_MAX >> (65 - bits)) : (int64_t)(UINT64_MAX >> (64 - bits));
    return kind == MIN ? most : has_sign ? -most - 1 : 0;
}

static void add_doubles(enum kind kind, double *to, int64_t stride, const double *x, int64_t n, const double *peak)
{
    for (int64_t i = 0; i < n; i++) {
        double *acc = &to[i * stride];
        switch (kind) {
        case PROD:
            *acc *= x[i];
            break;
        case MAX:
            *acc = isnan(x[i]) || x[i] > *acc ? x[i] : *acc;
            break;
        case MIN:
            *acc = isnan(x[i]) || x[i] < *acc ? x[i] : *acc;
            break;
        case L1:
            *acc += fabs(x[i]);
            break;
        case L2:
        case SUM_SQUARE:
            *acc += x[i] * x[i];
            break;
        case LOG_SUM_EXP:
            *acc += exp(x[i] - peak[i * stride]);
            break;
        default:
            *acc += x[i];
        }
    }
}

static void add_ints(enum kind kind, bool is_unsigned, int64_t *to, int64_t stride, const int64_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t *acc = &to[i * stride];
        const bool more = is_unsigned ? (uint64_t)x[i] > (uint64_t)*acc : x[i] > *acc;
        switch (kind) {
        case PROD:
            *acc = (int64_t)((uint64_t)*acc * (uint64_t)x[i]);
            break;
        case MAX:
            *acc = more ? x[i] : *acc;
            break;
        case MIN:
            *acc = more ? *acc : x[i];
            break;
        case L1:
            *acc += x[i] < 0 && !is_unsigned ? (int64_t)(0 - (uint64_t)x[i]) : x[i];
            break;
        case SUM_SQUARE:
            *acc = (int64_t)((uint64_t)*acc + (uint64_t)x[i] * (uint64_t)x[i]);
            break;
        default:
            *acc = (int64_t)((uint64_t)*acc + (uint64_t)x[i]);
        }
    }
}

struct reduction {
    enum kind kind;
    const graphi_tensor *from;
    int rank;
    int64_t kept[VALUE_RANK]; /* dimensions, 1 where reduced */
    bool reduced[VALUE_RANK];
    int64_t count, each; /* of results; elements that make one */
    bool integers;
};

/* Once over all elements: accumulators are doubles or 64-bit integers. */
static void sweep(const struct reduction *r, enum kind kind, void *to, const double *peak)
{
    struct map map = map_over(r->rank, r->from->dims);
    struct map_row row;
    union block room;
    map_broadcast(&map, r->rank, r->from->dims);
    map_broadcast(&map, r->rank, r->kept);
    map_join(&map);
    const int last = map.rank - 1;
    const int64_t stride = map.strides[1][last];
    const graphi_element type = r->from->type;
    if (!map_first(&map, &row))
        return;
    do
        for (int64_t at = 0; at < map.dims[last]; at += BLOCK) {
            const int64_t n = map.dims[last] - at < BLOCK ? map.dims[last] - at : BLOCK,
                          place = row.at[1] + at * stride;
            const char *source = (const char *)r->from->data + (row.at[0] + at) * (int64_t)element_size(type);
            const void *x = element_load(r->integers ? DOMAIN_I64 : DOMAIN_F64, type, source, 1, n, &room);
            if (r->integers)
                add_ints(kind, type == T_U64, (int64_t *)to + place, stride, x, n);
            else
                add_doubles(kind, (double *)to + place, stride, x, n, peak ? peak + place : NULL);
        }
    while (map_next(&map, &row));
}

static void end_doubles(const struct reduction *r, double *acc, const double *peak)
{
    for (int64_t i = 0; i < r->count; i++)
        switch (r->kind) {
        case MEAN:
            acc[i] /= (double)r->each;
            break;
        case L2:
            acc[i] = sqrt(acc[i]);
            break;
        case LOG_SUM:
            acc[i] = log(acc[i]);
            break;
        case LOG_SUM_EXP:
            acc[i] = peak[i] + log(acc[i]);
            break;
        default:
            break;
        }
}

static void reduce_doubles(const struct reduction *r, double *acc, double *peak)
{
    for (int64_t i = 0; i < r->count; i++)
        acc[i] = r->kind == LOG_SUM_EXP ? 0 : start_double(r->kind);
    for (int64_t i = 0; peak && i < r->count; i++)
        peak[i] = -INFINITY;
    if (peak)
        sweep(r, MAX, peak, NULL);
    for (int64_t i = 0; peak && i < r->count; i++)
        peak[i] = isinf(peak[i]) ? 0 : peak[i];
    sweep(r, r->kind, acc, peak);
    end_doubles(r, acc, peak);
}

static void reduce_ints(const struct reduction *r, int64_t *acc)
{
    for (int64_t i = 0; i < r->count; i++)
        acc[i] = start_int(r->kind, r->from->type);
    sweep(r, r->kind, acc, NULL);
    for (int64_t i = 0; r->kind == MEAN && r->each && i < r->count; i++)
        acc[i] /= r->each;
}

static graphi_status find_axes(const struct op_call *call, struct reduction *r)
{
    int64_t axes[VALUE_RANK];
    int count;
    TRY(op_list(call, 1, "axes", axes, &count));
    for (int i = 0; i < r->rank; i++)
        r->reduced[i] = count <= 0 && !(op_int(call, "noop_with_empty_axes", 0));
    for (int k = 0, axis; k < count; k++) {
        TRY(op_axis(call, axes[k], r->rank, &axis));
        r->reduced[axis] = true;
    }
    r->count = r->each = 1;
    for (int i = 0; i < r->rank; i++) {
        r->kept[i] = r->reduced[i] ? 1 : r->from->dims[i];
        *(r->reduced[i] ? &r->each : &r->count) *= r->from->dims[i];
    }
    return GRAPHI_OK;
}

static int result_dims(const struct op_call *call, const struct reduction *r, int64_t *dims)
{
    const bool keep = op_int(call, "keepdims", 1) != 0;
    int rank = 0;
    for (int i = 0; i < r->rank; i++)
        if (keep || !r->reduced[i])
            dims[rank++] = r->kept[i];
    return rank;
}

static graphi_status run_reduce(struct op_call *call)
{
    graphi_tensor *out;
    int64_t dims[VALUE_RANK];
    TRY(op_tensor(call, 0, 0));
    struct reduction r = {.kind = (enum kind)call->op->variant, .from = call->in[0], .rank = call->in[0]->rank};
    TRY(find_axes(call, &r));
    r.integers = !element_is_float(r.from->type) && r.kind != L2 && r.kind != LOG_SUM && r.kind != LOG_SUM_EXP;
    TRY(op_new(call, 0, r.from->type, result_dims(call, &r, dims), dims, &out));
    void *acc = mem_alloc((size_t)r.count * 8);
    double *peak = r.kind == LOG_SUM_EXP ? mem_alloc((size_t)r.count * 8) : NULL;
    if (!acc || (r.kind == LOG_SUM_EXP && !peak)) {
        mem_free(acc);
        mem_free(peak);
        return fail_memory(call->where, (size_t)r.count * 8);
    }
    if (r.integers)
        reduce_ints(&r, acc);
    else
        reduce_doubles(&r, acc, peak);
    element_store(r.integers ? DOMAIN_I64 : DOMAIN_F64, out->type, acc, r.count, out->data);
    mem_free(acc);
    mem_free(peak);
    return GRAPHI_OK;
}

/* The place along the axis of the best element: NaN is better than all. */
static int64_t best_of(const graphi_tensor *x, int64_t at, int64_t n, int64_t stride, bool least, bool last)
{
    int64_t best = 0;
    if (!element_is_float(x->type)) {
        const bool is_unsigned = x->type == T_U64;
        for (int64_t k = 1; k < n; k++) {
            const int64_t a = value_int(x, at + k * stride), b = value_int(x, at + best * stride);
            const bool more = is_unsigned ? (uint64_t)a > (uint64_t)b : a > b;
            if ((a != b && more != least) || (a == b && last))
                best = k;
        }
        return best;
    }
    for (int64_t k = 1; k < n; k++) {
        const double a = value_double(x, at + k * stride), b = value_double(x, at + best * stride);
        if ((least ? a < b : a > b) || (isnan(a) && !isnan(b)) || ((a == b || (isnan(a) && isnan(b))) && last))
            best = k;
    }
    return best;
}

static graphi_status run_arg(struct op_call *call)
{
    graphi_tensor *out;
    int axis, rank = 0;
    int64_t dims[VALUE_RANK], inner = 1, outer = 1;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    TRY(op_axis(call, op_int(call, "axis", 0), x->rank, &axis));
    const bool keep = op_int(call, "keepdims", 1) != 0, last = op_int(call, "select_last_index", 0) != 0;
    for (int i = 0; i < x->rank; i++) {
        if (i != axis || keep)
            dims[rank++] = i == axis ? 1 : x->dims[i];
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : x->dims[i];
    }
    const int64_t n = x->dims[axis];
    if (n == 0)
        return op_fail(call, "found no elements along axis %d of %s, expected some", axis, call->op->name);
    TRY(op_new(call, 0, T_I64, rank, dims, &out));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            ((int64_t *)out->data)[o * inner + i] = best_of(x, o * n * inner + i, n, inner, call->op->variant, last);
    return GRAPHI_OK;
}

#define REDUCE(NAME, KIND)                                                                                             \
    {                                                                                                                  \
        NAME, 1, 2, 1, "axes keepdims noop_with_empty_axes", run_reduce, KIND                                          \
    }
const struct host_op host_ops_reduce[] = {
    REDUCE("ReduceSum", SUM),
    REDUCE("ReduceMean", MEAN),
    REDUCE("ReduceMax", MAX),
    REDUCE("ReduceMin", MIN),
    REDUCE("ReduceProd", PROD),
    REDUCE("ReduceL1", L1),
    REDUCE("ReduceL2", L2),
    REDUCE("ReduceLogSum", LOG_SUM),
    REDUCE("ReduceLogSumExp", LOG_SUM_EXP),
    REDUCE("ReduceSumSquare", SUM_SQUARE),
    {"ArgMax", 1, 1, 1, "axis keepdims select_last_index", run_arg, 0},
    {"ArgMin", 1, 1, 1, "axis keepdims select_last_index", run_arg, 1},
    {0},
};
