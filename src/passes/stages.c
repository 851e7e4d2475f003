/* SPDX-License-Identifier: Apache-2.0 */
/* A weight gradient of many pairs, which `reduce` made of a sum over time, is there only when the last of its operands
 * is: all weights' gradients become ready together, at the end of the backward pass, while many cores waited beside the
 * recurrence before. In stages, each of which goes on from the sums of the one before, most of it is done by then. Few
 * cores have no time to spare beside the recurrence, and one sum writes its result once: for these nothing is cut.
 *
 * Every element is summed in the order of the pairs in either case, so plans have the same bits whatever the cores. */
#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/gemm.h"

#include <string.h>

/* Cores that are busy in any case; rows that a stage has at least, and stages that there are at most: each reads and
 * writes the result once more. What they do shows in `graphi simulate lstm --machine xeon-phi-7250`,
 * with `--disable stages` and without. */
enum { MOST_CORES = 8, LEAST_ROWS = 256, MOST_STAGES = 8 };

static bool is_long_sum(const struct node *node)
{
    return is_plain_product(node) && attr_int(node, "trans_a") && !node->afters;
}

static int stages_of(const graphi_graph *graph, const struct node *node, int pairs)
{
    int64_t rows = 0;
    for (int k = 0; k < 2 * pairs; k += 2)
        rows += graph_value(graph, node->input[k])->type.dims[0];
    return (int)least(least(rows / LEAST_ROWS, MOST_STAGES), pairs);
}

/* The sum of the pairs from `begin` to `end`, which begins with `base` if there is one. */
static graphi_value stage(graphi_graph *graph, const struct node *node, int begin, int end, graphi_value base)
{
    graphi_value input[2 * GEMM_MAX_PAIRS + 1];
    const int count = 2 * (end - begin);
    memcpy(input, node->input + 2 * begin, sizeof *input * (size_t)count);
    input[count] = base;
    const graphi_attribute attributes[] = {
        {.name = "pairs", .type = GRAPHI_INT, .i = end - begin},
        {.name = "base", .type = GRAPHI_INT, .i = base != GRAPHI_NONE},
        {.name = "trans_a", .type = GRAPHI_INT, .i = attr_int(node, "trans_a")},
        {.name = "trans_b", .type = GRAPHI_INT, .i = attr_int(node, "trans_b")}};
    return graphi_op(graph, "matmul", count + (base != GRAPHI_NONE), input, 4, attributes);
}

/* The last node that makes an operand of these pairs; -1: none does. */
static int32_t last_maker(const graphi_graph *graph, const struct node *node, int begin, int end)
{
    int32_t last = -1;
    for (int k = 2 * begin; k < 2 * end; k++)
        last = (int32_t)most(last, graph_value(graph, node->input[k])->node);
    return last;
}

/* Pairs that a stage begins with, the last one's end as well. */
static int begin_of(int pairs, int stages, int stage) { return (int)((int64_t)pairs * stage / stages); }

/* Is each stage there before the next one's operands are? */
static bool follow_each_other(const graphi_graph *graph, const struct node *node, int pairs, int stages)
{
    int32_t before = -1;
    for (int i = 0; i < stages; i++) {
        const int32_t last = last_maker(graph, node, begin_of(pairs, stages, i), begin_of(pairs, stages, i + 1));
        if (last <= before)
            return false;
        before = last;
    }
    return true;
}

/* Each stage stands behind the last of its operands. */
static graphi_status cut(graphi_graph *graph, int32_t id, struct value_map *map)
{
    const struct node node = *graph_node(graph, id);
    const int pairs = (int)attr_int(&node, "pairs"), stages = stages_of(graph, &node, pairs);
    graphi_value sum = GRAPHI_NONE;
    if (stages < 2 || !follow_each_other(graph, &node, pairs, stages))
        return GRAPHI_OK;
    for (int i = 0; i < stages; i++) {
        const int32_t made = (int32_t)graph->nodes.count;
        const int begin = begin_of(pairs, stages, i), end = begin_of(pairs, stages, i + 1);
        sum = stage(graph, &node, begin, end, sum);
        TRY(graph->status);
        adopt(graph, made, &node);
        graph->nodes.data[made].order = graph_node(graph, last_maker(graph, &node, begin, end))->order;
    }
    TRY(map_set(map, graph, node.output, sum));
    return graph_supersede(graph, id, (int32_t)graph->nodes.count - 1);
}

graphi_status pass_stages(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    graphi_status status = GRAPHI_OK;
    const int32_t nodes = options->cores > MOST_CORES ? (int32_t)graph->nodes.count : 0;
    for (int32_t id = 0; id < nodes && status == GRAPHI_OK; id++)
        if (is_long_sum(graph_node(graph, id)))
            status = cut(graph, id, &map);
    return map_end(&map, graph, status);
}
