/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of matrix products, softmax and reductions. One thread lowers. */
#include "flow/lower.h"

#include <string.h>

static graphi_status lower_matmul(struct lower_call *c)
{
    const graphi_tensor *a = c->call.in[0], *b = c->call.in[1];
    for (int i = 0; i < 2; i++)
        TRY(lower_floats(c, i));
    if (a->rank < 2 || b->rank < 2 || a->dims[a->rank - 1] != b->dims[b->rank - 2])
        return lower_fail(c, "found vectors or inner sizes that differ, expected matrices for a plan");
    return lower_set(
        c, 0, graphi_matmul(c->l->graph, lower_plain(c->l, lower_in(c, 0)), lower_plain(c->l, lower_in(c, 1)), 0, 0),
        false);
}

static graphi_value times(struct lower_call *c, graphi_value x, double by)
{
    return by == 1 ? x : graphi_mul(c->l->graph, x, lower_number(c->l, by));
}

static graphi_status lower_gemm(struct lower_call *c)
{
    const graphi_tensor *a = c->call.in[0], *b = c->call.in[1], *bias = op_in(&c->call, 2);
    const bool ta = op_int(&c->call, "transA", 0) != 0, tb = op_int(&c->call, "transB", 0) != 0;
    const double beta = op_float(&c->call, "beta", 1);
    for (int i = 0; i < c->call.ins; i++)
        if (c->call.in[i])
            TRY(lower_floats(c, i));
    if (a->rank != 2 || b->rank != 2 || a->dims[!ta] != b->dims[tb])
        return lower_fail(c, "found other shapes, expected matrices whose inner sizes agree");
    const int64_t dims[2] = {a->dims[ta], b->dims[!tb]};
    graphi_value y =
        graphi_matmul(c->l->graph, lower_plain(c->l, lower_in(c, 0)), lower_plain(c->l, lower_in(c, 1)), ta, tb);
    y = times(c, y, op_float(&c->call, "alpha", 1));
    if (bias && beta != 0) {
        if (bias->rank > 2)
            return lower_fail(c, "found C of rank %d, expected at most 2", bias->rank);
        for (int i = 0; i < bias->rank; i++)
            if (bias->dims[i] != 1 && bias->dims[i] != dims[2 - bias->rank + i])
                return lower_fail(c, "found another C, expected one that broadcasts to the result");
        y = graphi_add(c->l->graph, y, times(c, lower_plain(c->l, lower_in(c, 2)), beta));
    }
    return lower_set(c, 0, y, false);
}

static graphi_value soft(struct lower_call *c, graphi_value x)
{
    return c->node->type[0] == 'L' ? graphi_log_softmax(c->l->graph, x) : graphi_softmax(c->l->graph, x);
}

/* Along the last dimension as it is, with `flat` all from the axis on as one, along another by moving it last. */
static graphi_status lower_softmax(struct lower_call *c)
{
    int axis;
    int64_t flat_dims[2] = {1, 1}, perm[VALUE_RANK], back[VALUE_RANK];
    TRY(lower_floats(c, 0));
    const graphi_tensor *x = c->call.in[0];
    const bool flat = op_int(&c->call, "flat", 0) != 0;
    TRY(op_axis(&c->call, op_int(&c->call, "axis", flat ? 1 : -1), x->rank, &axis));
    graphi_graph *g = c->l->graph;
    graphi_value in = lower_plain(c->l, lower_in(c, 0));
    if (flat) {
        for (int i = 0; i < x->rank; i++)
            flat_dims[i >= axis] *= x->dims[i];
        graphi_value y = soft(c, graphi_reshape(g, in, flat_dims, 2));
        return lower_set(c, 0, graphi_reshape(g, y, x->dims, x->rank), false);
    }
    for (int i = 0; i < x->rank; i++) {
        perm[i] = i == x->rank - 1 ? axis : i < axis ? i : i + 1;
        back[perm[i]] = i;
    }
    if (axis == x->rank - 1)
        return lower_set(c, 0, soft(c, in), false);
    graphi_value y = soft(c, graphi_transpose(g, in, perm, x->rank));
    return lower_set(c, 0, graphi_transpose(g, y, back, x->rank), false);
}

/* Axes as ONNX counts them to those of the operand's order; *last tells the result's. */
static void find_axes(const struct flow_value *x, int rank, bool keeps, int count, int64_t *axes, bool *last)
{
    bool channels = false;
    int inner = 0;
    for (int i = 0; i < count; i++) {
        channels = channels || axes[i] == 1;
        inner += axes[i] > 1;
    }
    *last = lower_is_last(x) && (keeps || channels || inner == rank - 2);
    for (int i = 0; *last && i < count; i++)
        axes[i] = lower_axis((int)axes[i], rank);
}

static graphi_status lower_reduce(struct lower_call *c)
{
    int64_t axes[VALUE_RANK];
    int count, axis;
    bool last, seen[VALUE_RANK] = {false};
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const int rank = x->like.rank;
    const bool keeps = op_int(&c->call, "keepdims", 1) != 0;
    if (op_in(&c->call, 1) && !lower_in(c, 1)->known)
        return lower_fail(c, "found axes that are computed, expected constants");
    TRY(op_list(&c->call, 1, "axes", axes, &count));
    if (count <= 0 && op_int(&c->call, "noop_with_empty_axes", 0))
        return lower_fail(c, "found no axes and noop_with_empty_axes, expected axes");
    for (int i = 0; i < count; i++) {
        TRY(op_axis(&c->call, axes[i], rank, &axis));
        if (seen[axis])
            return lower_fail(c, "found axis %d twice, expected it once", axis);
        seen[axis] = true;
        axes[i] = axis;
    }
    for (int i = 0; count <= 0 && i < rank; i++)
        axes[i] = i;
    count = count <= 0 ? rank : count;
    find_axes(x, rank, keeps, count, axes, &last);
    const graphi_value in = last ? x->last : lower_plain(c->l, x);
    const graphi_attribute attributes[] = {{"axes", GRAPHI_INTS, 0, 0, axes, count},
                                           {"keepdims", GRAPHI_INT, keeps, 0, NULL, 0}};
    return lower_set(c, 0, graphi_op(c->l->graph, c->row->builds, 1, &in, 2, attributes), last && keeps);
}

const struct lower_row lower_products[] = {
    {"MatMul", lower_matmul, NULL},
    {"Gemm", lower_gemm, NULL},
    {"Softmax", lower_softmax, NULL},
    {"LogSoftmax", lower_softmax, NULL},
    {"ReduceSum", lower_reduce, "reduce_sum"},
    {"ReduceMean", lower_reduce, "reduce_mean"},
    {"ReduceMax", lower_reduce, "reduce_max"},
    {"ReduceSumSquare", lower_reduce, "reduce_sum_squares"},
    {0},
};
