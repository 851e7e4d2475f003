/* SPDX-License-Identifier: Apache-2.0 */
/* Walking over what a graph has names for: what to feed, what to fetch, what is kept. */
#include "graph/graph.h"

#include <string.h>

bool graphi_graph_at(const graphi_graph *graph, graphi_port_kind kind, int i, graphi_port *out)
{
    if (!graph || !out || i < 0 || (unsigned)kind > GRAPHI_PORT_PARAMETER)
        return false;
    const bool fetched = kind == GRAPHI_PORT_OUTPUT;
    const id_list *sources = kind == GRAPHI_PORT_INPUT ? &graph->inputs : &graph->parameters;
    if ((size_t)i >= (fetched ? graph->outputs.count : sources->count))
        return false;
    const int32_t id = fetched ? graph->outputs.data[i].value : sources->data[i];
    const struct value *value = graph_value(graph, id);
    *out = (graphi_port){.name = fetched ? graph->outputs.data[i].name : value->name,
                         .value = id,
                         .dtype = value->type.dtype,
                         .rank = value->type.rank,
                         .bytes = (size_t)type_bytes(&value->type)};
    memcpy(out->dims, value->type.dims, sizeof *out->dims * (size_t)out->rank);
    return true;
}
