/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient rules of the element-wise operations, built from element-wise operations themselves, so that fusion takes
 * them too. A rule builds nothing for an input that needs no gradient. */
#include "ops/elementwise_gradient.h"

#include "ops/check.h"
#include "ops/build.h"

#include <float.h>

/* G: gradient of the output, Y: the output, A, B, C: the inputs. Each rule gives the gradient of one input before it
 * is summed to that input's shape. */
#define G (call->grad_out[0])
#define Y (call->out[0])
#define A (call->in[0])
#define B (call->in[1])
#define C (call->in[2])
#define OP1(kind, a) build1(call->graph, kind, a)
#define OP2(kind, a, b) build2(call->graph, kind, a, b)
#define OP3(kind, a, b, c) build3(call->graph, kind, a, b, c)
#define NUMBER(x) build_scalar(call->graph, x)

static void give(struct gradient_call *call, int input, graphi_value gradient)
{
    call->grad_in[input] = sum_like(call->graph, gradient, call->in[input]);
}

#define RULE(name) void elementwise_##name##_gradient(struct gradient_call *call)
#define GIVE(i, expr)                                                                                                  \
    if (call->needed[i])                                                                                               \
    give(call, i, expr)

/* Evaluated inside GIVE, so nothing is built for an input that needs none. */
RULE(zero)
{
    (void)call;
}
RULE(identity)
{
    GIVE(0, G);
}
RULE(neg)
{
    GIVE(0, OP1("neg", G));
}
RULE(abs)
{
    GIVE(0, OP2("mul", G, OP1("sign", A)));
}
RULE(square)
{
    GIVE(0, OP2("mul", G, OP2("add", A, A)));
}
RULE(sqrt)
{
    GIVE(0, OP2("div", OP2("mul", G, NUMBER(0.5f)), Y));
}
RULE(rsqrt)
{
    GIVE(0, OP2("mul", OP2("mul", G, NUMBER(-0.5f)), OP2("mul", Y, OP1("square", Y))));
}
RULE(reciprocal)
{
    GIVE(0, OP1("neg", OP2("mul", G, OP1("square", Y))));
}
RULE(exp)
{
    GIVE(0, OP2("mul", G, Y));
}
RULE(log)
{
    GIVE(0, OP2("div", G, A));
}
RULE(tanh)
{
    GIVE(0, OP2("mul", G, OP2("sub", NUMBER(1), OP1("square", Y))));
}
RULE(sigmoid)
{
    GIVE(0, OP2("mul", G, OP2("mul", Y, OP2("sub", NUMBER(1), Y))));
}
RULE(relu)
{
    GIVE(0, OP3("select", Y, G, NUMBER(0)));
} /* Y is 0 where nothing passes */
RULE(softplus)
{
    GIVE(0, OP2("mul", G, OP1("sigmoid", A)));
}
RULE(erf)
{
    GIVE(0, OP2("mul", G, OP2("mul", NUMBER(1.1283791670955126f), OP1("exp", OP1("neg", OP1("square", A))))));
}
RULE(add)
{
    GIVE(0, G);
    GIVE(1, G);
}
RULE(sub)
{
    GIVE(0, G);
    GIVE(1, OP1("neg", G));
}
RULE(mul)
{
    GIVE(0, OP2("mul", G, B));
    GIVE(1, OP2("mul", G, A));
}
RULE(div)
{
    GIVE(0, OP2("div", G, B));
    GIVE(1, OP1("neg", OP2("div", OP2("mul", G, Y), B)));
}
/* Of equal arguments the first takes the whole gradient. */
RULE(min)
{
    GIVE(0, OP3("select", OP2("less", B, A), NUMBER(0), G));
    GIVE(1, OP3("select", OP2("less", B, A), G, NUMBER(0)));
}
RULE(max)
{
    GIVE(0, OP3("select", OP2("less", A, B), NUMBER(0), G));
    GIVE(1, OP3("select", OP2("less", A, B), G, NUMBER(0)));
}
/* The exponent less 1. Of 0 it stays 0 where the base's reciprocal is infinite, times which the gradient, 0, and what
 * follows from it would be NaN. */
static graphi_value lower_exponent(struct gradient_call *call)
{
    const graphi_value one = NUMBER(1), has_reciprocal = OP2("less", NUMBER(FLT_MIN), OP1("abs", A));
    return OP2("sub", B, OP3("select", has_reciprocal, one, OP3("select", B, one, NUMBER(0))));
}

/* To the exponent only where the base is positive; elsewhere the logarithm is that of 1, so that its own gradient is
 * finite too. */
RULE(pow)
{
    GIVE(0, OP2("mul", OP2("mul", G, B), OP2("pow", A, lower_exponent(call))));
    GIVE(1, OP3("select", OP1("step", A),
                OP2("mul", OP2("mul", G, Y), OP1("log", OP3("select", OP1("step", A), A, NUMBER(1)))), NUMBER(0)));
}
/* The periods that were taken away, from the result: of a quotient just below a whole number the division gives one
 * more than it has. */
RULE(mod)
{
    const graphi_value periods = OP1("floor", OP2("add", OP2("div", OP2("sub", A, Y), B), NUMBER(0.5f)));
    GIVE(0, G);
    GIVE(1, OP1("neg", OP2("mul", G, periods)));
}
RULE(fma)
{
    GIVE(0, OP2("mul", G, B));
    GIVE(1, OP2("mul", G, A));
    GIVE(2, G);
}
RULE(select)
{
    GIVE(1, OP3("select", A, G, NUMBER(0)));
    GIVE(2, OP3("select", A, NUMBER(0), G));
}
RULE(add_n)
{
    for (int i = 0; i < call->op->inputs; i++)
        GIVE(i, G);
}

/* Summed to the input with the ones that were put in, whose bytes are those of the input. */
RULE(expand)
{
    const struct value_type in = graph_value(call->graph, A)->type;
    const int64_t *axes;
    int64_t dims[GRAPHI_MAX_RANK];
    int count = attr_ints(call->op, "axes", &axes);
    if (!count) {
        give(call, 0, G);
        return;
    }
    for (int i = 0, k = 0; i < in.rank + count; i++) {
        const bool put_in = k < count && axes[k] == i;
        dims[i] = put_in ? 1 : in.dims[i - k];
        k += put_in;
    }
    const graphi_attribute wide[] = {ints_attribute("dims", dims, in.rank + count), int_attribute("symbol", in.symbol)},
                           shape = ints_attribute("shape", in.dims, in.rank);
    const graphi_value sum = graphi_op(call->graph, "sum_to", 1, &G, 2, wide);
    call->grad_in[0] = graphi_op(call->graph, "reshape", 1, &sum, 1, &shape);
}
