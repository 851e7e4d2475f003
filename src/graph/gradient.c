/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation. A value is active when it depends on something of wrt and the loss depends on it; only
 * active values get gradients. Nodes are visited backwards, so all terms of a value's gradient are known when its
 * producer is reached; several terms become one n-ary `add_n`. Backward nodes keep their forward node's scope and are
 * marked backward.
 *
 * Usual size: 6,000 forward nodes of an unrolled LSTM, up to 30 terms a weight. */
#include "graph/graph.h"

#include "base/float_mode.h"
#include "base/element.h"
#include "graph/op.h"

#include <string.h>

struct term {
    graphi_value value;
    int32_t next; /* older term of the same value, -1: none */
};

struct differ {
    graphi_graph *graph;
    int32_t values, nodes;  /* before the backward graph */
    bool *influenced;       /* value depends on wrt */
    int32_t *head, *tail;   /* value: its terms, in the order they came; -1: none */
    graphi_value *sum;      /* value: its summed gradient, GRAPHI_NONE: not summed yet */
    ARRAY(struct term) terms;
};

static bool add_term(struct differ *d, graphi_value of, graphi_value gradient)
{
    struct term term = {gradient, -1};
    if (!array_push(&d->terms, term))
        return false;
    int32_t at = (int32_t)d->terms.count - 1;
    if (d->head[of] < 0)
        d->head[of] = at;
    else
        d->terms.data[d->tail[of]].next = at;
    d->tail[of] = at;
    return true;
}

static graphi_value add_terms(graphi_graph *graph, int count, const graphi_value *terms)
{
    if (count == 1)
        return terms[0];
    if (op_find("add_n"))
        return graphi_op(graph, "add_n", count, terms, 0, NULL);
    graphi_value sum = terms[0];
    for (int i = 1; i < count; i++)
        sum = graphi_op(graph, "add", 2, (graphi_value[]){sum, terms[i]}, 0, NULL);
    return sum;
}

/* The gradient of a value whose readers are all done: GRAPHI_NONE when none flows. */
static graphi_value summed(struct differ *d, graphi_value of)
{
    if (d->sum[of] != GRAPHI_NONE || d->head[of] < 0)
        return d->sum[of];
    int count = 0;
    for (int32_t t = d->head[of]; t >= 0; t = d->terms.data[t].next)
        count++;
    graphi_value *list = mem_zalloc_array((size_t)count, sizeof *list);
    if (!list)
        return graph_broken(d->graph, fail_memory("gradients", sizeof *list * (size_t)count));
    count = 0;
    for (int32_t t = d->head[of]; t >= 0; t = d->terms.data[t].next)
        list[count++] = d->terms.data[t].value;
    d->sum[of] = add_terms(d->graph, count, list);
    mem_free(list);
    return d->sum[of];
}

/* Gradients are float32, also those of values of other floating types, so that sums of them are not rounded. */
static bool has_gradient(const struct value_type *type)
{
    return dtype_is_float(type->dtype);
}

static graphi_status mark_influenced(struct differ *d, int n, const graphi_value *wrt)
{
    for (int i = 0; i < n; i++) {
        if (wrt[i] < 0 || wrt[i] >= d->values)
            return fail(GRAPHI_INVALID, "gradients", "found value %d, expected a value of this graph", wrt[i]);
        if (!has_gradient(&graph_value(d->graph, wrt[i])->type))
            return fail(GRAPHI_INVALID, "gradients", "found value %d of type %s, expected float32 or bfloat16", wrt[i],
                        graphi_dtype_name(graph_value(d->graph, wrt[i])->type.dtype));
        d->influenced[wrt[i]] = true;
    }
    for (int32_t id = 0; id < d->nodes; id++) {
        const struct node *node = graph_node(d->graph, id);
        bool any = false;
        for (int k = 0; k < node->inputs; k++)
            any |= d->influenced[node->input[k]];
        for (int k = 0; any && k < node->outputs; k++)
            if (has_gradient(&graph_value(d->graph, node->output + k)->type))
                d->influenced[node->output + k] = true;
    }
    return GRAPHI_OK;
}

/* What an operation's rule answered: right types only, then into the terms. */
static graphi_status take_gradients(struct differ *d, const struct node *node, const char *where, const bool *needed,
                                    const graphi_value *grad_in)
{
    TRY(d->graph->status);
    for (int k = 0; k < node->inputs; k++) {
        if (grad_in[k] == GRAPHI_NONE || !needed[k])
            continue;
        struct value_type type = graph_value(d->graph, node->input[k])->type;
        const struct value_type *given = &graph_value(d->graph, grad_in[k])->type;
        type.dtype = GRAPHI_F32;
        if (!type_equal(&type, given)) {
            char found[96], expected[96];
            type_text(given, found, sizeof found);
            type_text(&type, expected, sizeof expected);
            return fail(GRAPHI_INVALID, where, "found a gradient of type %s for input %d, expected %s", found, k,
                        expected);
        }
        if (!add_term(d, node->input[k], grad_in[k]))
            return fail_memory(where, sizeof(struct term));
    }
    return GRAPHI_OK;
}

/* One node: gradients of its outputs in, terms of its inputs out. `scratch` holds outputs + inputs values and inputs
 * flags. */
static graphi_status visit(struct differ *d, int32_t id, graphi_value *grad_out, graphi_value *grad_in,
                           graphi_value *out, bool *needed)
{
    struct node node = *graph_node(d->graph, id);
    bool flows = false, wanted = false;
    for (int k = 0; k < node.inputs; k++) {
        needed[k] = d->influenced[node.input[k]];
        wanted |= needed[k];
        grad_in[k] = GRAPHI_NONE;
    }
    for (int k = 0; k < node.outputs; k++)
        flows |= d->head[node.output + k] >= 0;
    if (!flows || !wanted)
        return GRAPHI_OK;
    d->graph->scope = node.scope;
    for (int k = 0; k < node.outputs; k++) {
        out[k] = node.output + k;
        grad_out[k] = summed(d, out[k]);
    }
    TRY(d->graph->status);
    char where[160];
    node_text(d->graph, id, where, sizeof where);
    if (!node.kind->gradient)
        return fail(GRAPHI_UNSUPPORTED, where, "found no gradient, expected a differentiable operation");
    d->graph->nodes.data[id].differentiated = true;
    node.kind->gradient(&(struct gradient_call){.graph = d->graph,
                                                .node = id,
                                                .op = &node,
                                                .in = node.input,
                                                .out = out,
                                                .grad_out = grad_out,
                                                .needed = needed,
                                                .grad_in = grad_in});
    return take_gradients(d, &node, where, needed, grad_in);
}

static graphi_status sweep(struct differ *d, int seeds, const graphi_value *of, const graphi_value *seed)
{
    for (int i = 0; i < seeds; i++)
        if (!add_term(d, of[i], seed[i]))
            return fail_memory("gradients", sizeof(struct term));
    size_t widest = 1;
    for (int32_t id = 0; id < d->nodes; id++) {
        size_t width = (size_t)graph_node(d->graph, id)->inputs + (size_t)graph_node(d->graph, id)->outputs;
        widest = width > widest ? width : widest;
    }
    graphi_value *scratch = mem_zalloc_array(widest * 4, sizeof *scratch);
    if (!scratch)
        return fail_memory("gradients", widest * 4 * sizeof *scratch);
    graphi_status status = GRAPHI_OK;
    for (int32_t id = d->nodes - 1; status == GRAPHI_OK && id >= 0; id--)
        status = visit(d, id, scratch, scratch + widest, scratch + widest * 2, (bool *)(scratch + widest * 3));
    mem_free(scratch);
    return status;
}

static graphi_status differentiate(struct differ *d, int seeds, const graphi_value *of, const graphi_value *seed, int n,
                                   const graphi_value *wrt, graphi_value *gradient)
{
    TRY(mark_influenced(d, n, wrt));
    TRY(sweep(d, seeds, of, seed));
    graphi_value *found = mem_zalloc_array((size_t)n + 1, sizeof *found);
    if (!found)
        return fail_memory("gradients", sizeof *found * (size_t)n);
    for (int i = 0; i < n; i++) {
        int32_t producer = graph_value(d->graph, wrt[i])->node;
        d->graph->scope = producer < 0 ? "" : graph_node(d->graph, producer)->scope;
        found[i] = summed(d, wrt[i]);
    }
    if (d->graph->status == GRAPHI_OK)
        memcpy(gradient, found, sizeof *found * (size_t)n);
    mem_free(found);
    return d->graph->status;
}

graphi_status graph_differentiate(graphi_graph *graph, int seeds, const graphi_value *of, const graphi_value *seed,
                                  int n, const graphi_value *wrt, graphi_value *gradient)
{
    size_t values = graph->values.count;
    struct differ d = {.graph = graph, .values = (int32_t)values, .nodes = (int32_t)graph->nodes.count};
    d.influenced = mem_zalloc_array(values, sizeof *d.influenced);
    d.head = mem_zalloc_array(values * 3, sizeof *d.head);
    const char *scope = graph->scope;
    bool backward = graph->backward;
    graphi_status status = d.influenced && d.head ? GRAPHI_OK : fail_memory("gradients", values * 13);
    if (status == GRAPHI_OK) {
        memset(d.head, 0xff, values * 3 * sizeof *d.head);
        d.tail = d.head + values;
        d.sum = d.head + values * 2;
        graph->backward = true;
        status = differentiate(&d, seeds, of, seed, n, wrt, gradient);
        graph->backward = backward;
        graph->scope = scope;
    }
    array_free(&d.terms);
    mem_free(d.influenced);
    mem_free(d.head);
    graph_broken(graph, status);
    return status;
}

static graphi_status gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *wrt,
                               graphi_value *gradient)
{
    TRY(graphi_graph_status(graph));
    if (loss < 0 || (size_t)loss >= graph->values.count) {
        graph_broken(graph,
                     fail(GRAPHI_INVALID, "gradients", "found value %d as loss, expected a value of this graph", loss));
        return graph->status;
    }
    if (n < 0 || (n && (!wrt || !gradient))) {
        graph_broken(graph, fail(GRAPHI_INVALID, "gradients",
                                 "found %d values%s, expected 0 or more and arrays of them and their gradients", n,
                                 n > 0 ? " without an array" : ""));
        return graph->status;
    }
    const struct value_type type = graph_value(graph, loss)->type;
    if (type.dtype != GRAPHI_F32 || type_count(&type) != 1 || type.symbol >= 0) {
        char text[96];
        type_text(&type, text, sizeof text);
        graph_broken(graph, fail(GRAPHI_INVALID, "gradients", "found a loss of type %s, expected one float32", text));
        return graph->status;
    }
    bool backward = graph->backward;
    graph->backward = true;
    graphi_value one = graph_constant(graph, &type, &(float){1});
    graph->backward = backward;
    TRY(graph->status);
    return graph_differentiate(graph, 1, &loss, &one, n, wrt, gradient);
}

graphi_status graphi_gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *wrt,
                               graphi_value *gradient)
{
    struct float_mode mode = float_mode_enter(); /* rules compute constants: a mean's 1 / count */
    graphi_status status = gradients(graph, loss, n, wrt, gradient);
    float_mode_leave(mode);
    return status;
}
