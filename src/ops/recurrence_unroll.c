/* SPDX-License-Identifier: Apache-2.0 */
/* Unrolled recurrences (recurrence_unroll.h). Usual size: 20 nodes a step, at most 1,024 steps. */
#include "ops/recurrence_unroll.h"

#include "graph/op.h"
#include "graphi/ops.h"
#include "ops/matmul.h"

#include <string.h>

graphi_value unrolled_rows(graphi_graph *graph, graphi_value x, int64_t begin, int64_t end)
{
    const struct value *value = x >= 0 ? graph_value(graph, x) : NULL;
    const struct node *node = value && value->node >= 0 ? graph_node(graph, value->node) : NULL;
    int64_t at = 0;
    if (value && value->type.dims[0] == end - begin && !begin && value->type.symbol < 0)
        return x;
    if (node && strcmp(node->kind->name, "concat") == 0 && attr_int(node, "axis") == 0)
        for (int i = 0; i < node->inputs && at <= begin; i++) {
            const int64_t rows = graph_value(graph, node->input[i])->type.dims[0];
            if (at == begin && at + rows == end)
                return node->input[i];
            at += rows;
        }
    return graphi_slice(graph, x, 0, begin, end);
}

/* Of all gates side by side, or of the gate alone. */
static graphi_value gate_of(const struct unrolled *l, graphi_value all, int gate)
{
    return graphi_slice(l->graph, all, 1, gate * l->units, (gate + 1) * l->units);
}

/* Gates from `begin` on. */
static graphi_value weights_of(const struct unrolled *l, graphi_value w, bool rows, int begin, int end)
{
    return graphi_slice(l->graph, w, !rows, begin * l->units, end * l->units);
}

/* Weights of gates of x and of h, and whether gates are their rows. */
struct weights {
    graphi_value w, u;
    bool w_rows, u_rows;
};

static struct weights weights_between(const struct unrolled *l, int begin, int end, int all)
{
    struct weights s = {l->w, l->u, l->w_rows, l->u_rows};
    if (end - begin == all)
        return s;
    s.u = weights_of(l, l->u, l->u_rows, begin, end);
    if (l->w != GRAPHI_NONE)
        s.w = weights_of(l, l->w, l->w_rows, begin, end);
    return s;
}

/* x W continued by h U: of x and w, or of their product that is there already. */
static graphi_value continued(const struct unrolled *l, graphi_value x, struct weights s, graphi_value xw,
                              graphi_value h)
{
    graphi_graph *g = l->graph;
    if (xw == GRAPHI_NONE && l->lowering != GRAPHI_LOWERING_UNROLLED && s.w_rows == s.u_rows)
        return graphi_add(g, graphi_matmul(g, x, s.w, 0, s.w_rows), graphi_matmul(g, h, s.u, 0, s.u_rows));
    graphi_value in[3] = {h, s.u};
    if (xw == GRAPHI_NONE)
        xw = graphi_matmul(g, x, s.w, 0, s.w_rows);
    return product_append(g, &(struct product_operands){in, 1, xw}, false, s.u_rows);
}

static int gates_of(graphi_cell cell)
{
    return cell == GRAPHI_LSTM ? 4 : cell == GRAPHI_GRU ? 3 : 1;
}

/* One step while it is built. */
struct step {
    graphi_value x, xw, h, c; /* of the step; states before it, then after it */
    graphi_value gate[4];     /* as activated */
    graphi_value kept;
};

/* The first gates of a step before their biases: one product, or one for each. */
static void step_sums(const struct unrolled *l, const struct step *t, int gates, graphi_value *sum)
{
    const int all = gates_of(l->cell);
    if (l->lowering == GRAPHI_LOWERING_EIGHT) {
        for (int i = 0; i < gates; i++)
            sum[i] = continued(l, t->x, weights_between(l, i, i + 1, all),
                               t->xw == GRAPHI_NONE ? t->xw : gate_of(l, t->xw, i), t->h);
        return;
    }
    graphi_value xw = t->xw;
    if (xw != GRAPHI_NONE && gates < all)
        xw = graphi_slice(l->graph, xw, 1, 0, gates * l->units);
    graphi_value sums = continued(l, t->x, weights_between(l, 0, gates, all), xw, t->h);
    for (int i = 0; i < gates; i++)
        sum[i] = gates == 1 ? sums : gate_of(l, sums, i);
}

static graphi_value biased(const struct unrolled *l, graphi_value sum, int gate)
{
    return graphi_add(l->graph, sum, graphi_slice(l->graph, l->b, 0, gate * l->units, (gate + 1) * l->units));
}

static graphi_value blend(graphi_graph *g, graphi_value z, graphi_value n, graphi_value h)
{
    const float one = 1;
    graphi_value rest = graphi_sub(g, graphi_constant(g, GRAPHI_F32, 0, NULL, &one), z);
    return graphi_add(g, graphi_mul(g, rest, n), graphi_mul(g, z, h));
}

static void gru_step(const struct unrolled *l, struct step *t)
{
    graphi_graph *g = l->graph;
    graphi_value sum[4], n;
    step_sums(l, t, 2, sum);
    graphi_value r = graphi_sigmoid(g, biased(l, sum[0], 0)), z = graphi_sigmoid(g, biased(l, sum[1], 1));
    const struct weights s = weights_between(l, 2, 3, 3);
    graphi_value xw = t->xw == GRAPHI_NONE ? GRAPHI_NONE : gate_of(l, t->xw, 2);
    if (l->inner == GRAPHI_NONE) {
        const struct step candidate = {.x = t->x, .h = graphi_mul(g, r, t->h)};
        n = biased(l, continued(l, candidate.x, s, xw, candidate.h), 2);
    } else {
        if (xw == GRAPHI_NONE)
            xw = graphi_matmul(g, t->x, s.w, 0, s.w_rows);
        t->kept = graphi_add(g, graphi_matmul(g, t->h, s.u, 0, s.u_rows), l->inner);
        n = graphi_add(g, biased(l, xw, 2), graphi_mul(g, r, t->kept));
    }
    t->gate[0] = r;
    t->gate[1] = z;
    t->gate[2] = graphi_tanh(g, n);
    t->h = blend(g, z, t->gate[2], t->h);
}

static void lstm_step(const struct unrolled *l, struct step *t)
{
    graphi_graph *g = l->graph;
    graphi_value sum[4], *gate = t->gate;
    step_sums(l, t, 4, sum);
    for (int i = 0; i < 4; i++)
        gate[i] = i == 2 ? graphi_tanh(g, biased(l, sum[i], i)) : graphi_sigmoid(g, biased(l, sum[i], i));
    t->kept = t->c = graphi_add(g, graphi_mul(g, gate[1], t->c), graphi_mul(g, gate[0], gate[2]));
    t->h = graphi_mul(g, gate[3], graphi_tanh(g, t->c));
}

static void rnn_step(const struct unrolled *l, struct step *t)
{
    graphi_value sum[4];
    step_sums(l, t, 1, sum);
    sum[0] = biased(l, sum[0], 0);
    t->h = l->relu ? graphi_relu(l->graph, sum[0]) : graphi_tanh(l->graph, sum[0]);
}

struct unrolled_results recurrence_unroll(const struct unrolled *l, graphi_value *h, graphi_value *c)
{
    static void (*const cells[])(const struct unrolled *, struct step *) = {lstm_step, gru_step, rnn_step};
    graphi_graph *g = l->graph;
    graphi_value y[UNROLLED_MOST], gates[UNROLLED_MOST], kept[UNROLLED_MOST];
    graphi_value all = l->xw;
    struct step s = {.h = *h, .c = *c};
    if (all == GRAPHI_NONE && l->lowering == GRAPHI_LOWERING_ACROSS)
        all = graphi_matmul(g, l->x, l->w, 0, l->w_rows);
    for (int64_t i = 0; i < l->steps; i++) {
        const int64_t t = l->reverse ? l->steps - 1 - i : i, row = t * l->batch;
        s.xw = all == GRAPHI_NONE ? all : unrolled_rows(g, all, row, row + l->batch);
        s.x = all == GRAPHI_NONE ? unrolled_rows(g, l->x, row, row + l->batch) : GRAPHI_NONE;
        cells[l->cell](l, &s);
        y[t] = s.h;
        if (l->gates)
            gates[t] = graphi_concat(g, gates_of(l->cell), s.gate, 1);
        kept[t] = s.kept;
    }
    *h = s.h;
    *c = s.c;
    const int steps = (int)l->steps;
    return (struct unrolled_results){.y = graphi_concat(g, steps, y, 0),
                                     .gates = l->gates ? graphi_concat(g, steps, gates, 0) : GRAPHI_NONE,
                                     .kept = l->kept ? graphi_concat(g, steps, kept, 0) : GRAPHI_NONE};
}
