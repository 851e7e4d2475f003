/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of operators that move elements or change shapes. Where sizes alone count, the host operator runs on a
 * value without elements, so both paths refuse and accept the same. One thread lowers. */
#include "flow/lower.h"

#include <string.h>

/* The host operator's outputs on values without elements; each is dropped by the caller. */
static graphi_status host_shapes(struct lower_call *c)
{
    TRY(lower_constants(c, 1));
    return host_op_run(&c->call);
}

static graphi_status lower_reshape(struct lower_call *c)
{
    TRY(lower_movable(c, 0));
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
    if (c->node->out[0] < 0) {
        value_drop(c->call.out[0]);
        return GRAPHI_OK;
    }
    c->l->values[c->node->out[0]].known = c->call.out[0];
    c->l->values[c->node->out[0]].varies = true;
    return GRAPHI_OK;
}

/* Floats and truth values are float32 inside the graph: to 16 bits and back rounds them. */
static graphi_value cast(struct lower_call *c, graphi_value x, graphi_element from, graphi_element to)
{
    graphi_graph *g = c->l->graph;
    graphi_dtype dtype;
    if (from == to || (to == T_F32 && element_is_carried(from)))
        return x;
    element_dtype(to, &dtype);
    x = graphi_cast(g, x, dtype);
    return element_is_carried(to) ? graphi_cast(g, x, GRAPHI_F32) : x;
}

static graphi_status cast_to(struct lower_call *c, graphi_element to)
{
    graphi_dtype dtype;
    TRY(lower_movable(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const graphi_element from = c->call.in[0]->type;
    const bool last = lower_is_last(x), floats = element_is_carried(from) || element_is_carried(to);
    if (!element_dtype(to, &dtype) || !floats || from == T_F64 || to == T_F64)
        return lower_fail(c, "found a Cast from %s to %s, expected floats of 16 or 32 bits for a plan",
                          graphi_element_name(from), graphi_element_name(to));
    c->type = to;
    return lower_set(c, 0, cast(c, last ? x->last : lower_plain(c->l, x), from, to), last);
}

static graphi_status lower_cast(struct lower_call *c)
{
    return cast_to(c, (graphi_element)op_int(&c->call, "to", 0));
}

/* To the type of another value, which of that is all that counts. */
static graphi_status lower_cast_like(struct lower_call *c)
{
    struct flow_value *x = lower_in(c, 0);
    if (!x->known)
        return cast_to(c, c->call.in[1]->type);
    TRY(host_op_run(&c->call));
    c->l->values[c->node->out[0]].known = c->call.out[0];
    c->l->values[c->node->out[0]].varies = x->varies;
    return GRAPHI_OK;
}

static graphi_status lower_transpose(struct lower_call *c)
{
    int64_t order[VALUE_RANK];
    bool seen[VALUE_RANK] = {false};
    size_t count;
    int axis;
    TRY(lower_movable(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const int rank = c->call.in[0]->rank;
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
    graphi_value in[64]; /* the most inputs that lower_operator takes */
    int axis, count = c->call.ins;
    bool last = false;
    const graphi_tensor *x = c->call.in[0];
    for (int i = 0; i < count; i++) {
        TRY(lower_movable(c, i));
        last = last || lower_is_last(lower_in(c, i));
    }
    TRY(op_axis(&c->call, op_int(&c->call, "axis", 0), x->rank, &axis));
    for (int i = 0; i < count; i++) {
        const graphi_tensor *part = c->call.in[i];
        for (int k = 0; k < x->rank && part->rank == x->rank; k++)
            if (k != axis && part->dims[k] != x->dims[k])
                return lower_fail(c, "found parts that differ along axis %d, expected none", k);
        if (part->rank != x->rank || part->type != x->type)
            return lower_fail(c, "found parts of other ranks or types, expected the same");
        in[i] = last ? lower_last(c->l, lower_in(c, i)) : lower_plain(c->l, lower_in(c, i));
        if (in[i] == GRAPHI_NONE)
            return lower_set(c, 0, GRAPHI_NONE, false);
    }
    return lower_set(c, 0, graphi_concat(c->l->graph, count, in, last ? lower_axis(axis, x->rank) : axis), last);
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
    TRY(lower_constants(c, 1));
    struct flow_value *x = lower_in(c, 0);
    const graphi_tensor *pads = c->call.in[1], *value = op_in(&c->call, 2);
    TRY(op_numbers(&c->call, 3, axes, &axis_count));
    const int rank = c->call.in[0]->rank, count = axis_count < 0 ? rank : axis_count;
    const char *mode = op_string(&c->call, "mode", "constant");
    const bool constant = !strcmp(mode, "constant"), edge = !strcmp(mode, "edge");
    if ((!constant && !edge && strcmp(mode, "reflect")) || pads->count != 2 * count ||
        (value && value->count && value->count != 1))
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
            TRY(mirror(c, &y, to, c->call.in[0]->dims[i], before[to], after[to], edge));
    }
    return lower_set(c, 0, y, last);
}

/* Blocks of pixels to channels or back: a reshape, a transpose, a reshape. */
static graphi_status lower_depth(struct lower_call *c)
{
    TRY(lower_movable(c, 0));
    const graphi_tensor *x = c->call.in[0];
    const bool back = c->node->type[0] == 'D', crd = !strcmp(op_string(&c->call, "mode", "DCR"), "CRD");
    const int64_t b = op_int(&c->call, "blocksize", 0);
    if (x->rank != 4 || b < 1 || (back ? x->dims[1] % (b * b) : x->dims[2] % b || x->dims[3] % b))
        return lower_fail(c, "found blocks of %lld that do not fit, expected [N, C, H, W] of whole blocks",
                          (long long)b);
    const int64_t n = x->dims[0], k = x->dims[1], h = x->dims[2], w = x->dims[3];
    const int64_t d = back ? k / (b * b) : k;
    const int64_t apart[6] = {n, crd ? d : b, b, crd ? b : d, h, w}, whole[6] = {n, k, h / b, b, w / b, b};
    static const int64_t dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
    static const int64_t dcr_back[6] = {0, 3, 5, 1, 2, 4}, crd_back[6] = {0, 1, 3, 5, 2, 4};
    const int64_t *perm = back ? (crd ? crd_perm : dcr_perm) : crd ? crd_back : dcr_back;
    const int64_t to[4] = {n, back ? d : k * b * b, back ? h * b : h / b, back ? w * b : w / b};
    graphi_value y = graphi_reshape(c->l->graph, lower_plain(c->l, lower_in(c, 0)), back ? apart : whole, 6);
    y = graphi_transpose(c->l->graph, y, perm, 6);
    return lower_set(c, 0, graphi_reshape(c->l->graph, y, to, 4), false);
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
    {"Pad", lower_pad, NULL},
    {"DepthToSpace", lower_depth, NULL},
    {"SpaceToDepth", lower_depth, NULL},
    {0},
};
