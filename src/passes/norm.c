/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalization by given statistics becomes element-wise work,
 *     y = x slope + offset, slope = scale / sqrt(variance + epsilon), offset = bias - mean slope,
 * so that it runs on the tiles of the convolution before it, together with the activation behind it, instead of walking
 * over the image once more. Slope and offset are small vectors that are made once a step. Rounds otherwise than
 * (x - mean) slope + bias, by no more than x is rounded itself when it lies near its mean. Usual case: the 20 to 100
 * normalizations of a residual network or of Inception in inference. Linear in the graph. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/build.h"

static graphi_value rewritten(graphi_graph *graph, const struct node *node)
{
    const int32_t *in = node->input;
    const graphi_value x = in[0], scale = in[1], bias = in[2], mean = in[3], variance = in[4];
    graphi_value deviation = build2(graph, "add", variance, build_scalar(graph, (float)attr_float(node, "epsilon")));
    graphi_value slope = build2(graph, "div", scale, build1(graph, "sqrt", deviation));
    graphi_value offset = build3(graph, "fma", build1(graph, "neg", mean), slope, bias);
    return build3(graph, "fma", x, slope, offset);
}

graphi_status pass_norm(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    graphi_status status = GRAPHI_OK;
    const size_t nodes = graph->nodes.count;
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        const struct node node = *graph_node(graph, (int32_t)i); /* building appends nodes */
        if (!node_is(&node, IS_GIVEN_NORM))
            continue;
        const int32_t before = (int32_t)graph->nodes.count;
        const graphi_value y = rewritten(graph, &node);
        if ((status = graph->status) == GRAPHI_OK && (status = map_set(&map, graph, node.output, y)) == GRAPHI_OK) {
            adopt(graph, before, &node);
            status = graph_supersede(graph, (int32_t)i, graph_value(graph, y)->node);
        }
    }
    return map_end(&map, graph, status);
}
