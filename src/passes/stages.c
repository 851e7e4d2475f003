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
 * Pairs are summed in the order in which they are there, but for sums of few rows, which have the order of pass_batch.
 * That is so whatever the cores, so plans for few and for many have the same bits. Few cores have no time to spare
 * beside the recurrence, and one sum writes its result once: for these nothing is cut. */
#include "passes/passes.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/op.h"
#include "kernels/gemm.h"

#include <math.h>
#include <string.h>

/* Cores that are busy in any case; rows that a stage of a weight gradient has at least, and stages that there are at
 * most: each reads and writes the result once more. What they do shows in `graphi simulate lstm --machine
 * xeon-phi-7250`, with `--disable stages` and without. */
enum { MOST_CORES = 8, LEAST_ROWS = 256, MOST_STAGES = 8 };

/* Of the whole product's time so much must be gained by a stage of so many multiplications, of which a core makes some
 * ten thousand in a microsecond. */
static const double LEAST_GAIN = 0.25, LEAST_WORK = 4e6;

/* The operands of a product, in the order in which they are summed. */
struct sum {
    const struct node *node;
    int pairs;
    bool moved; /* they were in another order */
    struct pair {
        int32_t a, b;
        double ready, work; /* work: multiplications */
        double last;        /* when it and all behind it are there */
    } pair[GEMM_MAX_PAIRS];
};

/* Pairs that its stages begin with, the last one's end as well. One stage: it stays whole. */
struct cuts {
    int stages;
    int begin[MOST_STAGES + 1];
};

static bool is_weight_gradient(const struct node *node) { return attr_int(node, "trans_a") != 0; }

static bool is_sum(const graphi_graph *graph, const struct node *node)
{
    return is_plain_product(node) && !node->afters && attr_int(node, "pairs") > 1 &&
           graph_value(graph, node->output)->type.rank == 2;
}

/* When a value is there with all the cores one could want, in multiplications on the longest path to it. */
static double ready_at(const graphi_graph *graph, const double *ready, int32_t value)
{
    const int32_t maker = graph_value(graph, value)->node;
    return maker < 0 ? 0 : ready[maker];
}

static double work_of(const graphi_graph *graph, const struct node *node, int32_t a)
{
    const struct value_type *type = &graph_value(graph, a)->type;
    const double results = (double)type_count(&graph_value(graph, node->output)->type);
    return results * (double)type->dims[is_weight_gradient(node) ? type->rank - 2 : type->rank - 1];
}

/* Are its pairs put in order? */
static bool may_be_moved(const graphi_graph *graph, const struct node *node)
{
    return is_weight_gradient(node) || graph_value(graph, node->output)->type.dims[0] > BATCH_MOST_ROWS;
}

static void read_sum(const graphi_graph *graph, const double *ready, const struct node *node, struct sum *sum)
{
    const bool moves = may_be_moved(graph, node);
    sum->node = node;
    sum->pairs = (int)attr_int(node, "pairs");
    sum->moved = false;
    for (int i = 0; i < sum->pairs; i++) {
        struct pair pair = {.a = node->input[2 * i], .b = node->input[2 * i + 1]};
        pair.work = work_of(graph, node, pair.a);
        pair.ready = fmax(ready_at(graph, ready, pair.a), ready_at(graph, ready, pair.b));
        int at = i;
        for (; moves && at > 0 && sum->pair[at - 1].ready > pair.ready; at--)
            sum->pair[at] = sum->pair[at - 1];
        sum->pair[at] = pair;
        sum->moved |= at < i;
    }
    double last = 0;
    for (int i = sum->pairs - 1; i >= 0; i--)
        sum->pair[i].last = last = fmax(last, sum->pair[i].ready);
}

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
static struct cuts cuts_over_time(const graphi_graph *graph, const struct sum *sum)
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
            return (struct cuts){.stages = 1, .begin = {0, sum->pairs}};
        before = last;
    }
    return cuts;
}

/* Two stages, if the first is done early enough; *done gets when the last is. */
static struct cuts cuts_by_readiness(const struct sum *sum, double *done)
{
    struct cuts cuts = {.stages = 1, .begin = {0, sum->pairs}};
    double late = 0, early = 0, first = 0;
    for (int i = 0; i < sum->pairs; i++)
        late += sum->pair[i].work;
    const double whole = sum->pair[0].last + late;
    *done = whole - LEAST_GAIN * late;
    for (int cut = 1; cut < sum->pairs; cut++) {
        first = fmax(first, sum->pair[cut - 1].ready);
        early += sum->pair[cut - 1].work;
        late -= sum->pair[cut - 1].work;
        const double end = fmax(first + early, sum->pair[cut].last) + late;
        if (early >= LEAST_WORK && late >= LEAST_WORK && end < *done) {
            *done = end;
            cuts = (struct cuts){.stages = 2, .begin = {0, cut, sum->pairs}};
        }
    }
    *done = cuts.stages > 1 ? *done : whole;
    return cuts;
}

/* The sum of the pairs from `begin` to `end`, which begins with `base` if there is one. */
static graphi_value stage(graphi_graph *graph, const struct sum *sum, int begin, int end, graphi_value base)
{
    graphi_value input[2 * GEMM_MAX_PAIRS + 1];
    int count = 0;
    for (int i = begin; i < end; i++) {
        input[count++] = sum->pair[i].a;
        input[count++] = sum->pair[i].b;
    }
    input[count] = base;
    const graphi_attribute attributes[] = {
        {.name = "pairs", .type = GRAPHI_INT, .i = end - begin},
        {.name = "base", .type = GRAPHI_INT, .i = base != GRAPHI_NONE},
        {.name = "trans_a", .type = GRAPHI_INT, .i = attr_int(sum->node, "trans_a")},
        {.name = "trans_b", .type = GRAPHI_INT, .i = attr_int(sum->node, "trans_b")}};
    return graphi_op(graph, "matmul", count + (base != GRAPHI_NONE), input, 4, attributes);
}

/* Each stage stands behind the last of its operands. */
static graphi_status cut_sum(graphi_graph *graph, int32_t id, struct sum *sum, const struct cuts *cuts,
                             struct value_map *map)
{
    const struct node node = *sum->node;
    graphi_value result = GRAPHI_NONE;
    sum->node = &node; /* that of the graph moves */
    for (int i = 0; i < cuts->stages; i++) {
        const int32_t made = (int32_t)graph->nodes.count;
        const int32_t last = last_maker(graph, sum, cuts->begin[i], cuts->begin[i + 1]);
        result = stage(graph, sum, cuts->begin[i], cuts->begin[i + 1], result);
        TRY(graph->status);
        adopt(graph, made, &node);
        if (last >= 0 && cuts->stages > 1)
            graph->nodes.data[made].order = graph_node(graph, last)->order;
    }
    TRY(map_set(map, graph, node.output, result));
    return graph_supersede(graph, id, (int32_t)graph->nodes.count - 1);
}

static graphi_status cut_sums(graphi_graph *graph, bool many_cores, double *ready, struct value_map *map)
{
    const int32_t nodes = (int32_t)graph->nodes.count;
    for (int32_t id = 0; id < nodes; id++) {
        const struct node *node = graph_node(graph, id);
        for (int k = 0; k < node->inputs; k++)
            ready[id] = fmax(ready[id], ready_at(graph, ready, node->input[k]));
        if (is_sum(graph, node)) {
            struct sum sum = {0};
            read_sum(graph, ready, node, &sum);
            struct cuts cuts = cuts_by_readiness(&sum, &ready[id]);
            if (is_weight_gradient(node))
                cuts = cuts_over_time(graph, &sum);
            if (!many_cores)
                cuts = (struct cuts){.stages = 1, .begin = {0, sum.pairs}};
            if (cuts.stages > 1 || sum.moved)
                TRY(cut_sum(graph, id, &sum, &cuts, map));
        } else if (is_kind(node, "matmul")) {
            for (int i = 0; i < attr_int(node, "pairs"); i++)
                ready[id] += work_of(graph, node, node->input[2 * i]);
        }
    }
    return GRAPHI_OK;
}

graphi_status pass_stages(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    double *ready = mem_zalloc_array(graph->nodes.count + 1, sizeof *ready);
    graphi_status status =
        ready ? cut_sums(graph, options->cores > MOST_CORES, ready, &map) : fail_memory("stages", graph->nodes.count);
    mem_free(ready);
    return map_end(&map, graph, status);
}
