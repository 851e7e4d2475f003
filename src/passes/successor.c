/* SPDX-License-Identifier: Apache-2.0 */
/* A node made again with some inputs or attributes changed, in the place of the old one: appended as all nodes are,
 * so that the rules of its kind check it and give its outputs their types. Usual number: a hundred a graph. */
#include "passes/successor.h"

#include "base/memory.h"
#include "graph/op.h"

#include <string.h>

static void successor_free(struct successor *successor)
{
    mem_free(successor->input);
    mem_free(successor->attribute);
    successor->input = NULL;
    successor->attribute = NULL;
}

graphi_status successor_begin(const graphi_graph *graph, int32_t id, int extra, struct successor *out)
{
    const struct node *node = graph_node(graph, id);
    *out = (struct successor){.id = id,
                              .node = *node,
                              .input = mem_zalloc_array((size_t)(node->inputs + extra), sizeof *out->input),
                              .attribute = mem_zalloc_array((size_t)node->attributes, sizeof *out->attribute)};
    if (!out->input || !out->attribute) {
        successor_free(out);
        return fail_memory("passes", sizeof *out->input * (size_t)node->inputs);
    }
    memcpy(out->input, node->input, sizeof *out->input * (size_t)node->inputs);
    memcpy(out->attribute, node->attribute, sizeof *out->attribute * (size_t)node->attributes);
    out->node.inputs += extra;
    return GRAPHI_OK;
}

graphi_attribute *successor_attribute(struct successor *successor, const char *name)
{
    for (int i = 0; i < successor->node.attributes; i++)
        if (strcmp(successor->attribute[i].name, name) == 0)
            return &successor->attribute[i];
    return NULL;
}

graphi_status successor_place(graphi_graph *graph, struct successor *successor, struct value_map *map)
{
    const struct node *old = &successor->node;
    int32_t made = (int32_t)graph->nodes.count;
    graphi_value out =
        graphi_op(graph, old->kind->name, old->inputs, successor->input, old->attributes, successor->attribute);
    graphi_status status = graph->status;
    for (int k = 0; status == GRAPHI_OK && k < old->outputs; k++)
        status = map_set(map, graph, old->output + k, out + k);
    if (status == GRAPHI_OK) {
        adopt(graph, made, old);
        graph->nodes.data[made].key = old->key;
        status = graph_supersede(graph, successor->id, made);
    }
    successor_free(successor);
    return status;
}
