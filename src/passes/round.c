/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding as a node: with bfloat16 multiplicands direct convolutions round their images first. Where several do so
 * with the same ones, forward or backward, a `cast` does it once: an inception module's input is read by three
 * convolutions forward and three weight gradients, and a gradient by two. The values are the ones that the kernels
 * would have made, so no bit of a result changes. Which algorithm reads what is settled by then. Linear in the graph;
 * GoogLeNet training has 50 such images or so. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/conv.h"

enum { FEWEST_READERS = 2 };

static graphi_value rounded(graphi_graph *graph, int32_t value, int32_t reader)
{
    const struct node like = *graph_node(graph, reader);
    graphi_attribute dtype = {.name = "dtype", .type = GRAPHI_INT, .i = GRAPHI_BF16};
    int32_t id = (int32_t)graph->nodes.count;
    graphi_value made = graphi_op(graph, "cast", 1, &value, 1, &dtype);
    adopt(graph, id, &like);
    return made;
}

/* Counts readers of each value that round it; with `made` given, gives them the rounded value where they are enough. */
static graphi_status visit(graphi_graph *graph, const struct conv_node_options *about, size_t nodes, int32_t *readers,
                           graphi_value *made)
{
    for (size_t i = 0; i < nodes; i++) {
        int images = conv_node_rounds(graph, graph_node(graph, (int32_t)i), about);
        for (int k = 0; k < images; k++) {
            int32_t value = graph_node(graph, (int32_t)i)->input[k];
            if (graph_value(graph, value)->type.dtype != GRAPHI_F32)
                continue;
            if (!made) {
                readers[value]++;
                continue;
            }
            if (readers[value] < FEWEST_READERS)
                continue;
            if (made[value] == GRAPHI_NONE)
                made[value] = rounded(graph, value, (int32_t)i);
            TRY(graph->status);
            graph->nodes.data[i].input[k] = made[value];
        }
    }
    return GRAPHI_OK;
}

graphi_status pass_round(graphi_graph *graph, const struct pass_options *options)
{
    const struct conv_node_options about = {options->isa, options->multiplicands, options->conv_error};
    const size_t nodes = graph->nodes.count, values = graph->values.count;
    if (options->multiplicands != GRAPHI_BF16)
        return GRAPHI_OK;
    int32_t *readers = mem_zalloc_array(values + 1, sizeof *readers);
    graphi_value *made = mem_alloc(sizeof *made * (values + 1));
    graphi_status status = readers && made ? GRAPHI_OK : fail_memory("round", values * sizeof *readers);
    for (size_t v = 0; status == GRAPHI_OK && v < values; v++)
        made[v] = GRAPHI_NONE;
    if (status == GRAPHI_OK)
        status = visit(graph, &about, nodes, readers, NULL);
    if (status == GRAPHI_OK)
        status = visit(graph, &about, nodes, readers, made);
    mem_free(readers);
    mem_free(made);
    return status == GRAPHI_OK ? graph_compact(graph) : status;
}
