/* SPDX-License-Identifier: Apache-2.0 */
/* The pairs of a sum of products are put in the order in which their operands are there, so that pass_stages can begin
 * with the first while the last are being made. Pairs of products of few rows have the order of pass_batch. The graph
 * alone decides: plans for few and for many cores have the same bits. */
#include "passes/readiness.h"
#include "passes/successor.h"

#include "graph/op.h"

static bool sorts(const graphi_graph *graph, const struct node *node)
{
    const struct value_type *type = &graph_value(graph, node->output)->type;
    return is_weight_gradient(node) || type->symbol >= 0 || type->dims[0] > BATCH_MOST_ROWS;
}

static graphi_status put_in_order(graphi_graph *graph, int32_t id, const struct sum *sum, int cut,
                                  struct value_map *map)
{
    struct successor sorted;
    (void)cut;
    if (!sum->moved)
        return GRAPHI_OK;
    TRY(successor_begin(graph, id, 0, &sorted));
    struct product_operands operands = {.input = sorted.input};
    for (int i = 0; i < sum->pairs; i++)
        product_pair(&operands, sum->pair[i].a, sum->pair[i].b);
    return successor_place(graph, &sorted, map);
}

graphi_status pass_ready(graphi_graph *graph, const struct pass_options *options)
{
    (void)options;
    return each_sum(graph, sorts, put_in_order);
}
