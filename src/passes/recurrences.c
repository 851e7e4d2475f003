/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent weights as nodes: every recurrence and every gradient of one reads its weights from a `recurrence_pack`
 * node, which the engine runs once for all executions where the weights do not change (OP_PACK), and once a step where
 * they do; never inside the loop over steps. Equal ones become one by `cse`. Linear in the graph. */
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/successor.h"

#include "graph/op.h"
#include "ops/recurrence.h"

#include <string.h>

static graphi_value packed_weights(graphi_graph *graph, const struct node *node, int32_t weights, bool backward,
                                   bool half)
{
    graphi_attribute attributes[RECURRENCE_SHARED + 1];
    recurrence_copy_attributes(node, attributes);
    for (int i = 0; i < RECURRENCE_SHARED; i++)
        if (strcmp(attributes[i].name, "half") == 0)
            attributes[i].i = half;
    attributes[RECURRENCE_SHARED] = int_attribute("backward", backward);
    struct node like = *node;
    const struct value *source = graph_value(graph, weights);
    like.scope = source->name ? source->name : node->scope;
    const int32_t id = (int32_t)graph->nodes.count;
    const graphi_value packed = graphi_op(graph, "recurrence_pack", 1, &weights, RECURRENCE_SHARED + 1, attributes);
    adopt(graph, id, &like);
    return packed;
}

static graphi_status rewrite(graphi_graph *graph, int32_t id, bool backward, bool half, struct value_map *map)
{
    const struct node node = *graph_node(graph, id); /* building appends nodes */
    const int place = backward ? 0 : RECURRENT_U;
    const graphi_value packed = packed_weights(graph, &node, node.input[place], backward, half);
    TRY(graph->status);
    struct successor s;
    TRY(successor_begin(graph, id, 0, &s));
    s.input[place] = packed;
    successor_attribute(&s, "packed")->i = 1;
    successor_attribute(&s, "half")->i = half;
    return successor_place(graph, &s, map);
}

graphi_status pass_recurrences(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    graphi_status status = GRAPHI_OK;
    const size_t nodes = graph->nodes.count;
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        const bool backward = node_is(node, IS_RECURRENCE_GRADIENT);
        if ((backward || node_is(node, IS_RECURRENCE)) && !attr_int(node, "packed"))
            status = rewrite(graph, (int32_t)i, backward, !backward && options->weights == GRAPHI_BF16, &map);
    }
    return map_end(&map, graph, status);
}
