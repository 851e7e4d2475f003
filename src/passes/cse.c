/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpressions: nodes of one kind with equal attributes on the same values are one node, and equal constants
 * are one. Random operations, effects, updates and calls stay apart. A hash table of nodes seen so far, linear in the
 * graph. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "base/hash.h"
#include "base/index.h"
#include "graph/op.h"

#include <string.h>

static bool same_constant(const graphi_graph *graph, int32_t a, int32_t b)
{
    const struct value *x = graph_value(graph, a), *y = graph_value(graph, b);
    return type_equal(&x->type, &y->type) && memcmp(x->data, y->data, (size_t)type_bytes(&x->type)) == 0;
}

static graphi_status merge_constants(const graphi_graph *graph, struct value_map *map, struct index *seen)
{
    for (int32_t v = 0; v < (int32_t)graph->values.count; v++) {
        const struct value *value = graph_value(graph, v);
        if (value->kind != VALUE_CONSTANT)
            continue;
        const uint64_t hash = hash_wide(HASH_START, value->data, (size_t)type_bytes(&value->type));
        size_t at = 0;
        int32_t first;
        while ((first = index_next(seen, hash, &at)) >= 0 && !same_constant(graph, first, v))
            continue;
        if (first >= 0)
            TRY(map_set(map, graph, v, first));
        else if (!index_add(seen, hash, v))
            return fail_memory("cse", graph->values.count * sizeof *seen->slots);
    }
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

static graphi_status merge_nodes(graphi_graph *graph, struct value_map *map, struct index *seen)
{
    for (int32_t id = 0; id < (int32_t)graph->nodes.count; id++) {
        const struct node *node = graph_node(graph, id);
        if (!mergeable(graph, node))
            continue;
        const uint64_t hash = cse_hash(map, node);
        size_t at = 0;
        int32_t first;
        while ((first = index_next(seen, hash, &at)) >= 0 && !same_node(graph, map, first, id))
            continue;
        if (first < 0 && !index_add(seen, hash, id))
            return fail_memory("cse", graph->nodes.count * sizeof *seen->slots);
        for (int k = 0; first >= 0 && k < node->outputs; k++)
            TRY(map_set(map, graph, node->output + k, graph_node(graph, first)->output + k));
        if (first >= 0)
            TRY(graph_supersede(graph, id, first));
    }
    return GRAPHI_OK;
}

graphi_status pass_cse(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    struct index constants = {0}, nodes = {0};
    graphi_status status = merge_constants(graph, &map, &constants);
    if (status == GRAPHI_OK)
        status = merge_nodes(graph, &map, &nodes);
    index_free(&constants);
    index_free(&nodes);
    return map_end(&map, graph, status);
}
