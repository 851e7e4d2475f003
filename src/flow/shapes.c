/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of operators that move elements or change shapes. Where sizes alone count, the host operator runs on a
 * value without elements, so both paths refuse and accept the same. One thread lowers. */
#include "flow/lower.h"

#include <string.h>

/* The host operator's outputs on values without elements; each is dropped by the caller. */
static graphi_status host_shapes(struct lower_call *c)
{
    for (int i = 1; i < c->node->ins; i++)
        if (lower_in(c, i) && !lower_in(c, i)->known)
            return lower_fail(c, "found input %d of %s that is computed, expected a constant", i, c->node->type);
    return host_op_run(&c->call);
}

static graphi_status lower_reshape(struct lower_call *c)
{
    TRY(lower_floats(c, 0));
    TRY(host_shapes(c));
    const graphi_tensor like = *c->call.out[0];
    value_drop(c->call.out[0]);
    const graphi_value x = lower_plain(c->l, lower_in(c, 0));
    return lower_set(c, 0, graphi_reshape(c->l->graph, x, like.dims, like.rank), false);
}

/* Known from sizes alone. */
static graphi_status lower_shape(struct lower_call *c)
{
    TRY(host_shapes(c));
    if (c->node->out[0] >= 0)
        c->l->values[c->node->out[0]].known = c->call.out[0];
    else
        value_drop(c->call.out[0]);
    return GRAPHI_OK;
}

/* float32 to itself, as exporters write it. */
static graphi_status lower_cast(struct lower_call *c)
{
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const bool last = lower_is_last(x);
    if (op_int(&c->call, "to", 0) != T_F32)
        return lower_fail(c, "found a Cast to another type, expected float32 for a plan");
    return lower_set(c, 0, last ? x->last : lower_plain(c->l, x), last);
}

/* To the type of another value, which of that is all that counts. */
static graphi_status lower_cast_like(struct lower_call *c)
{
    struct flow_value *x = lower_in(c, 0);
    if (x->known) {
        TRY(host_op_run(&c->call));
        c->l->values[c->node->out[0]].known = c->call.out[0];
        return GRAPHI_OK;
    }
    TRY(lower_floats(c, 0));
    TRY(lower_floats(c, 1));
    const bool last = lower_is_last(x);
    return lower_set(c, 0, last ? x->last : lower_plain(c->l, x), last);
}

static graphi_status lower_transpose(struct lower_call *c)
{
    int64_t order[VALUE_RANK];
    bool seen[VALUE_RANK] = {false};
    size_t count;
    int axis;
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const int rank = x->like.rank;
    const int64_t *perm = op_ints(&c->call, "perm", &count);
    if (perm && count != (size_t)rank)
        return lower_fail(c, "found %zu axes, expected %d", count, rank);
    const bool last = lower_is_last(x);
    for (int i = 0; i < rank; i++) {
        TRY(op_axis(&c->call, perm ? perm[i] : rank - 1 - i, rank, &axis));
        if (seen[axis])
            return lower_fail(c, "found axis %d twice, expected a permutation", axis);
        seen[axis] = true;
        order[i] = last ? lower_axis(axis, rank) : axis;
    }
    return lower_set(c, 0, lower_move(c->l, last ? x->last : lower_plain(c->l, x), rank, order), false);
}

static graphi_status lower_concat(struct lower_call *c)
{
    enum { PARTS = 64 };
    graphi_value in[PARTS];
    int axis, count = c->call.ins;
    bool last = false;
    const graphi_tensor *x = c->call.in[0];
    for (int i = 0; i < count; i++) {
        TRY(lower_floats(c, i));
        last = last || lower_is_last(lower_in(c, i));
    }
    TRY(op_axis(&c->call, op_int(&c->call, "axis", 0), x->rank, &axis));
    for (int i = 0; i < count; i++) {
        const graphi_tensor *part = c->call.in[i];
        for (int k = 0; k < x->rank && part->rank == x->rank; k++)
            if (k != axis && part->dims[k] != x->dims[k])
                return lower_fail(c, "found parts that differ along axis %d, expected none", k);
        if (part->rank != x->rank || count > PARTS)
            return lower_fail(c, "found parts of other ranks, or more than %d, expected fewer", PARTS);
        in[i] = last ? lower_last(c->l, lower_in(c, i)) : lower_plain(c->l, lower_in(c, i));
        if (in[i] == GRAPHI_NONE)
            return lower_set(c, 0, GRAPHI_NONE, false);
    }
    return lower_set(c, 0, graphi_concat(c->l->graph, count, in, last ? lower_axis(axis, x->rank) : axis), last);
}

static int64_t within(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* Elements begin to end along ONNX's axis of x, whose order is `last`. */
static graphi_value cut(struct lower_call *c, graphi_value x, int rank, bool last, int axis, int64_t begin, int64_t end)
{
    return graphi_slice(c->l->graph, x, last ? lower_axis(axis, rank) : axis, begin, end);
}

static graphi_status lower_slice(struct lower_call *c)
{
    int64_t start[VALUE_RANK], end[VALUE_RANK], axes[VALUE_RANK], steps[VALUE_RANK];
    int starts, ends, axis_count, step_count, axis;
    TRY(lower_floats(c, 0));
    for (int i = 1; i < c->node->ins; i++)
        if (lower_in(c, i) && !lower_in(c, i)->known)
            return lower_fail(c, "found input %d of Slice that is computed, expected a constant", i);
    struct flow_value *x = lower_in(c, 0);
    TRY(op_list(&c->call, 1, "starts", start, &starts));
    TRY(op_list(&c->call, 2, "ends", end, &ends));
    TRY(op_list(&c->call, 3, "axes", axes, &axis_count));
    TRY(op_numbers(&c->call, 4, steps, &step_count));
    if (starts < 0 || starts != ends || (axis_count >= 0 && axis_count != starts) ||
        (step_count >= 0 && step_count != starts))
        return lower_fail(c, "found %d starts and %d ends, expected as many", starts, ends);
    const bool last = lower_is_last(x);
    bool seen[VALUE_RANK] = {false};
    graphi_value y = last ? x->last : lower_plain(c->l, x);
    for (int k = 0; k < starts; k++) {
        TRY(op_axis(&c->call, axis_count < 0 ? k : axes[k], x->like.rank, &axis));
        const int64_t n = x->like.dims[axis];
        const int64_t a = within(start[k] < 0 ? start[k] + n : start[k], n);
        const int64_t b = within(end[k] < 0 ? end[k] + n : end[k], n);
        if ((step_count >= 0 && steps[k] != 1) || a >= b || seen[axis])
            return lower_fail(c, "found steps, nothing, or an axis twice, expected elements beside each other");
        seen[axis] = true;
        y = a == 0 && b == n ? y : cut(c, y, x->like.rank, last, axis, a, b);
    }
    return lower_set(c, 0, y, last);
}

/* The host operator tells the parts' sizes; it would copy, so they are found as it finds them. */
static graphi_status lower_split(struct lower_call *c)
{
    int64_t at = 0;
    int axis;
    size_t listed;
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0), *split = lower_in(c, 1);
    if (split && !split->known)
        return lower_fail(c, "found sizes that are computed, expected constants");
    TRY(op_axis(&c->call, op_int(&c->call, "axis", 0), x->like.rank, &axis));
    const int64_t *sizes = op_ints(&c->call, "split", &listed), n = x->like.dims[axis];
    const int outs = c->node->outs;
    if (outs < 1)
        return lower_fail(c, "found no outputs of Split, expected some");
    const int64_t each = (n + outs - 1) / outs, given = split ? split->known->count : sizes ? (int64_t)listed : outs;
    const bool last = lower_is_last(x);
    const graphi_value y = last ? x->last : lower_plain(c->l, x);
    for (int i = 0; i < outs && given == outs; i++) {
        const int64_t even = n - at < each ? n - at : each;
        const int64_t size = split ? value_int(split->known, i) : sizes ? sizes[i] : even;
        if (size < 1 || size > n - at)
            return lower_fail(c, "found a part of %lld elements, expected parts of 1 and more", (long long)size);
        TRY(lower_set(c, i, cut(c, y, x->like.rank, last, axis, at, at + size), last));
        at += size;
    }
    return at == n ? GRAPHI_OK
                   : lower_fail(c, "found parts of %lld elements, expected %lld", (long long)at, (long long)n);
}

enum { BORDER = 256 };

/* One axis with elements of its own around it, one after the other: the edge's, or those that lie reflected in it. */
static graphi_status mirror(struct lower_call *c, graphi_value *y, int axis, int64_t n, int64_t a, int64_t b, bool edge)
{
    graphi_value parts[BORDER + 1];
    int count = 0;
    if (a > BORDER || b > BORDER || a + b > BORDER || (!edge && (a >= n || b >= n)))
        return lower_fail(c, "found a border of %lld elements around %lld, expected at most %d, and fewer than inside",
                          (long long)(a > b ? a : b), (long long)n, BORDER);
    for (int64_t i = a; i > 0; i--)
        parts[count++] = graphi_slice(c->l->graph, *y, axis, edge ? 0 : i, (edge ? 0 : i) + 1);
    parts[count++] = *y;
    for (int64_t i = 1; i <= b; i++)
        parts[count++] = graphi_slice(c->l->graph, *y, axis, n - 1 - (edge ? 0 : i), n - (edge ? 0 : i));
    *y = graphi_concat(c->l->graph, count, parts, axis);
    return GRAPHI_OK;
}

static graphi_status lower_pad(struct lower_call *c)
{
    int64_t before[VALUE_RANK] = {0}, after[VALUE_RANK] = {0}, axes[VALUE_RANK];
    int axis_count, axis;
    TRY(lower_floats(c, 0));
    for (int i = 1; i < c->node->ins; i++)
        if (lower_in(c, i) && !lower_in(c, i)->known)
            return lower_fail(c, "found input %d of Pad that is computed, expected a constant", i);
    struct flow_value *x = lower_in(c, 0);
    const graphi_tensor *pads = c->call.in[1], *value = op_in(&c->call, 2);
    TRY(op_numbers(&c->call, 3, axes, &axis_count));
    const int rank = x->like.rank, count = axis_count < 0 ? rank : axis_count;
    const char *mode = op_string(&c->call, "mode", "constant");
    const bool constant = !strcmp(mode, "constant"), edge = !strcmp(mode, "edge");
    if ((!constant && !edge && strcmp(mode, "reflect")) || pads->count != 2 * count ||
        (value && value->count && (value->count != 1 || value->type != T_F32)))
        return lower_fail(c, "found another mode, or pads that do not fit, expected constant, edge or reflect");
    const bool last = lower_is_last(x);
    for (int k = 0; k < count; k++) {
        TRY(op_axis(&c->call, axis_count < 0 ? k : axes[k], rank, &axis));
        const int64_t a = value_int(pads, k), b = value_int(pads, count + k), most = (int64_t)1 << 40;
        if (a < 0 || b < 0 || a > most || b > most)
            return lower_fail(c, "found pads %lld and %lld, expected 0 and more", (long long)a, (long long)b);
        const int to = last ? lower_axis(axis, rank) : axis;
        before[to] = a;
        after[to] = b;
    }
    graphi_value y = last ? x->last : lower_plain(c->l, x);
    if (constant)
        y = graphi_pad(c->l->graph, y, before, rank, after, rank, value && value->count ? value_double(value, 0) : 0);
    for (int i = 0; !constant && i < rank; i++) {
        const int to = last ? lower_axis(i, rank) : i;
        if (before[to] + after[to])
            TRY(mirror(c, &y, to, x->like.dims[i], before[to], after[to], edge));
    }
    return lower_set(c, 0, y, last);
}

/* One index: a slice, which loses the axis where the index is a scalar. */
static graphi_status lower_gather(struct lower_call *c)
{
    int64_t dims[VALUE_RANK];
    int axis, rank = 0;
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0), *index = lower_in(c, 1);
    if (!index->known || index->known->count != 1 || index->known->rank > 1)
        return lower_fail(c, "found indices that are computed, or several, expected one for a plan");
    TRY(op_axis(&c->call, op_int(&c->call, "axis", 0), x->like.rank, &axis));
    const int64_t n = x->like.dims[axis], given = value_int(index->known, 0), at = given < 0 ? given + n : given;
    if (at < 0 || at >= n)
        return lower_fail(c, "found index %lld, expected one of %lld", (long long)given, (long long)n);
    for (int i = 0; i < x->like.rank; i++)
        if (i != axis)
            dims[rank++] = x->like.dims[i];
        else if (index->known->rank == 1)
            dims[rank++] = 1;
    graphi_value y = cut(c, lower_plain(c->l, x), x->like.rank, false, axis, at, at + 1);
    return lower_set(c, 0, graphi_reshape(c->l->graph, y, dims, rank), false);
}

static graphi_status lower_expand(struct lower_call *c)
{
    int64_t wanted[VALUE_RANK], dims[VALUE_RANK];
    int count, rank;
    TRY(lower_floats(c, 0));
    if (!lower_in(c, 1)->known)
        return lower_fail(c, "found a shape that is computed, expected a constant");
    TRY(op_numbers(&c->call, 1, wanted, &count));
    struct graphi_tensor like = {.rank = count};
    memcpy(like.dims, wanted, (size_t)(count > 0 ? count : 0) * sizeof *wanted);
    TRY(op_broadcast(&c->call, (graphi_tensor *const[]){c->call.in[0], &like}, 2, &rank, dims));
    const graphi_value x = lower_plain(c->l, lower_in(c, 0));
    return lower_set(c, 0, graphi_expand(c->l->graph, x, dims, rank, NULL, 0), false);
}

const struct lower_row lower_shapes[] = {
    {"Reshape", lower_reshape, NULL},
    {"Flatten", lower_reshape, NULL},
    {"Squeeze", lower_reshape, NULL},
    {"Unsqueeze", lower_reshape, NULL},
    {"Shape", lower_shape, NULL},
    {"Size", lower_shape, NULL},
    {"Cast", lower_cast, NULL},
    {"CastLike", lower_cast_like, NULL},
    {"Transpose", lower_transpose, NULL},
    {"Concat", lower_concat, NULL},
    {"Slice", lower_slice, NULL},
    {"Split", lower_split, NULL},
    {"Pad", lower_pad, NULL},
    {"Gather", lower_gather, NULL},
    {"Expand", lower_expand, NULL},
    {0},
};
