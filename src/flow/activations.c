/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of activations, built of element-wise operations, which passes fuse. One thread lowers. */
#include "flow/elementwise.h"

#include <math.h>
#include <string.h>

#define ACTIVATION(name)                                                                                               \
    static graphi_status lower_##name(struct lower_call *c)                                                            \
    {                                                                                                                  \
        return lower_by(c, name);                                                                                      \
    }

static graphi_value number(struct lower_call *c, double n)
{
    return lower_number(c->l, n);
}

static double attribute(struct lower_call *c, const char *name, double otherwise)
{
    return op_float(&c->call, name, (float)otherwise);
}

static graphi_value build(struct lower_call *c, graphi_value x)
{
    return graphi_op(c->l->graph, c->row->builds, 1, &x, 0, NULL);
}
ACTIVATION(build)

static graphi_value leaky(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const graphi_value below = graphi_mul(g, x, number(c, attribute(c, "alpha", 0.01f)));
    return graphi_select(g, graphi_less(g, x, number(c, 0)), below, x);
}
ACTIVATION(leaky)

/* gamma (e^(x / by) - 1) alpha below 0, gamma x elsewhere. */
static graphi_value exponential(struct lower_call *c, graphi_value x, double alpha, double by, double gamma)
{
    graphi_graph *g = c->l->graph;
    graphi_value low = graphi_min(g, x, number(c, 0));
    low = by == 1 ? low : graphi_div(g, low, number(c, by));
    low = graphi_mul(g, graphi_sub(g, graphi_exp(g, low), number(c, 1)), number(c, alpha));
    const graphi_value y = graphi_select(g, graphi_less(g, x, number(c, 0)), low, x);
    return gamma == 1 ? y : graphi_mul(g, y, number(c, gamma));
}

static graphi_value elu(struct lower_call *c, graphi_value x)
{
    return exponential(c, x, attribute(c, "alpha", 1), 1, 1);
}
ACTIVATION(elu)

static graphi_value selu(struct lower_call *c, graphi_value x)
{
    return exponential(c, x, attribute(c, "alpha", 1.67326319217681884765625), 1,
                       attribute(c, "gamma", 1.05070102214813232421875));
}
ACTIVATION(selu)

static graphi_value celu(struct lower_call *c, graphi_value x)
{
    const double alpha = attribute(c, "alpha", 1);
    return exponential(c, x, alpha, alpha, 1);
}
ACTIVATION(celu)

static graphi_value hard(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const bool swish = strcmp(c->node->type, "HardSwish") == 0;
    const double alpha = swish ? 1.f / 6 : attribute(c, "alpha", 0.2f),
                 beta = swish ? 0.5f : attribute(c, "beta", 0.5f);
    graphi_value y = graphi_add(g, graphi_mul(g, x, number(c, alpha)), number(c, beta));
    y = graphi_min(g, graphi_max(g, y, number(c, 0)), number(c, 1));
    return swish ? graphi_mul(g, x, y) : y;
}
ACTIVATION(hard)

static graphi_value thresholded(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    return graphi_select(g, graphi_less(g, number(c, attribute(c, "alpha", 1)), x), x, number(c, 0));
}
ACTIVATION(thresholded)

static graphi_value softsign(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    return graphi_div(g, x, graphi_add(g, graphi_abs(g, x), number(c, 1)));
}
ACTIVATION(softsign)

static graphi_value mish(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    return graphi_mul(g, x, graphi_tanh(g, graphi_softplus(g, x)));
}
ACTIVATION(mish)

static graphi_value swish(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const double alpha = attribute(c, "alpha", 1);
    return graphi_mul(g, x, graphi_sigmoid(g, alpha == 1 ? x : graphi_mul(g, x, number(c, alpha))));
}
ACTIVATION(swish)

/* x / 2 (1 + erf(x / sqrt 2)), or tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in place of erf. */
static graphi_value gelu(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    graphi_value inner;
    if (strcmp(op_string(&c->call, "approximate", "none"), "tanh") == 0) {
        inner = graphi_mul(g, graphi_mul(g, x, graphi_square(g, x)), number(c, 0.044715));
        inner = graphi_tanh(g, graphi_mul(g, graphi_add(g, x, inner), number(c, 0.7978845608028654)));
    } else {
        inner =
            graphi_op(g, "erf", 1, (const graphi_value[]){graphi_mul(g, x, number(c, 0.7071067811865476))}, 0, NULL);
    }
    return graphi_mul(g, graphi_mul(g, x, number(c, 0.5)), graphi_add(g, inner, number(c, 1)));
}
ACTIVATION(gelu)

static graphi_value shrink(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const double bias = attribute(c, "bias", 0), lambda = attribute(c, "lambd", 0.5);
    const graphi_value less = graphi_less(g, x, number(c, -lambda)), more = graphi_less(g, number(c, lambda), x);
    const graphi_value high = graphi_select(g, more, graphi_sub(g, x, number(c, bias)), number(c, 0));
    return graphi_select(g, less, graphi_add(g, x, number(c, bias)), high);
}
ACTIVATION(shrink)

static graphi_status lower_prelu(struct lower_call *c)
{
    graphi_value in[2];
    int rank;
    bool last;
    for (int i = 0; i < 2; i++)
        TRY(lower_floats(c, i));
    TRY(lower_operands(c, 2, in, &rank, &last));
    graphi_graph *g = c->l->graph;
    const graphi_value low = graphi_mul(g, in[0], in[1]);
    return lower_set(c, 0, graphi_select(g, graphi_less(g, in[0], number(c, 0)), low, in[0]), last);
}

static graphi_value clip(struct lower_call *c, graphi_value x)
{
    const graphi_tensor *least = op_in(&c->call, 1), *most = op_in(&c->call, 2);
    if (least)
        x = graphi_max(c->l->graph, x, number(c, value_double(least, 0)));
    return most ? graphi_min(c->l->graph, x, number(c, value_double(most, 0))) : x;
}

static graphi_status lower_clip(struct lower_call *c)
{
    double bounds[2] = {-INFINITY, INFINITY};
    TRY(lower_constants(c, 1));
    for (int i = 1; i < c->node->ins; i++) {
        struct flow_value *bound = lower_in(c, i);
        if (!bound)
            continue;
        TRY(lower_floats(c, i));
        if (bound->known->count != 1)
            return lower_fail(c, "found a bound of %lld elements, expected a number", (long long)bound->known->count);
        bounds[i - 1] = value_double(bound->known, 0);
    }
    if (!(bounds[0] <= bounds[1]))
        return lower_fail(c, "found bounds %g and %g, expected them in order", bounds[0], bounds[1]);
    return lower_by(c, clip);
}

const struct lower_row lower_activations[] = {
    {"Tanh", lower_build, "tanh"},
    {"Sigmoid", lower_build, "sigmoid"},
    {"Relu", lower_build, "relu"},
    {"Softplus", lower_build, "softplus"},
    {"LeakyRelu", lower_leaky, NULL},
    {"Elu", lower_elu, NULL},
    {"Selu", lower_selu, NULL},
    {"Celu", lower_celu, NULL},
    {"HardSigmoid", lower_hard, NULL},
    {"HardSwish", lower_hard, NULL},
    {"ThresholdedRelu", lower_thresholded, NULL},
    {"Softsign", lower_softsign, NULL},
    {"Mish", lower_mish, NULL},
    {"Swish", lower_swish, NULL},
    {"Gelu", lower_gelu, NULL},
    {"Shrink", lower_shrink, NULL},
    {"PRelu", lower_prelu, NULL},
    {"Clip", lower_clip, NULL},
    {0},
};
