/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of element-wise operators of arithmetic, in the order of dimensions that their operands have. One thread
 * lowers. */
#include "flow/elementwise.h"

graphi_status lower_by(struct lower_call *c, graphi_value (*f)(struct lower_call *c, graphi_value x))
{
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const bool last = lower_is_last(x);
    return lower_set(c, 0, f(c, last ? x->last : lower_plain(c->l, x)), last);
}

static graphi_value build(struct lower_call *c, graphi_value x)
{
    return graphi_op(c->l->graph, c->row->builds, 1, &x, 0, NULL);
}

static graphi_status lower_unary(struct lower_call *c)
{
    return lower_by(c, build);
}

static graphi_value same(struct lower_call *c, graphi_value x)
{
    (void)c;
    return x;
}

/* Values of any type, which stay what they are. */
static graphi_status lower_identity(struct lower_call *c)
{
    TRY(lower_movable(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const bool last = lower_is_last(x);
    return lower_set(c, 0, last ? x->last : lower_plain(c->l, x), last);
}

/* Nothing is dropped, so all of the mask is true; training draws numbers. */
static graphi_status lower_dropout(struct lower_call *c)
{
    const graphi_tensor *training = op_in(&c->call, 2);
    const struct flow_value *mode = lower_in(c, 2);
    if (training && (!mode->known || training->count != 1 || value_int(training, 0)))
        return lower_fail(c, "found Dropout in training, expected inference");
    TRY(lower_by(c, same));
    if (!op_wants(&c->call, 1))
        return GRAPHI_OK;
    const graphi_tensor *x = c->call.in[0];
    return lower_set_bool(c, 1, graphi_fill(c->l->graph, x->dims, x->rank, 1, GRAPHI_F32), false);
}

static graphi_value negated(struct lower_call *c, graphi_value x)
{
    return graphi_neg(c->l->graph, x);
}

static graphi_value ceiling(struct lower_call *c, graphi_value x)
{
    return negated(c, graphi_floor(c->l->graph, negated(c, x)));
}

static graphi_status lower_ceil(struct lower_call *c)
{
    return lower_by(c, ceiling);
}

/* To the nearest, halves to even: sums with 1.5 * 2^23 have no fraction. Larger numbers have none themselves. */
static graphi_value rounded(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const graphi_value big = lower_number(c->l, 0x1.8p23);
    const graphi_value whole = graphi_sub(g, graphi_add(g, x, big), big);
    return graphi_select(g, graphi_less(g, graphi_abs(g, x), lower_number(c->l, 0x1p22)), whole, x);
}

static graphi_status lower_round(struct lower_call *c)
{
    return lower_by(c, rounded);
}

graphi_status lower_operands(struct lower_call *c, int count, graphi_value *in, int *rank, bool *last)
{
    int64_t dims[VALUE_RANK];
    *last = false;
    TRY(op_broadcast(&c->call, c->call.in, count, rank, dims));
    for (int i = 0; i < count; i++)
        *last = *last || (c->call.in[i]->rank == *rank && lower_is_last(lower_in(c, i)));
    for (int i = 0; i < count; i++) {
        in[i] = lower_ranked(c->l, lower_in(c, i), *rank, *last);
        if (in[i] == GRAPHI_NONE)
            return lower_fail(c, "found an operand of %s that no plan takes, expected another", c->node->type);
    }
    return GRAPHI_OK;
}

static graphi_status lower_many(struct lower_call *c)
{
    enum { FEW = 64 };
    graphi_value in[FEW];
    const int count = c->call.ins;
    int rank;
    bool last;
    for (int i = 0; i < count; i++)
        TRY(lower_floats(c, i));
    if (count > FEW)
        return lower_fail(c, "found %d operands, expected at most %d for a plan", count, FEW);
    TRY(lower_operands(c, count, in, &rank, &last));
    for (int i = 1; i < count; i++)
        in[0] = graphi_op(c->l->graph, c->row->builds, 2, (const graphi_value[]){in[0], in[i]}, 0, NULL);
    if (c->node->type[0] == 'M' && c->node->type[1] == 'e') /* Mean */
        in[0] = graphi_div(c->l->graph, in[0], lower_number(c->l, count));
    return lower_set(c, 0, in[0], last);
}

/* Powers that need no logarithm, as of layer normalizations that are written out. GRAPHI_NONE: another one. */
static graphi_value simple_power(graphi_graph *g, graphi_value x, double by)
{
    if (by == 1)
        return x;
    if (by == 2)
        return graphi_square(g, x);
    if (by == 3)
        return graphi_mul(g, graphi_square(g, x), x);
    return by == 0.5 ? graphi_sqrt(g, x) : by == -1 ? graphi_reciprocal(g, x) : GRAPHI_NONE;
}

static graphi_status lower_pow(struct lower_call *c)
{
    const struct flow_value *by = lower_in(c, 1);
    for (int i = 0; i < 2; i++)
        TRY(lower_floats(c, i));
    if (by->known && by->known->count == 1 && by->known->rank <= c->call.in[0]->rank) {
        struct flow_value *x = lower_in(c, 0);
        const bool last = lower_is_last(x);
        const graphi_value in = last ? x->last : lower_plain(c->l, x);
        const graphi_value y = simple_power(c->l->graph, in, value_double(by->known, 0));
        if (y != GRAPHI_NONE)
            return lower_set(c, 0, y, last);
    }
    return lower_many(c);
}

const struct lower_row lower_elementwise[] = {
    {"Abs", lower_unary, "abs"},
    {"Neg", lower_unary, "neg"},
    {"Floor", lower_unary, "floor"},
    {"Ceil", lower_ceil, NULL},
    {"Round", lower_round, NULL},
    {"Sign", lower_unary, "sign"},
    {"Sqrt", lower_unary, "sqrt"},
    {"Exp", lower_unary, "exp"},
    {"Log", lower_unary, "log"},
    {"Erf", lower_unary, "erf"},
    {"Reciprocal", lower_unary, "reciprocal"},
    {"Identity", lower_identity, NULL},
    {"Dropout", lower_dropout, NULL},
    {"Add", lower_many, "add"},
    {"Sub", lower_many, "sub"},
    {"Mul", lower_many, "mul"},
    {"Div", lower_many, "div"},
    {"Pow", lower_pow, "pow"},
    {"Max", lower_many, "max"},
    {"Min", lower_many, "min"},
    {"Sum", lower_many, "add"},
    {"Mean", lower_many, "add"},
    {0},
};
