/* SPDX-License-Identifier: Apache-2.0 */
/* Walking over the names of a graph: what to feed, what to fetch. */
#include "graph/graph.h"

const char *graphi_graph_input_at(const graphi_graph *graph, int i)
{
    return i >= 0 && (size_t)i < graph->inputs.count ? graph_value(graph, graph->inputs.data[i])->name : NULL;
}

const char *graphi_graph_output_at(const graphi_graph *graph, int i)
{
    return i >= 0 && (size_t)i < graph->outputs.count ? graph->outputs.data[i].name : NULL;
}
