/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/readiness.h"
#include "passes/edit.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/op.h"

#include <math.h>

/* Of the whole product's time so much must be gained by a part of so many multiplications, of which a core makes some
 * ten thousand in a microsecond. They show in `graphi simulate lstm --size small --machine xeon-phi-7250`, which takes
 * 1.25 of the time where smaller ones are cut. */
static const double LEAST_GAIN = 0.25, LEAST_WORK = 4e6;

static bool is_sum(const graphi_graph *graph, const struct node *node)
{
    return is_plain_product(node) && !node->afters && product_pairs(node) > 1 &&
           graph_value(graph, node->output)->type.rank == 2;
}

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

/* Pairs that are there together keep their order. */
static void read_sum(const graphi_graph *graph, const double *ready, const struct node *node, bool sort,
                     struct sum *sum)
{
    sum->pairs = product_pairs(node);
    sum->moved = false;
    for (int i = 0; i < sum->pairs; i++) {
        struct pair pair = {.a = product_left(node, i), .b = product_right(node, i)};
        pair.work = work_of(graph, node, pair.a);
        pair.ready = fmax(ready_at(graph, ready, pair.a), ready_at(graph, ready, pair.b));
        int at = i;
        for (; sort && at > 0 && sum->pair[at - 1].ready > pair.ready; at--)
            sum->pair[at] = sum->pair[at - 1];
        sum->pair[at] = pair;
        sum->moved |= at < i;
    }
    double last = 0;
    for (int i = sum->pairs - 1; i >= 0; i--)
        sum->pair[i].last = last = fmax(last, sum->pair[i].ready);
}

/* Where the sum is cut in two; *done gets when it is ready. */
static int best_cut(const struct sum *sum, double *done)
{
    double late = 0, early = 0, first = 0;
    int found = 0;
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
            found = cut;
        }
    }
    *done = found ? *done : whole;
    return found;
}

graphi_status each_sum(graphi_graph *graph, bool (*sorts)(const graphi_graph *graph, const struct node *node),
                       sum_visitor visit)
{
    struct value_map map = {0};
    const int32_t nodes = (int32_t)graph->nodes.count;
    double *ready = mem_zalloc_array((size_t)nodes + 1, sizeof *ready);
    struct sum *sum = mem_zalloc(sizeof *sum);
    graphi_status status = ready && sum ? GRAPHI_OK : fail_memory("sums of products", sizeof *sum);
    for (int32_t id = 0; id < nodes && !status; id++) {
        const struct node *node = graph_node(graph, id);
        for (int k = 0; k < node->inputs; k++)
            ready[id] = fmax(ready[id], ready_at(graph, ready, node->input[k]));
        if (is_sum(graph, node)) {
            read_sum(graph, ready, node, sorts && sorts(graph, node), sum);
            const int cut = best_cut(sum, &ready[id]);
            status = visit(graph, id, sum, cut, &map);
        } else if (is_product(node)) {
            for (int i = 0; i < product_pairs(node); i++)
                ready[id] += work_of(graph, node, product_left(node, i));
        }
    }
    mem_free(ready);
    mem_free(sum);
    return map_end(&map, graph, status);
}
