/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of parameters stand behind every reader of the old content: edges that data flow does not show. */
#include "passes/passes.h"

/* Edges are made anew: those that earlier passes inherited may order nodes that read the parameter no longer. */
graphi_status pass_order(graphi_graph *graph, const struct pass_options *options)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        graph->nodes.data[i].afters = 0;
    TRY(graph_order_updates(graph));
    return graph_compact(graph);
}
