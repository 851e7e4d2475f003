/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of matrix products and softmax. One thread lowers. */
#include "flow/lower.h"

/* Vectors are matrices of one row or column, which the result loses. */
static graphi_status lower_matmul(struct lower_call *c)
{
    int64_t dims[VALUE_RANK];
    int rank = 0;
    for (int i = 0; i < 2; i++)
        TRY(lower_floats(c, i));
    const graphi_tensor *a = c->call.in[0], *b = c->call.in[1];
    const int64_t m = a->rank > 1 ? a->dims[a->rank - 2] : 1, n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    if (a->rank < 1 || b->rank < 1 || a->dims[a->rank - 1] != b->dims[b->rank > 1 ? b->rank - 2 : 0])
        return lower_fail(c, "found numbers or inner sizes that differ, expected vectors and matrices");
    graphi_graph *g = c->l->graph;
    graphi_value x = lower_plain(c->l, lower_in(c, 0)), w = lower_plain(c->l, lower_in(c, 1));
    if (a->rank > 1 && b->rank > 1)
        return lower_set(c, 0, graphi_matmul(g, x, w, 0, 0), false);
    const graphi_tensor *matrix = a->rank > 1 ? a : b;
    for (int i = 0; i + 2 < matrix->rank; i++)
        dims[rank++] = matrix->dims[i];
    if (a->rank > 1)
        dims[rank++] = m;
    if (b->rank > 1)
        dims[rank++] = n;
    x = a->rank > 1 ? x : graphi_reshape(g, x, (int64_t[]){1, a->dims[0]}, 2);
    w = b->rank > 1 ? w : graphi_reshape(g, w, (int64_t[]){b->dims[0], 1}, 2);
    return lower_set(c, 0, graphi_reshape(g, graphi_matmul(g, x, w, 0, 0), dims, rank), false);
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
    if (axis == 1 && !flat && lower_is_last(lower_in(c, 0)))
        return lower_set(c, 0, soft(c, lower_in(c, 0)->last), true);
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

const struct lower_row lower_products[] = {
    {"MatMul", lower_matmul, NULL},
    {"Gemm", lower_gemm, NULL},
    {"Softmax", lower_softmax, NULL},
    {"LogSoftmax", lower_softmax, NULL},
    {0},
};
