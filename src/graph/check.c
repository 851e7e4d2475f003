/* SPDX-License-Identifier: Apache-2.0 */
/* The checker of the graph's invariants, for tests after every pass and for the plan in debug builds. It shares no code
 * with what it checks: types come from the shape rules again, the order is only compared. */
#include "graph/graph.h"

#include "graph/op.h"

#include <string.h>

/* assigned: a mark a value, none of them set. */
static graphi_status check_values(const graphi_graph *graph, bool *assigned)
{
    for (size_t v = 0; v < graph->values.count; v++) {
        const struct value *value = graph_value(graph, (int32_t)v);
        bool result = value->kind == VALUE_RESULT;
        if (result != (value->node >= 0) || (result && (size_t)value->node >= graph->nodes.count))
            return fail(GRAPHI_INVALID, "check", "found value %zu with producer %d, expected one for results only", v,
                        value->node);
        if (result) {
            const struct node *node = graph_node(graph, value->node);
            if (value->output < 0 || value->output >= node->outputs || node->output + value->output != (int32_t)v)
                return fail(GRAPHI_INVALID, "check",
                            "found value %zu not among the outputs of node %d, expected it there", v, value->node);
        }
        if (value->type.symbol >= (int32_t)graph->symbols.count ||
            (value->type.symbol >= 0 && (value->type.rank < 1)))
            return fail(GRAPHI_INVALID, "check", "found value %zu with symbol %d, expected a symbol of this graph", v,
                        value->type.symbol);
        if ((value->kind == VALUE_CONSTANT) && !value->data)
            return fail(GRAPHI_INVALID, "check", "found constant %zu without data, expected data", v);
        if (value->assigns < 0)
            continue;
        if (!result || (size_t)value->assigns >= graph->values.count ||
            graph_value(graph, value->assigns)->kind != VALUE_PARAMETER ||
            !type_equal(&value->type, &graph_value(graph, value->assigns)->type))
            return fail(GRAPHI_INVALID, "check", "found value %zu assigning value %d, expected a parameter of its type",
                        v, value->assigns);
        if (assigned[value->assigns])
            return fail(GRAPHI_INVALID, "check", "found parameter %d assigned twice, expected once", value->assigns);
        assigned[value->assigns] = true;
    }
    for (size_t v = 0; v < graph->values.count; v++)
        if (graph_value(graph, (int32_t)v)->assigned != assigned[v])
            return fail(GRAPHI_INVALID, "check", "found value %zu marked as %sassigned, expected it %sto be", v,
                        assigned[v] ? "not " : "", assigned[v] ? "" : "not ");
    return GRAPHI_OK;
}

static graphi_status check_list(const graphi_graph *graph, enum value_kind kind, const id_list *list, const char *what)
{
    size_t seen = 0;
    for (size_t v = 0; v < graph->values.count; v++)
        if (graph_value(graph, (int32_t)v)->kind == kind &&
            (seen == list->count || list->data[seen++] != (int32_t)v))
            return fail(GRAPHI_INVALID, "check", "found %s %zu not in its place, expected it there", what, v);
    if (seen != list->count)
        return fail(GRAPHI_INVALID, "check", "found %zu %ss listed, expected %zu", list->count, what, seen);
    return GRAPHI_OK;
}

static graphi_status check_types(const graphi_graph *graph, int32_t id, const char *where)
{
    const struct node *node = graph_node(graph, id);
    const struct value_type **in = mem_zalloc_array((size_t)node->inputs + 1, sizeof *in);
    struct value_type *out = mem_zalloc_array((size_t)node->outputs + 1, sizeof *out);
    graphi_status status = in && out ? GRAPHI_OK : fail_memory("check", sizeof *out * (size_t)node->outputs);
    for (int i = 0; status == GRAPHI_OK && i < node->inputs; i++)
        in[i] = &graph_value(graph, node->input[i])->type;
    for (int i = 0; status == GRAPHI_OK && i < node->outputs; i++)
        out[i].symbol = -1;
    if (status == GRAPHI_OK)
        status = node->kind->shape(&(struct shape_call){where, graph, node, in, out});
    for (int i = 0; status == GRAPHI_OK && i < node->outputs; i++) {
        char found[96], expected[96];
        type_text(&graph_value(graph, node->output + i)->type, found, sizeof found);
        type_text(&out[i], expected, sizeof expected);
        if (!type_equal(&out[i], &graph_value(graph, node->output + i)->type))
            status = fail(GRAPHI_INVALID, where, "found output %d of type %s, expected %s", i, found, expected);
    }
    mem_free(in);
    mem_free(out);
    return status;
}

static graphi_status check_attributes(const struct node *node, const char *where)
{
    const struct op_attribute *schema = node->kind->attributes;
    int count = 0;
    for (; schema && schema[count].name; count++)
        if (count >= node->attributes || strcmp(schema[count].name, node->attribute[count].name) != 0 ||
            schema[count].type != node->attribute[count].type)
            return fail(GRAPHI_INVALID, where, "found no attribute '%s' in its place, expected the schema's order",
                        schema[count].name);
    if (count != node->attributes)
        return fail(GRAPHI_INVALID, where, "found %d attributes, expected %d", node->attributes, count);
    return GRAPHI_OK;
}

static graphi_status check_node(const graphi_graph *graph, int32_t id)
{
    const struct node *node = graph_node(graph, id);
    char where[160];
    node_text(graph, id, where, sizeof where);
    if (!node->kind)
        return fail(GRAPHI_INVALID, where, "found a killed node, expected a compacted graph");
    if (node->inputs < node->kind->min_inputs || (node->kind->max_inputs >= 0 && node->inputs > node->kind->max_inputs))
        return fail(GRAPHI_INVALID, where, "found %d inputs, expected %d to %d", node->inputs, node->kind->min_inputs,
                    node->kind->max_inputs);
    for (int i = 0; i < node->inputs; i++) {
        int32_t v = node->input[i];
        if (v < 0 || (size_t)v >= graph->values.count)
            return fail(GRAPHI_INVALID, where, "found value %d as input %d, expected a value of the graph", v, i);
        if (graph_value(graph, v)->node >= id)
            return fail(GRAPHI_INVALID, where, "found input %d made by node %d, expected an earlier node", i,
                        graph_value(graph, v)->node);
    }
    for (int i = 0; i < node->outputs; i++)
        if (node->output < 0 || (size_t)(node->output + i) >= graph->values.count ||
            graph_value(graph, node->output + i)->node != id)
            return fail(GRAPHI_INVALID, where, "found output %d at value %d, expected a result of this node", i,
                        node->output + i);
    for (int i = 0; i < node->afters; i++)
        if (node->after[i] < 0 || node->after[i] >= id)
            return fail(GRAPHI_INVALID, where, "found an edge from node %d, expected an earlier node", node->after[i]);
    TRY(check_attributes(node, where));
    for (int r = 0; r < node->regions; r++)
        TRY(graph_check(node->region[r]));
    return check_types(graph, id, where);
}

graphi_status graph_check(const graphi_graph *graph)
{
    TRY(graphi_graph_status(graph));
    bool *assigned = mem_zalloc_array(graph->values.count + 1, sizeof *assigned);
    graphi_status status = assigned ? check_values(graph, assigned) : fail_memory("check", graph->values.count);
    mem_free(assigned);
    TRY(status);
    TRY(check_list(graph, VALUE_INPUT, &graph->inputs, "input"));
    TRY(check_list(graph, VALUE_PARAMETER, &graph->parameters, "parameter"));
    for (size_t i = 0; i < graph->nodes.count; i++)
        TRY(check_node(graph, (int32_t)i));
    for (size_t i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.data[i].value < 0 || (size_t)graph->outputs.data[i].value >= graph->values.count)
            return fail(GRAPHI_INVALID, "check", "found output '%s' of value %d, expected a value of the graph",
                        graph->outputs.data[i].name, graph->outputs.data[i].value);
    return GRAPHI_OK;
}
