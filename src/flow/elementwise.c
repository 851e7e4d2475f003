/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of element-wise operators, in the order of dimensions that their operands have. One thread lowers. */
#include "flow/lower.h"

#include <math.h>

static graphi_status unary(struct lower_call *c, graphi_value (*f)(struct lower_call *c, graphi_value x))
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
    return unary(c, build);
}

static graphi_value same(struct lower_call *c, graphi_value x)
{
    return x;
}

/* Of Dropout the mask has no lowering; training draws numbers. */
static graphi_status lower_same(struct lower_call *c)
{
    const graphi_tensor *training = op_in(&c->call, 2);
    const struct flow_value *mode = lower_in(c, 2);
    if (training && (!mode->known || training->count != 1 || value_int(training, 0)))
        return lower_fail(c, "found Dropout in training, expected inference");
    return unary(c, same);
}

static graphi_value leaky(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const double alpha = op_float(&c->call, "alpha", 0.01f);
    graphi_value zero = lower_number(c->l, 0), less = graphi_less(g, x, zero);
    return graphi_select(g, less, graphi_mul(g, x, lower_number(c->l, alpha)), x);
}

static graphi_status lower_leaky(struct lower_call *c)
{
    return unary(c, leaky);
}

static graphi_value elu(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    graphi_value one = lower_number(c->l, 1), zero = lower_number(c->l, 0);
    graphi_value below = graphi_sub(g, graphi_exp(g, graphi_min(g, x, zero)), one);
    below = graphi_mul(g, below, lower_number(c->l, op_float(&c->call, "alpha", 1)));
    return graphi_select(g, graphi_less(g, x, zero), below, x);
}

static graphi_status lower_elu(struct lower_call *c)
{
    return unary(c, elu);
}

static graphi_value hard(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const bool swish = c->node->type[4] == 'S' && c->node->type[5] == 'w';
    const double alpha = swish ? 1.f / 6 : op_float(&c->call, "alpha", 0.2f);
    const double beta = swish ? 0.5f : op_float(&c->call, "beta", 0.5f);
    graphi_value y = graphi_add(g, graphi_mul(g, x, lower_number(c->l, alpha)), lower_number(c->l, beta));
    y = graphi_min(g, graphi_max(g, y, lower_number(c->l, 0)), lower_number(c->l, 1));
    return swish ? graphi_mul(g, x, y) : y;
}

static graphi_status lower_hard(struct lower_call *c)
{
    return unary(c, hard);
}

static graphi_value clip(struct lower_call *c, graphi_value x)
{
    const graphi_tensor *least = op_in(&c->call, 1), *most = op_in(&c->call, 2);
    if (least)
        x = graphi_max(c->l->graph, x, lower_number(c->l, value_double(least, 0)));
    return most ? graphi_min(c->l->graph, x, lower_number(c->l, value_double(most, 0))) : x;
}

static graphi_status lower_clip(struct lower_call *c)
{
    double bounds[2] = {-INFINITY, INFINITY};
    for (int i = 1; i < c->node->ins; i++) {
        struct flow_value *bound = lower_in(c, i);
        if (!bound)
            continue;
        TRY(lower_floats(c, i));
        if (!bound->known || bound->known->count != 1)
            return lower_fail(c, "found a bound that is computed, expected a constant number");
        bounds[i - 1] = value_double(bound->known, 0);
    }
    if (!(bounds[0] <= bounds[1]))
        return lower_fail(c, "found bounds %g and %g, expected them in order", bounds[0], bounds[1]);
    return unary(c, clip);
}

/* All operands in the order of the first that is there with channels last alone and has the most dimensions. */
static graphi_status lower_many(struct lower_call *c)
{
    int rank, count = c->call.ins;
    int64_t dims[VALUE_RANK];
    bool last = false;
    graphi_value sum = GRAPHI_NONE;
    for (int i = 0; i < count; i++)
        TRY(lower_floats(c, i));
    TRY(op_broadcast(&c->call, c->call.in, count, &rank, dims));
    for (int i = 0; i < count; i++)
        last = last || (c->call.in[i]->rank == rank && lower_is_last(lower_in(c, i)));
    for (int i = 0; i < count; i++) {
        const graphi_value in[2] = {sum, lower_ranked(c->l, lower_in(c, i), rank, last)};
        if (in[1] == GRAPHI_NONE)
            return lower_set(c, 0, GRAPHI_NONE, false);
        sum = i ? graphi_op(c->l->graph, c->row->builds, 2, in, 0, NULL) : in[1];
    }
    return lower_set(c, 0, sum, last);
}

const struct lower_row lower_elementwise[] = {
    {"Abs", lower_unary, "abs"},
    {"Neg", lower_unary, "neg"},
    {"Floor", lower_unary, "floor"},
    {"Sqrt", lower_unary, "sqrt"},
    {"Exp", lower_unary, "exp"},
    {"Log", lower_unary, "log"},
    {"Tanh", lower_unary, "tanh"},
    {"Reciprocal", lower_unary, "reciprocal"},
    {"Sigmoid", lower_unary, "sigmoid"},
    {"Relu", lower_unary, "relu"},
    {"Softplus", lower_unary, "softplus"},
    {"Identity", lower_same, NULL},
    {"Dropout", lower_same, NULL},
    {"LeakyRelu", lower_leaky, NULL},
    {"Elu", lower_elu, NULL},
    {"HardSigmoid", lower_hard, NULL},
    {"HardSwish", lower_hard, NULL},
    {"Clip", lower_clip, NULL},
    {"Add", lower_many, "add"},
    {"Sub", lower_many, "sub"},
    {"Mul", lower_many, "mul"},
    {"Div", lower_many, "div"},
    {"Pow", lower_many, "pow"},
    {"Max", lower_many, "max"},
    {"Min", lower_many, "min"},
    {"Sum", lower_many, "add"},
    {0},
};
