/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bfloat16 images read them as float32 numbers, which they are: whether a kernel takes bfloat16 depends
 * on shapes, options and instruction set, and whether weights are rounded too is what the plan's precision says. Cannot
 * be switched off; linear in the graph. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/conv.h"

static bool has_bfloat16(const graphi_graph *graph, const struct node *node)
{
    for (int k = 0; k < node->inputs; k++)
        if (graph_value(graph, node->input[k])->type.dtype == GRAPHI_BF16)
            return true;
    return false;
}

graphi_status pass_images(graphi_graph *graph, const struct pass_options *options)
{
    const graphi_attribute dtype = {.name = "dtype", .type = GRAPHI_INT, .i = GRAPHI_F32};
    const size_t nodes = graph->nodes.count;
    for (size_t i = 0; i < nodes; i++) {
        const struct node node = *graph_node(graph, (int32_t)i);
        const int images = has_bfloat16(graph, &node) ? conv_node_images(&node) : 0;
        for (int k = 0; k < images; k++) {
            if (graph_value(graph, node.input[k])->type.dtype != GRAPHI_BF16)
                continue;
            const int32_t id = (int32_t)graph->nodes.count;
            const graphi_value wide = graphi_op(graph, "cast", 1, &node.input[k], 1, &dtype);
            TRY(graph->status);
            adopt(graph, id, &node);
            node.input[k] = wide;
        }
    }
    return graph->nodes.count > nodes ? graph_compact(graph) : GRAPHI_OK;
}
