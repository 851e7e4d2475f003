/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpressions: nodes of one kind with equal attributes on the same values are one node, and equal constants
 * are one. Random operations, effects, updates and calls stay apart. A hash table of nodes seen so far, linear in the
 * graph. */
#include "passes/passes.h"

#include "base/hash.h"
#include "graph/op.h"

#include <string.h>

struct table {
    int32_t *slot; /* id + 1; 0: empty */
    size_t mask;
};

static bool table_init(struct table *table, size_t count)
{
    size_t size = 16;
    while (size < count * 2)
        size *= 2;
    table->slot = mem_zalloc_array(size, sizeof *table->slot);
    table->mask = size - 1;
    return table->slot;
}

static bool same_constant(const graphi_graph *graph, int32_t a, int32_t b)
{
    const struct value *x = graph_value(graph, a), *y = graph_value(graph, b);
    return type_equal(&x->type, &y->type) && memcmp(x->data, y->data, (size_t)type_bytes(&x->type)) == 0;
}

static graphi_status merge_constants(const graphi_graph *graph, struct value_map *map)
{
    struct table table;
    if (!table_init(&table, graph->values.count))
        return fail_memory("cse", graph->values.count);
    for (int32_t v = 0; v < (int32_t)graph->values.count; v++) {
        const struct value *value = graph_value(graph, v);
        if (value->kind != VALUE_CONSTANT)
            continue;
        size_t at = hash_bytes(HASH_START, value->data, (size_t)type_bytes(&value->type)) & table.mask;
        while (table.slot[at] && !same_constant(graph, table.slot[at] - 1, v))
            at = (at + 1) & table.mask;
        if (table.slot[at])
            map->to[v] = table.slot[at] - 1;
        else
            table.slot[at] = v + 1;
    }
    mem_free(table.slot);
    return GRAPHI_OK;
}

static bool same_node(const graphi_graph *graph, const struct value_map *map, int32_t a, int32_t b)
{
    const struct node *x = graph_node(graph, a), *y = graph_node(graph, b);
    if (x->kind != y->kind || x->inputs != y->inputs || x->outputs != y->outputs)
        return false;
    for (int k = 0; k < x->inputs; k++)
        if (map_follow(map, x->input[k]) != map_follow(map, y->input[k]))
            return false;
    return attributes_equal(x, y);
}

uint64_t cse_hash(const struct value_map *map, const struct node *node)
{
    uint64_t hash = hash_string(HASH_START, node->kind->name);
    for (int k = 0; k < node->inputs; k++)
        hash = hash_u64(hash, (uint64_t)map_follow(map, node->input[k]));
    return graph_hash_attributes(hash, node);
}

static bool mergeable(const graphi_graph *graph, const struct node *node)
{
    if (node->kind->flags & (OP_RANDOM | OP_EFFECT) || node->regions)
        return false;
    for (int k = 0; k < node->outputs; k++)
        if (graph_value(graph, node->output + k)->assigns >= 0)
            return false;
    return true;
}

static graphi_status merge_nodes(graphi_graph *graph, struct value_map *map)
{
    struct table table;
    if (!table_init(&table, graph->nodes.count))
        return fail_memory("cse", graph->nodes.count);
    graphi_status status = GRAPHI_OK;
    for (int32_t id = 0; status == GRAPHI_OK && id < (int32_t)graph->nodes.count; id++) {
        const struct node *node = graph_node(graph, id);
        if (!mergeable(graph, node))
            continue;
        size_t at = cse_hash(map, node) & table.mask;
        while (table.slot[at] && !same_node(graph, map, table.slot[at] - 1, id))
            at = (at + 1) & table.mask;
        if (!table.slot[at]) {
            table.slot[at] = id + 1;
            continue;
        }
        int32_t first = table.slot[at] - 1;
        for (int k = 0; k < node->outputs; k++)
            map->to[node->output + k] = graph_node(graph, first)->output + k;
        status = graph_supersede(graph, id, first);
    }
    mem_free(table.slot);
    return status;
}

graphi_status pass_cse(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    graphi_status status = map_reach(&map, graph) ? GRAPHI_OK : fail_memory("cse", graph->values.count);
    if (status == GRAPHI_OK)
        status = merge_constants(graph, &map);
    if (status == GRAPHI_OK)
        status = merge_nodes(graph, &map);
    if (status == GRAPHI_OK)
        return map_apply(&map, graph);
    map_free(&map);
    return status;
}
