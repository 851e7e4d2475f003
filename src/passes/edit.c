/* SPDX-License-Identifier: Apache-2.0 */
/* See edit.h. A pass reads the graph as it was, appends nodes, notes replacements in a map and rewires everything once,
 * in map_end. */
#include "passes/edit.h"

#include "base/memory.h"

/* Identity up to the graph's last value. */
static bool map_reach(struct value_map *map, const graphi_graph *graph)
{
    if (!array_grow((void **)&map->to, map->count, &map->capacity, sizeof *map->to, graph->values.count))
        return false;
    for (; map->count < graph->values.count; map->count++)
        map->to[map->count] = (int32_t)map->count;
    return true;
}

int32_t map_follow(const struct value_map *map, int32_t value)
{
    while ((size_t)value < map->count && map->to[value] != value)
        value = map->to[value];
    return value;
}

graphi_status map_set(struct value_map *map, const graphi_graph *graph, int32_t value, int32_t to)
{
    if (!map_reach(map, graph))
        return fail_memory("passes", graph->values.count * sizeof *map->to);
    map->to[value] = to;
    return GRAPHI_OK;
}

graphi_status map_end(struct value_map *map, graphi_graph *graph, graphi_status status)
{
    if (status == GRAPHI_OK && !map_reach(map, graph))
        status = fail_memory("passes", graph->values.count * sizeof *map->to);
    if (status == GRAPHI_OK) {
        graph_remap(graph, map->to);
        status = graph_compact(graph);
    }
    mem_free(map->to);
    *map = (struct value_map){0};
    return status;
}

graphi_status uses_open(const graphi_graph *graph, struct uses *uses)
{
    uses->output = graph_mark_outputs(graph);
    return uses->output ? graph_users(graph, &uses->begin, &uses->list) : fail_memory("passes", graph->values.count);
}

void uses_close(struct uses *uses)
{
    mem_free(uses->output);
    mem_free(uses->begin);
    mem_free(uses->list);
    *uses = (struct uses){0};
}

bool uses_once(const struct uses *uses, const graphi_graph *graph, int32_t value)
{
    return uses_count(uses, value) == 1 && !uses->output[value] && graph_value(graph, value)->assigns < 0;
}

bool is_immediate(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && value->type.rank == 0 && value->type.dtype == GRAPHI_F32;
}

bool follows_from_kept(const graphi_graph *graph, int32_t value)
{
    const struct value *v = graph_value(graph, value);
    return v->kind == VALUE_CONSTANT || (v->kind == VALUE_PARAMETER && !v->assigned) ||
           (v->kind == VALUE_RESULT && graph_node(graph, v->node)->derived);
}

bool constant_is(const graphi_graph *graph, int32_t value, float number)
{
    enum { MOST = 4096 };
    const struct value *v = graph_value(graph, value);
    if (v->kind != VALUE_CONSTANT || v->type.dtype != GRAPHI_F32 || type_count(&v->type) > MOST)
        return false;
    for (int64_t i = 0; i < type_count(&v->type); i++)
        if (((const float *)v->data)[i] != number)
            return false;
    return true;
}

void adopt(graphi_graph *graph, int32_t first, const struct node *node)
{
    for (size_t i = (size_t)first; i < graph->nodes.count; i++) {
        graph->nodes.data[i].order = node->order;
        graph->nodes.data[i].origin = node->origin;
        graph->nodes.data[i].scope = node->scope;
        graph->nodes.data[i].backward = node->backward;
        graph->nodes.data[i].derived = node->derived;
    }
}

bool same_type(const graphi_graph *graph, int32_t a, int32_t b)
{
    return type_equal(&graph_value(graph, a)->type, &graph_value(graph, b)->type);
}
