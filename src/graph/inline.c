/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of sub-graphs: appending one, and replacing calls by their bodies. After inlining a body's nodes stand at the
 * place of their call, named "CALL'S SCOPE/BODY'S SCOPE"; random keys mix both, so two calls of one body draw different
 * numbers, but for a call and its gradient, which have one key (ops/call.c). */
#include "graph/graph.h"

#include "base/hash.h"
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

/* Whatever looks into regions calls itself for those inside: cloning, hashing, printing, differentiation. */
enum { MOST_NESTED = 100 };

graphi_value graphi_region(graphi_graph *graph, graphi_graph *body, int inputs, const graphi_value *input)
{
    graph_open(graph);
    graphi_status status = graphi_graph_status(graph);
    const bool taken = body == graph || (body && body->part);
    if (status == GRAPHI_OK && taken)
        status = fail(GRAPHI_INVALID, "region", "found a body that is %s, expected a graph of its own",
                      body == graph ? "the graph itself" : "a region already");
    if (status == GRAPHI_OK && (inputs < 0 || (inputs && !input)))
        status = fail(GRAPHI_INVALID, "region", "found %d inputs without their array, expected an array", inputs);
    if (status == GRAPHI_OK)
        status = graphi_graph_status(body);
    if (status == GRAPHI_OK && body->depth == MOST_NESTED)
        status = fail(GRAPHI_UNSUPPORTED, "region",
                      "found regions in regions %d deep in the body, expected fewer than %d", body->depth, MOST_NESTED);
    const struct op_kind *call = op_find("call");
    if (status == GRAPHI_OK && !call)
        status = fail(GRAPHI_UNSUPPORTED, "region", "found no operation 'call', expected it in the table");
    if (status == GRAPHI_OK) {
        graphi_attribute outputs = {.name = "outputs", .type = GRAPHI_INT, .i = (int64_t)body->outputs.count};
        return graph_append(graph, call, inputs, input, 1, &outputs, 1, &body);
    }
    if (!taken && !(graph && graph->part)) /* a body that contains `graph` would take it away */
        graphi_graph_destroy(body);
    return graph ? graph_broken(graph, status) : GRAPHI_NONE;
}

int32_t graph_region_symbol(const graphi_graph *graph, const struct node *call, int32_t symbol)
{
    const graphi_graph *body = call->region[0];
    for (size_t v = 0, position = 0; v < body->values.count; v++) {
        const struct value *value = graph_value(body, (int32_t)v);
        if (value->kind != VALUE_INPUT)
            continue;
        if (value->type.symbol == symbol)
            return graph_value(graph, call->input[position])->type.symbol;
        position++;
    }
    return -1;
}

/* A body's values in the caller's numbering. */
static graphi_status map_sources(graphi_graph *graph, const graphi_graph *body, const struct node *call, int32_t *map)
{
    int position = 0;
    for (size_t v = 0; v < body->values.count; v++) {
        const struct value *value = graph_value(body, (int32_t)v);
        if (value->kind == VALUE_INPUT)
            map[v] = call->input[position++];
        else if (value->kind == VALUE_CONSTANT)
            map[v] = graph_constant(graph, &value->type, value->data);
        else if (value->kind == VALUE_PARAMETER)
            return fail(GRAPHI_INVALID, "inline", "found parameter '%s' in a region, expected inputs only",
                        value->name);
    }
    return graph->status;
}

static const char *join_scopes(graphi_graph *graph, const char *outer, const char *inner)
{
    if (!*outer || !*inner)
        return *outer ? outer : inner;
    size_t size = strlen(outer) + strlen(inner) + 2;
    char *joined = arena_alloc(&graph->arena, size);
    if (joined)
        snprintf(joined, size, "%s/%s", outer, inner);
    else
        graph_broken(graph, fail_memory("inline", size));
    return joined;
}

/* A node's attributes with symbols of the caller. */
static void map_symbols(const graphi_graph *graph, const struct node *call, const struct node *node,
                        graphi_attribute *attribute)
{
    for (int i = 0; i < node->attributes; i++) {
        attribute[i] = node->attribute[i];
        if (attribute[i].i >= 0 && strcmp(attribute[i].name, "symbol") == 0)
            attribute[i].i = graph_region_symbol(graph, call, (int32_t)attribute[i].i);
    }
}

/* Regions of the node, which is in a body that is called no more, become those of the new one: copies at every level
 * would take the square of their depth. */
static graphi_status inline_node(graphi_graph *graph, const struct node *call, struct node *node, int32_t *map)
{
    graphi_value *input = mem_zalloc_array((size_t)node->inputs + 1, sizeof *input);
    graphi_attribute *attribute = mem_zalloc_array((size_t)node->attributes + 1, sizeof *attribute);
    graphi_status status =
        input && attribute ? GRAPHI_OK : fail_memory("inline", sizeof *input * (size_t)node->inputs);
    for (int k = 0; status == GRAPHI_OK && k < node->inputs; k++)
        input[k] = map[node->input[k]];
    if (status == GRAPHI_OK)
        map_symbols(graph, call, node, attribute);
    const char *scope = status == GRAPHI_OK ? join_scopes(graph, call->scope, node->scope) : NULL;
    if (status == GRAPHI_OK && scope) {
        const char *old = graph->scope;
        bool backward = graph->backward;
        graph->scope = scope;
        graph->backward = call->backward || node->backward;
        graphi_value out = graph_append(graph, node->kind, node->inputs, input, node->attributes, attribute,
                                        node->regions, node->region);
        node->regions = 0;
        graph->scope = old;
        graph->backward = backward;
        for (int k = 0; out != GRAPHI_NONE && k < node->outputs; k++)
            map[node->output + k] = out + k;
        struct node *made = &graph->nodes.data[graph->nodes.count - 1];
        if (out != GRAPHI_NONE) {
            made->key = hash_u64(call->key, node->key);
            made->order = call->order;
            made->origin = call->origin;
        }
    }
    mem_free(input);
    mem_free(attribute);
    return status != GRAPHI_OK ? status : graph->status;
}

/* A call's result and what stands for it. */
struct replaced {
    int32_t from, to;
};
typedef ARRAY(struct replaced) replaced_array;

/* Data flow orders a body's nodes among each other and after the call's inputs; other edges there are none yet. */
static graphi_status inline_call(graphi_graph *graph, int32_t id, replaced_array *replaced)
{
    struct node call = *graph_node(graph, id);
    graphi_graph *body = call.region[0];
    int32_t *map = mem_zalloc_array(body->values.count + 1, sizeof *map);
    if (!map)
        return fail_memory("inline", sizeof *map * body->values.count);
    graphi_status status = map_sources(graph, body, &call, map);
    for (size_t i = 0; status == GRAPHI_OK && i < body->nodes.count; i++)
        status = inline_node(graph, &call, &body->nodes.data[i], map);
    for (int k = 0; status == GRAPHI_OK && k < call.outputs; k++) {
        const struct replaced result = {call.output + k, map[body->outputs.data[k].value]};
        if (!array_push(replaced, result))
            status = fail_memory("inline", sizeof result);
    }
    mem_free(map);
    if (status == GRAPHI_OK)
        graph_kill(graph, id);
    return status;
}

/* A body may hand on what another call gives: each then stands for the last of such a chain at once, however long. */
static void shorten(int32_t *map, int32_t values)
{
    for (int32_t v = 0; v < values; v++) {
        int32_t last = v;
        while (map[last] != last)
            last = map[last];
        for (int32_t at = v, next; at != last; at = next) {
            next = map[at];
            map[at] = last;
        }
    }
}

/* Once for all calls: a sweep for each would take time in the square of their number. */
static graphi_status replace(graphi_graph *graph, const replaced_array *replaced)
{
    int32_t *map = mem_alloc((graph->values.count + 1) * sizeof *map);
    if (!map)
        return fail_memory("inline", graph->values.count * sizeof *map);
    for (size_t v = 0; v < graph->values.count; v++)
        map[v] = (int32_t)v;
    for (size_t i = 0; i < replaced->count; i++)
        map[replaced->data[i].from] = replaced->data[i].to;
    shorten(map, (int32_t)graph->values.count);
    graph_remap(graph, map);
    mem_free(map);
    return graph_compact(graph);
}

graphi_status graph_inline(graphi_graph *graph)
{
    replaced_array replaced = {0};
    graphi_status status = GRAPHI_OK;
    for (size_t i = 0; status == GRAPHI_OK && i < graph->nodes.count; i++) { /* bodies append calls of their own */
        const struct node *node = graph_node(graph, (int32_t)i);
        if (node_is(node, IS_CALL))
            status = inline_call(graph, (int32_t)i, &replaced);
    }
    if (status == GRAPHI_OK && replaced.count)
        status = replace(graph, &replaced);
    array_free(&replaced);
    return status;
}
