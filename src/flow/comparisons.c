/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of comparisons, of logic and of choices by them. Truth values are 0 and 1 inside a graph. One thread
 * lowers. */
#include "flow/elementwise.h"

#include <string.h>

enum compare { EQUAL, LESS, GREATER, LESS_OR_EQUAL, GREATER_OR_EQUAL, AND, OR, XOR };

/* Each is false where an operand is NaN. */
static graphi_value compare(graphi_graph *g, enum compare which, graphi_value a, graphi_value b)
{
    switch (which) {
    case EQUAL:
        return graphi_equal(g, a, b);
    case LESS:
        return graphi_less(g, a, b);
    case GREATER:
        return graphi_less(g, b, a);
    case LESS_OR_EQUAL:
        return graphi_max(g, graphi_less(g, a, b), graphi_equal(g, a, b));
    case GREATER_OR_EQUAL:
        return graphi_max(g, graphi_less(g, b, a), graphi_equal(g, a, b));
    case AND:
        return graphi_mul(g, a, b);
    case OR:
        return graphi_max(g, a, b);
    default:
        return graphi_abs(g, graphi_sub(g, a, b));
    }
}

static graphi_status truth(const struct lower_call *c, int i)
{
    struct value_text text;
    const graphi_tensor *value = op_in(&c->call, i);
    if (value && value->kind == GRAPHI_KIND_TENSOR && value->count && value->type == T_BOOL)
        return GRAPHI_OK;
    return lower_fail(c, "found %s as input %d of %s, expected bool for a plan", value_describe(value, &text), i,
                      c->node->type);
}

static graphi_status lower_compare(struct lower_call *c)
{
    static const char *const names[] = {"Equal",          "Less", "Greater", "LessOrEqual",
                                        "GreaterOrEqual", "And",  "Or",      "Xor"};
    int which = EQUAL, rank;
    graphi_value in[2];
    bool last;
    while (which < XOR && strcmp(names[which], c->node->type) != 0)
        which++;
    for (int i = 0; i < 2; i++)
        TRY(which >= AND || (which == EQUAL && c->call.in[0]->type == T_BOOL) ? truth(c, i) : lower_floats(c, i));
    TRY(lower_operands(c, 2, in, &rank, &last));
    return lower_set_bool(c, 0, compare(c->l->graph, (enum compare)which, in[0], in[1]), last);
}

static graphi_status lower_not(struct lower_call *c)
{
    TRY(truth(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const bool last = lower_is_last(x);
    const graphi_value in = last ? x->last : lower_plain(c->l, x);
    return lower_set_bool(c, 0, graphi_equal(c->l->graph, in, lower_number(c->l, 0)), last);
}

static graphi_status lower_nan(struct lower_call *c)
{
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0);
    graphi_graph *g = c->l->graph;
    const bool last = lower_is_last(x);
    const graphi_value in = last ? x->last : lower_plain(c->l, x);
    return lower_set_bool(c, 0, graphi_equal(g, graphi_equal(g, in, in), lower_number(c->l, 0)), last);
}

static graphi_status lower_where(struct lower_call *c)
{
    graphi_value in[3];
    int rank;
    bool last;
    TRY(truth(c, 0));
    for (int i = 1; i < 3; i++)
        TRY(c->call.in[i]->type == T_BOOL ? truth(c, i) : lower_floats(c, i));
    c->type = c->call.in[1]->type;
    TRY(lower_operands(c, 3, in, &rank, &last));
    return lower_set(c, 0, graphi_select(c->l->graph, in[0], in[1], in[2]), last);
}

const struct lower_row lower_comparisons[] = {
    {"Equal", lower_compare, NULL},
    {"Less", lower_compare, NULL},
    {"Greater", lower_compare, NULL},
    {"LessOrEqual", lower_compare, NULL},
    {"GreaterOrEqual", lower_compare, NULL},
    {"And", lower_compare, NULL},
    {"Or", lower_compare, NULL},
    {"Xor", lower_compare, NULL},
    {"Not", lower_not, NULL},
    {"IsNaN", lower_nan, NULL},
    {"Where", lower_where, NULL},
    {0},
};
