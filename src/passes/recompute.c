/* SPDX-License-Identifier: Apache-2.0 */
/* What the backward pass reads of the forward pass is kept until then: an array a cell, written and read again from memory.
 * Where it follows by element-wise operations from small values alone (parameters of one row, a time a sample), the backward
 * pass makes it anew in its own programs, from the small values: the same bits, for arithmetic that hides behind the loads.
 * PhasedLSTM's gates are six arrays of eleven that a cell keeps. Runs before fusion, which then takes the copies in.
 *
 * A forward node has one copy at most, so the work at most doubles. Readers of parameters come to be in the backward pass:
 * the edges that hold updates back are made anew at the end. Linear in the graph. */
#include "passes/passes.h"

#include "graph/op.h"

enum { SMALLER = 16 }; /* a small value has at most one element for so many */

struct recompute {
    graphi_graph *graph;
    bool *cheap;   /* per value: an element-wise result that follows from small values */
    int32_t *copy; /* per value: made for the backward pass, -1: not yet */
};

static bool is_small(const struct recompute *r, int32_t value, int32_t beside)
{
    return type_count(&graph_value(r->graph, value)->type) <= type_count(&graph_value(r->graph, beside)->type) / SMALLER;
}

static bool is_cheap(const struct recompute *r, const struct node *node)
{
    if (!node->kind || !(node->kind->flags & OP_ELEMENTWISE) || node->outputs != 1 || node->regions || node->backward ||
        graph_value(r->graph, node->output)->assigns >= 0)
        return false;
    for (int k = 0; k < node->inputs; k++)
        if (!r->cheap[node->input[k]] && !is_small(r, node->input[k], node->output))
            return false;
    return true;
}

/* Copies what makes `value` for `reader`, unless that is done; gives the copy, GRAPHI_NONE on failure. */
static int32_t copy_for(struct recompute *r, int32_t value, int32_t reader)
{
    if (r->copy[value] >= 0)
        return r->copy[value];
    const struct node made = *graph_node(r->graph, graph_value(r->graph, value)->node);
    graphi_value *input = mem_zalloc_array((size_t)made.inputs + 1, sizeof *input);
    if (!input)
        return graph_broken(r->graph, fail_memory("recompute", sizeof *input * (size_t)made.inputs));
    for (int k = 0; k < made.inputs; k++) {
        bool inner = r->cheap[made.input[k]] && !is_small(r, made.input[k], value);
        input[k] = inner ? copy_for(r, made.input[k], reader) : made.input[k];
    }
    int32_t first = (int32_t)r->graph->nodes.count;
    graphi_value result =
        graphi_op(r->graph, made.kind->name, made.inputs, input, made.attributes, made.attribute);
    mem_free(input);
    if (r->graph->status != GRAPHI_OK)
        return GRAPHI_NONE;
    adopt(r->graph, first, graph_node(r->graph, reader));
    return r->copy[value] = result;
}

static graphi_status redirect(struct recompute *r, int32_t reader)
{
    for (int k = 0; k < graph_node(r->graph, reader)->inputs; k++) {
        int32_t value = graph_node(r->graph, reader)->input[k];
        if (!r->cheap[value])
            continue;
        int32_t copy = copy_for(r, value, reader);
        TRY(r->graph->status);
        graph_node(r->graph, reader)->input[k] = copy;
    }
    return GRAPHI_OK;
}

graphi_status pass_recompute(graphi_graph *graph, const struct pass_options *options)
{
    struct recompute r = {.graph = graph};
    size_t values = graph->values.count, nodes = graph->nodes.count;
    r.cheap = mem_zalloc_array(values + 1, sizeof *r.cheap);
    r.copy = mem_zalloc_array(values + 1, sizeof *r.copy);
    graphi_status status = r.cheap && r.copy ? GRAPHI_OK : fail_memory("recompute", values);
    for (size_t v = 0; status == GRAPHI_OK && v < values; v++)
        r.copy[v] = -1;
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        if (is_cheap(&r, node))
            r.cheap[node->output] = true;
        else if (node->kind && node->backward)
            status = redirect(&r, (int32_t)i);
    }
    mem_free(r.cheap);
    mem_free(r.copy);
    return status == GRAPHI_OK ? pass_order(graph, options) : status;
}
