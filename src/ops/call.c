/* SPDX-License-Identifier: Apache-2.0 */
/* call(values...): one sub-graph run as a node: region 0's inputs by position take the node's inputs, its outputs by
 * position are the node's. It has no kernel: the plan inlines it, or schedules the region's instances. The gradient is
 * a call too: a body that repeats the forward computation and continues with its derivative, so regions stay regions.
 * It has the key of the call, so that what is random in the body draws the same numbers again. */
#include "graph/op.h"

#include "base/memory.h"

#include <stdio.h>

static int body_inputs(const graphi_graph *body)
{
    int count = 0;
    for (size_t v = 0; v < body->values.count; v++)
        count += graph_value(body, (int32_t)v)->kind == VALUE_INPUT;
    return count;
}

/* A type of the body with the caller's symbol for its own. An input has its symbol's bound as dimension 0, so the sizes
 * that follow it are multiples of the caller's bound too. */
static graphi_status outside_type(const struct shape_call *call, const struct value_type *inside,
                                  struct value_type *out)
{
    struct value_type type = *inside;
    if (inside->symbol >= 0) {
        type.symbol = graph_region_symbol(call->graph, call->node, inside->symbol);
        if (type.symbol < 0)
            return fail(GRAPHI_INVALID, call->where, "found a result in the region that follows '%s', expected a "
                        "symbol of one of its inputs", call->node->region[0]->symbols.data[inside->symbol].name);
    }
    *out = type;
    return GRAPHI_OK;
}

static graphi_status check_input(const struct shape_call *call, const struct value *input, int position)
{
    const struct value_type *given = call->in[position];
    struct value_type wanted = input->type;
    if (given->symbol >= 0 && wanted.symbol >= 0) {
        TRY(outside_type(call, &input->type, &wanted));
        if (given->symbol != wanted.symbol)
            return fail(GRAPHI_INVALID, call->where,
                        "found input %d that follows '%s', expected '%s' as before for the region's '%s'", position,
                        call->graph->symbols.data[given->symbol].name, call->graph->symbols.data[wanted.symbol].name,
                        call->node->region[0]->symbols.data[input->type.symbol].name);
    }
    if (type_equal(&wanted, given))
        return GRAPHI_OK;
    char found[96], expected[96];
    type_text(given, found, sizeof found);
    type_text(&wanted, expected, sizeof expected);
    return fail(GRAPHI_INVALID, call->where, "found input %d of type %s, expected %s like the region's '%s'", position,
                found, expected, input->name);
}

static graphi_status call_shape(const struct shape_call *call)
{
    if (call->node->regions != 1)
        return fail(GRAPHI_INVALID, call->where, "found %d regions, expected one (graphi_region)", call->node->regions);
    const graphi_graph *body = call->node->region[0];
    if (body_inputs(body) != call->node->inputs)
        return fail(GRAPHI_INVALID, call->where, "found %d inputs, expected %d like the region", call->node->inputs,
                    body_inputs(body));
    if (attr_int(call->node, "outputs") != (int64_t)body->outputs.count)
        return fail(GRAPHI_INVALID, call->where, "found %lld outputs, expected %zu like the region",
                    (long long)attr_int(call->node, "outputs"), body->outputs.count);
    int position = 0;
    for (size_t v = 0; v < body->values.count; v++) {
        const struct value *value = graph_value(body, (int32_t)v);
        if (value->kind == VALUE_PARAMETER)
            return fail(GRAPHI_INVALID, call->where, "found parameter '%s' in the region, expected inputs only",
                        value->name);
        if (value->kind == VALUE_INPUT)
            TRY(check_input(call, value, position++));
    }
    struct value_type outside;
    for (size_t v = 0; v < body->values.count; v++)
        TRY(outside_type(call, &graph_value(body, (int32_t)v)->type, &outside));
    for (size_t i = 0; i < body->outputs.count; i++)
        TRY(outside_type(call, &graph_value(body, body->outputs.data[i].value)->type, &call->out[i]));
    return GRAPHI_OK;
}

/* As a graph counts its own: products and convolutions, in nested calls too. */
static double call_flops(const struct shape_call *call)
{
    double flops = 0;
    const graphi_graph *body = call->node->region[0];
    for (size_t i = 0; i < body->nodes.count; i++)
        if (graph_node(body, (int32_t)i)->kind->flags & OP_GEMM || graph_node(body, (int32_t)i)->regions)
            flops += node_flops(body, (int32_t)i);
    return flops;
}

/* Fills `body` (a clone of the forward body) with its derivative; inputs of the call: forward inputs, then the
 * gradients that flow. Gives the number of results, one a needed input that the outputs depend on, marked in `depends`.
 */
static int differentiate_body(const struct gradient_call *call, graphi_graph *body, int seeds, graphi_value *work,
                              bool *depends)
{
    int inputs = call->op->inputs, n = 0, seeded = 0;
    graphi_value *of = work, *seed = of + seeds, *wrt = seed + seeds, *gradient = wrt + inputs;
    for (size_t v = 0, position = 0; v < body->values.count; v++)
        if (graph_value(body, (int32_t)v)->kind == VALUE_INPUT && call->needed[position++])
            wrt[n++] = (graphi_value)v;
    for (int k = 0; k < call->op->outputs; k++) {
        if (call->grad_out[k] == GRAPHI_NONE)
            continue;
        char name[48]; /* unlike those of an earlier differentiation */
        snprintf(name, sizeof name, "gradient %zu", body->values.count);
        of[seeded] = body->outputs.data[k].value;
        struct value_type type = graph_value(body, of[seeded])->type; /* whose symbol is the body's */
        type.dtype = graph_value(call->graph, call->grad_out[k])->type.dtype;
        seed[seeded++] = graph_input(body, name, &type);
    }
    body->outputs.count = 0;
    graph_forget_names(body);
    if (graph_differentiate(body, seeds, of, seed, n, wrt, gradient) != GRAPHI_OK)
        return 0;
    int results = 0;
    for (int i = 0, at = 0; i < inputs; i++) {
        depends[i] = call->needed[i] && gradient[at++] != GRAPHI_NONE;
        char name[32];
        snprintf(name, sizeof name, "result %d", i);
        if (depends[i]) {
            graphi_output(body, name, gradient[at - 1]);
            results++;
        }
    }
    return results;
}

static void call_gradient(struct gradient_call *call)
{
    int inputs = call->op->inputs, outputs = call->op->outputs, seeds = 0;
    for (int k = 0; k < outputs; k++)
        seeds += call->grad_out[k] != GRAPHI_NONE;
    graphi_value *work = mem_zalloc_array((size_t)(2 * outputs + 2 * inputs + inputs + outputs) + 1, sizeof *work);
    bool *depends = mem_zalloc_array((size_t)inputs + 1, sizeof *depends);
    graphi_graph *body = NULL;
    graphi_status status = work && depends ? GRAPHI_OK : fail_memory("call", sizeof *work * (size_t)(inputs + outputs));
    if (status == GRAPHI_OK)
        status = graph_clone(call->op->region[0], &body);
    if (status == GRAPHI_OK) {
        int results = differentiate_body(call, body, seeds, work, depends);
        status = graphi_graph_status(body);
        if (status == GRAPHI_OK && results) {
            graphi_value *input = work;
            int count = 0;
            for (int i = 0; i < inputs; i++)
                input[count++] = call->in[i];
            for (int k = 0; k < outputs; k++)
                if (call->grad_out[k] != GRAPHI_NONE)
                    input[count++] = call->grad_out[k];
            graphi_value out = graphi_region(call->graph, body, count, input);
            body = NULL;
            if (out != GRAPHI_NONE)
                call->graph->nodes.data[graph_value(call->graph, out)->node].key = call->op->key;
            for (int i = 0; out != GRAPHI_NONE && i < inputs; i++)
                if (depends[i])
                    call->grad_in[i] = out++;
        }
    }
    graphi_graph_destroy(body);
    mem_free(work);
    mem_free(depends);
    graph_broken(call->graph, status);
}

static const struct op_attribute call_attributes[] = {
    {.name = "outputs", .meaning = "how many", .type = GRAPHI_INT, .required = true},
    {0},
};

const struct op_kind ops_call[] = {
    {.name = "call",
     .role = IS_CALL,
     .summary = "runs a sub-graph",
     .shapes = "those of the sub-graph",
     .min_inputs = 0,
     .max_inputs = -1,
     .outputs = -1,
     .attributes = call_attributes,
     .flags = OP_BOUNDED,
     .scalability = "",
     .shape = call_shape,
     .gradient = call_gradient,
     .flops = call_flops},
    {0},
};
