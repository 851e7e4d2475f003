/* SPDX-License-Identifier: Apache-2.0 */
/* See build.h. */
#include "ops/build.h"

graphi_value build1(graphi_graph *graph, const char *kind, graphi_value a)
{
    return graphi_op(graph, kind, 1, &a, 0, NULL);
}

graphi_value build2(graphi_graph *graph, const char *kind, graphi_value a, graphi_value b)
{
    return graphi_op(graph, kind, 2, (graphi_value[]){a, b}, 0, NULL);
}

graphi_value build3(graphi_graph *graph, const char *kind, graphi_value a, graphi_value b, graphi_value c)
{
    return graphi_op(graph, kind, 3, (graphi_value[]){a, b, c}, 0, NULL);
}

graphi_value build_scalar(graphi_graph *graph, float value)
{
    return graphi_constant(graph, GRAPHI_F32, 0, NULL, &value);
}

static graphi_value to_type(graphi_graph *graph, const char *kind, graphi_value value, graphi_value like)
{
    if (value == GRAPHI_NONE || graph->status != GRAPHI_OK)
        return GRAPHI_NONE;
    struct value_type type = graph_value(graph, like)->type;
    if (type_equal(&graph_value(graph, value)->type, &type))
        return value;
    graphi_attribute attributes[] = {
        {.name = "dims", .type = GRAPHI_INTS, .ints = type.dims, .count = type.rank},
        {.name = "symbol", .type = GRAPHI_INT, .i = type.symbol},
    };
    return graphi_op(graph, kind, 1, &value, 2, attributes);
}

graphi_value sum_like(graphi_graph *graph, graphi_value gradient, graphi_value like)
{
    return to_type(graph, "sum_to", gradient, like);
}

graphi_value broadcast_like(graphi_graph *graph, graphi_value value, graphi_value like)
{
    return to_type(graph, "expand", value, like);
}
