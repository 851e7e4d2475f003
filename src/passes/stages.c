/* SPDX-License-Identifier: Apache-2.0 */
/* A product of several pairs waits for all of their operands. On many cores it is cut into stages, each of which goes
 * on from the sums of the one before, where a stage would be done while the next one's operands are being made:
 *
 * - a weight gradient, which `reduce` made of a sum over time, is there only when the last of its operands is: all
 *   weights' gradients become ready together, at the end of the backward pass, while many cores waited beside the
 *   recurrence before. In stages most of it is done by then.
 * - a gate x(t) W + h(t - 1) U waits for x(t) W only if that has not been made earlier; so the longest path passes half
 *   of its multiplications. The same holds for gradients that several steps and layers add to.
 *
 * Few cores have no time to spare beside the recurrence, and one sum writes its result once: for these nothing is cut.
 * Every element is summed in the order of the pairs in either case, so plans have the same bits whatever the cores. */
#include "passes/readiness.h"
#include "passes/edit.h"

#include "graph/op.h"

/* Cores that are busy in any case; rows that a stage of a weight gradient has at least, and stages that there are at
 * most: each reads and writes the result once more. What they do shows in `graphi simulate lstm --machine
 * xeon-phi-7250`, with `--disable stages` and without. */
enum { MOST_CORES = 8, LEAST_ROWS = 256, MOST_STAGES = 8 };

/* Pairs that the stages of a sum begin with, the last one's end as well. One stage: it stays whole. */
struct cuts {
    int stages;
    int begin[MOST_STAGES + 1];
};

/* The last node that makes an operand of these pairs; -1: none does. */
static int32_t last_maker(const graphi_graph *graph, const struct sum *sum, int begin, int end)
{
    int32_t last = -1;
    for (int i = begin; i < end; i++) {
        last = (int32_t)most(last, graph_value(graph, sum->pair[i].a)->node);
        last = (int32_t)most(last, graph_value(graph, sum->pair[i].b)->node);
    }
    return last;
}

/* Even stages of enough rows, each of which is there before the next one's operands are. */
static struct cuts cut_over_time(const graphi_graph *graph, const struct sum *sum)
{
    int64_t rows = 0;
    int32_t before = -1;
    for (int i = 0; i < sum->pairs; i++)
        rows += graph_value(graph, sum->pair[i].a)->type.dims[0];
    struct cuts cuts = {.stages = (int)most(least(least(rows / LEAST_ROWS, MOST_STAGES), sum->pairs), 1)};
    for (int i = 0; i < cuts.stages; i++) {
        cuts.begin[i + 1] = (int)((int64_t)sum->pairs * (i + 1) / cuts.stages);
        const int32_t last = last_maker(graph, sum, cuts.begin[i], cuts.begin[i + 1]);
        if (last <= before)
            return (struct cuts){.stages = 1};
        before = last;
    }
    return cuts;
}

/* The sum of the pairs from `begin` to `end`, which begins with `base` if there is one. */
static graphi_value stage(graphi_graph *graph, const struct node *node, const struct sum *sum, int begin, int end,
                          graphi_value base)
{
    graphi_value input[2 * GEMM_MAX_PAIRS + 1];
    struct product_operands operands = {.input = input, .base = base};
    for (int i = begin; i < end; i++)
        product_pair(&operands, sum->pair[i].a, sum->pair[i].b);
    return product_append(graph, &operands, product_trans_a(node), product_trans_b(node));
}

/* Each stage stands behind the last of its operands that nodes make, or where the product stood. */
static graphi_status cut_sum(graphi_graph *graph, int32_t id, const struct sum *sum, int cut, struct value_map *map)
{
    const struct node node = *graph_node(graph, id);
    struct cuts cuts = {.stages = cut ? 2 : 1, .begin = {0, cut, sum->pairs}};
    graphi_value result = GRAPHI_NONE;
    if (is_weight_gradient(&node))
        cuts = cut_over_time(graph, sum);
    if (cuts.stages < 2)
        return GRAPHI_OK;
    for (int i = 0; i < cuts.stages; i++) {
        const int32_t made = (int32_t)graph->nodes.count;
        const int32_t last = last_maker(graph, sum, cuts.begin[i], cuts.begin[i + 1]);
        result = stage(graph, &node, sum, cuts.begin[i], cuts.begin[i + 1], result);
        TRY(graph->status);
        adopt(graph, made, &node);
        if (last >= 0)
            graph->nodes.data[made].order = graph_node(graph, last)->order;
    }
    TRY(map_set(map, graph, node.output, result));
    return graph_supersede(graph, id, (int32_t)graph->nodes.count - 1);
}

graphi_status pass_stages(graphi_graph *graph, const struct pass_options *options)
{
    return options->cores > MOST_CORES ? each_sum(graph, NULL, cut_sum) : GRAPHI_OK;
}
