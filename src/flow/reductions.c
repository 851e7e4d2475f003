/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of reductions: a sum, mean, maximum or sum of squares, with arithmetic before and behind it. One thread
 * lowers. */
#include "flow/lower.h"

#include <math.h>
#include <string.h>

enum reduction { SUM, MEAN, MAX, SQUARES, MIN, L1, L2, LOG_SUM, LOG_SUM_EXP };

static const struct {
    const char *op, *builds;
} reductions[] = {
    [SUM] = {"ReduceSum", "reduce_sum"},
    [MEAN] = {"ReduceMean", "reduce_mean"},
    [MAX] = {"ReduceMax", "reduce_max"},
    [SQUARES] = {"ReduceSumSquare", "reduce_sum_squares"},
    [MIN] = {"ReduceMin", "reduce_max"},
    [L1] = {"ReduceL1", "reduce_sum"},
    [L2] = {"ReduceL2", "reduce_sum_squares"},
    [LOG_SUM] = {"ReduceLogSum", "reduce_sum"},
    [LOG_SUM_EXP] = {"ReduceLogSumExp", "reduce_max"},
};

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

/* The axes, each once; *count 0: there are none to reduce over. */
static graphi_status given_axes(struct lower_call *c, int rank, int64_t *axes, int *count)
{
    int axis;
    bool seen[VALUE_RANK] = {false};
    TRY(lower_constants(c, 1));
    TRY(op_list(&c->call, 1, "axes", axes, count));
    for (int i = 0; i < *count; i++) {
        TRY(op_axis(&c->call, axes[i], rank, &axis));
        if (seen[axis])
            return lower_fail(c, "found axis %d twice, expected it once", axis);
        seen[axis] = true;
        axes[i] = axis;
    }
    if (*count > 0 || op_int(&c->call, "noop_with_empty_axes", 0)) {
        *count = *count < 0 ? 0 : *count;
        return GRAPHI_OK;
    }
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    *count = rank;
    return GRAPHI_OK;
}

struct over {
    graphi_graph *graph;
    const int64_t *axes;
    int count;
    bool keeps;
};

static graphi_value reduce(const struct over *o, const char *kind, graphi_value x, bool keeps)
{
    if (!o->count)
        return kind[7] == 's' && kind[10] == '_' ? graphi_square(o->graph, x) : x;
    const graphi_attribute attributes[] = {{"axes", GRAPHI_INTS, 0, 0, o->axes, o->count},
                                           {"keepdims", GRAPHI_INT, keeps, 0, NULL, 0}};
    return graphi_op(o->graph, kind, 1, &x, 2, attributes);
}

/* The maximum, 0 where it is infinite or no number. */
static graphi_value finite_most(struct lower_call *c, const struct over *o, graphi_value x, bool keeps)
{
    graphi_graph *g = o->graph;
    const graphi_value most = reduce(o, "reduce_max", x, keeps), end = lower_number(c->l, INFINITY);
    return graphi_select(g, graphi_less(g, graphi_abs(g, most), end), most, lower_number(c->l, 0));
}

/* max + log sum e^(x - max), the maximum with its dimensions and without. */
static graphi_value log_sum_exp(struct lower_call *c, const struct over *o, graphi_value x)
{
    graphi_graph *g = o->graph;
    const graphi_value most = finite_most(c, o, x, true);
    const graphi_value sum = reduce(o, "reduce_sum", graphi_exp(g, graphi_sub(g, x, most)), o->keeps);
    return graphi_add(g, graphi_log(g, sum), o->keeps ? most : finite_most(c, o, x, false));
}

static graphi_value reduction(struct lower_call *c, const struct over *o, enum reduction which, graphi_value x)
{
    graphi_graph *g = o->graph;
    if (which == LOG_SUM_EXP)
        return log_sum_exp(c, o, x);
    x = which == MIN ? graphi_neg(g, x) : which == L1 ? graphi_abs(g, x) : x;
    x = reduce(o, reductions[which].builds, x, o->keeps);
    return which == MIN ? graphi_neg(g, x) : which == L2 ? graphi_sqrt(g, x) : which == LOG_SUM ? graphi_log(g, x) : x;
}

static graphi_status lower_reduce(struct lower_call *c)
{
    int64_t axes[VALUE_RANK];
    int count, which = SUM;
    bool last;
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const int rank = c->call.in[0]->rank;
    const bool keeps = op_int(&c->call, "keepdims", 1) != 0;
    while (which < LOG_SUM_EXP && strcmp(reductions[which].op, c->node->type) != 0)
        which++;
    TRY(given_axes(c, rank, axes, &count));
    find_axes(x, rank, keeps || !count, count, axes, &last);
    const struct over over = {c->l->graph, axes, count, keeps || !count};
    const graphi_value in = last ? x->last : lower_plain(c->l, x);
    return lower_set(c, 0, reduction(c, &over, (enum reduction)which, in), last && over.keeps);
}

const struct lower_row lower_reductions[] = {
    {"ReduceSum", lower_reduce, NULL},       {"ReduceMean", lower_reduce, NULL},
    {"ReduceMax", lower_reduce, NULL},       {"ReduceSumSquare", lower_reduce, NULL},
    {"ReduceMin", lower_reduce, NULL},       {"ReduceL1", lower_reduce, NULL},
    {"ReduceL2", lower_reduce, NULL},        {"ReduceLogSum", lower_reduce, NULL},
    {"ReduceLogSumExp", lower_reduce, NULL}, {0},
};
