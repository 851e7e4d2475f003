/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows by one weight, none of which waits for another, are one product of all rows: of a recurrent
 * network that is unrolled over time, what each layer takes from the one below (deepcpu.txt 5.2.1, fusion across time
 * steps) and gives back to it. One row after the other reads the weight as often as there are rows; products of enough
 * rows read it once, and what a row costs them is arithmetic.
 *
 * A node of several pairs, a gate's x W + h U, gives up the pairs that can be had for all nodes at once and keeps the
 * others, whose sums begin with its rows of the whole product. Pairs can be had if no node's result reaches an operand
 * of theirs, through what was put together before as well; so no cycle comes about.
 *
 * The whole is kept until its last row is read, and layers follow each other rather than steps of time: where rows are
 * many there is nothing to gain, where weights are small more rows are moved than weights are spared, and many cores
 * are better busy with several layers. For these nothing is put together; but pairs that could be come first in their
 * sums in any case, so that plans have the same bits whatever the cores. */
#include "passes/partners.h"
#include "passes/edit.h"

#include "base/hash.h"
#include "graph/op.h"
#include "ops/matmul.h"
#include "ops/shape.h"

#include <string.h>

/* A weight of at least so many times the elements that the rows bring to it and take from it; cores that are busy with
 * what is left side by side. */
enum { LEAST_PART = 16, MOST_CORES = 8, MOST_PAIRS = 64, MOST_SEARCHES = 256 };

struct follower { /* of a node: who reads its result, as which input; -1: waits for it without reading */
    int32_t node, input;
};

struct batcher {
    graphi_graph *graph;
    struct value_map map;
    struct wholes wholes;
    int32_t *first, *next;      /* of a node: the first and the next of its partners; itself and -1: none */
    uint64_t *shared;           /* of a first one: the pairs that are put together, by bit */
    int32_t *begin;             /* followers of each node, CSR */
    struct follower *follower;
    int32_t *reached, *stack;   /* of a node: the last search that reached it; nodes to go on from */
    int32_t searches;
    ARRAY(int32_t) ids;         /* the partners at hand */
    ARRAY(graphi_value) values; /* room for their operands */
};

/* --- partners --- */

static bool is_source(const struct value *value)
{
    return value->kind == VALUE_PARAMETER || value->kind == VALUE_CONSTANT;
}

/* A matrix that is there before anything else, or several that pass_merge has put side by side. */
static bool is_weight(const graphi_graph *graph, const struct value *value)
{
    const struct node *node = value->kind == VALUE_RESULT ? graph_node(graph, value->node) : NULL;
    if (value->type.rank != 2 || !node)
        return value->type.rank == 2 && is_source(value);
    bool sources = node_is(node, IS_CONCAT);
    for (int k = 0; k < node->inputs && sources; k++)
        sources = is_source(graph_value(graph, node->input[k]));
    return sources;
}

static bool may_batch(const graphi_graph *graph, const struct node *node)
{
    if (!is_plain_product(node) || node->afters || product_trans_a(node) || product_pairs(node) > MOST_PAIRS)
        return false;
    for (int pair = 0; pair < product_pairs(node); pair++) {
        const struct value_type *a = &graph_value(graph, product_left(node, pair))->type;
        const struct value *b = graph_value(graph, product_right(node, pair));
        if (a->rank != 2 || a->symbol >= 0 || a->dims[0] > BATCH_MOST_ROWS || !is_weight(graph, b) ||
            LEAST_PART * a->dims[0] * (b->type.dims[0] + b->type.dims[1]) > type_count(&b->type))
            return false;
    }
    return true;
}

static int64_t rows_of(const graphi_graph *graph, const struct node *node)
{
    return graph_value(graph, product_left(node, 0))->type.dims[0];
}

static bool partners(const graphi_graph *graph, const struct node *a, const struct node *b)
{
    bool same = a->inputs == b->inputs && a->backward == b->backward && attributes_equal(a, b) &&
                rows_of(graph, a) == rows_of(graph, b);
    for (int pair = 0; same && pair < product_pairs(a); pair++)
        same = product_right(a, pair) == product_right(b, pair);
    return same;
}

static uint64_t partners_hash(const graphi_graph *graph, const struct node *node)
{
    uint64_t hash = hash_u64(HASH_START, (uint64_t)rows_of(graph, node));
    hash = hash_u64(hash, (uint64_t)node->backward);
    for (int pair = 0; pair < product_pairs(node); pair++)
        hash = hash_u64(hash, (uint64_t)product_right(node, pair));
    return graph_hash_attributes(hash, node);
}

static const struct partner_rule rule = {may_batch, partners, partners_hash};

/* --- which pairs --- */

/* Calls for each follower of each node: with `list` NULL counts them into begin[node + 2], else lists them. */
static void each_follower(struct batcher *b, struct follower *list)
{
    for (int32_t id = 0; id < (int32_t)b->graph->nodes.count; id++) {
        const struct node *node = graph_node(b->graph, id);
        for (int k = 0; k < node->inputs + node->afters; k++) {
            const bool data = k < node->inputs;
            const int32_t before = data ? graph_value(b->graph, node->input[k])->node : node->after[k - node->inputs];
            if (before >= 0 && list)
                list[b->begin[before + 1]++] = (struct follower){id, data ? k : -1};
            else if (before >= 0)
                b->begin[before + 2]++;
        }
    }
}

static graphi_status find_followers(struct batcher *b)
{
    const size_t nodes = b->graph->nodes.count;
    each_follower(b, NULL);
    for (size_t i = 2; i < nodes + 2; i++)
        b->begin[i] += b->begin[i - 1];
    const size_t all = (size_t)b->begin[nodes + 1];
    b->follower = mem_zalloc_array(all + 1, sizeof *b->follower);
    if (!b->follower)
        return fail_memory("batch", all * sizeof *b->follower);
    each_follower(b, b->follower);
    return GRAPHI_OK;
}

static int reach(struct batcher *b, int count, int32_t node)
{
    if (b->reached[node] == b->searches)
        return count;
    b->reached[node] = b->searches;
    b->stack[count] = node;
    return count + 1;
}

/* Marks who comes after `from` or a partner of it. */
static void search(struct batcher *b, int32_t from)
{
    int count = 0;
    b->searches++;
    for (int32_t id = from; id >= 0; id = b->next[id])
        count = reach(b, count, id);
    while (count) {
        const int32_t id = b->stack[--count];
        for (int32_t i = b->begin[id]; i < b->begin[id + 1]; i++) {
            const struct follower *f = &b->follower[i];
            const int32_t first = b->first[f->node];
            const bool together = b->shared[first] && f->input >= 0 && b->shared[first] >> (f->input / 2) & 1;
            for (int32_t all = together ? first : -1; all >= 0; all = b->next[all])
                count = reach(b, count, all);
            count = reach(b, count, f->node);
        }
    }
}

static bool is_free(const struct batcher *b, int32_t from, int pair)
{
    for (int32_t id = from; id >= 0; id = b->next[id]) {
        const int32_t producer = graph_value(b->graph, product_left(graph_node(b->graph, id), pair))->node;
        if (producer >= 0 && b->reached[producer] == b->searches)
            return false;
    }
    return true;
}

/* Pairs of `from` and its partners that can be put together. */
static void choose(struct batcher *b, int32_t from)
{
    search(b, from);
    for (int pair = 0; pair < product_pairs(graph_node(b->graph, from)); pair++)
        if (is_free(b, from, pair))
            b->shared[from] |= UINT64_C(1) << pair;
}

/* --- rewriting --- */

static graphi_value rows(graphi_graph *graph, graphi_value value, int64_t begin, int64_t end)
{
    const graphi_attribute range[] = {{.name = "axis", .type = GRAPHI_INT, .i = 0},
                                      {.name = "begin", .type = GRAPHI_INT, .i = begin},
                                      {.name = "end", .type = GRAPHI_INT, .i = end}};
    return graphi_op(graph, "slice", 1, &value, 3, range);
}

/* The value whose rows from *begin on this one is; GRAPHI_NONE: it was not cut from another one. */
static graphi_value cut_from(const graphi_graph *graph, graphi_value value, int64_t *begin)
{
    const int32_t id = graph_value(graph, value)->node;
    const struct node *node = id < 0 ? NULL : graph_node(graph, id);
    if (!node || !node_is(node, IS_SLICE) || node_axis(node, 2) != 0)
        return GRAPHI_NONE;
    *begin = attr_int(node, "begin");
    *begin += *begin < 0 ? graph_value(graph, node->input[0])->type.dims[0] : 0;
    return node->input[0];
}

/* The operands of a pair, one below the other: often they were cut from one value, perhaps here. */
static graphi_value below(struct batcher *b, int pair)
{
    graphi_graph *graph = b->graph;
    const int count = (int)b->ids.count;
    graphi_value source = GRAPHI_NONE;
    int64_t first = 0, end = 0, begin = 0;
    bool apart = false;
    for (int i = 0; i < count; i++) {
        const graphi_value value = product_left(graph_node(graph, b->ids.data[i]), pair);
        const graphi_value from = cut_from(graph, map_follow(&b->map, value), &begin);
        if (i == 0) {
            source = from;
            first = end = begin;
        }
        apart = apart || from == GRAPHI_NONE || from != source || begin != end;
        end += graph_value(graph, value)->type.dims[0];
        b->values.data[i] = value;
    }
    if (apart)
        return whole_of(&b->wholes, b->values.data, count, 0);
    return first == 0 && end == graph_value(graph, source)->type.dims[0] ? source : rows(graph, source, first, end);
}

/* Adds those pairs of a node. */
static void take(const struct node *node, uint64_t pairs, struct product_operands *to)
{
    for (int pair = 0; pair < product_pairs(node); pair++)
        if (pairs >> pair & 1)
            product_pair(to, product_left(node, pair), product_right(node, pair));
}

/* What the i-th partner becomes. Where there is a whole: its rows of it, with which the sums of its own pairs begin. */
static graphi_value part(struct batcher *b, int i, uint64_t shared, graphi_value whole)
{
    const struct node node = *graph_node(b->graph, b->ids.data[i]);
    const int64_t size = graph_value(b->graph, node.output)->type.dims[0];
    graphi_value input[2 * MOST_PAIRS + 1];
    struct product_operands own = {.input = input, .base = GRAPHI_NONE};
    if (whole == GRAPHI_NONE)
        take(&node, shared, &own);
    else
        own.base = rows(b->graph, whole, i * size, (i + 1) * size);
    take(&node, ~shared, &own);
    return own.pairs ? product_append(b->graph, &own, false, product_trans_b(&node)) : own.base;
}

static graphi_status replace(struct batcher *b, int i, uint64_t shared, graphi_value whole)
{
    graphi_graph *graph = b->graph;
    const int32_t id = b->ids.data[i], made = (int32_t)graph->nodes.count;
    const struct node node = *graph_node(graph, id);
    const graphi_value value = part(b, i, shared, whole);
    TRY(graph->status);
    adopt(graph, made, &node);
    TRY(map_set(&b->map, graph, node.output, value));
    return graph_supersede(graph, id, (int32_t)graph->nodes.count - 1);
}

/* The product of the shared pairs of all partners. */
static graphi_value product_of_all(struct batcher *b, const struct node *node, uint64_t shared)
{
    graphi_value input[2 * MOST_PAIRS];
    struct product_operands all = {.input = input, .base = GRAPHI_NONE};
    for (int pair = 0; pair < product_pairs(node); pair++)
        if (shared >> pair & 1)
            product_pair(&all, below(b, pair), product_right(node, pair));
    return product_append(b->graph, &all, false, product_trans_b(node));
}

/* Shared pairs come first in the sums of all partners, and are put together or not. */
static graphi_status rewrite(struct batcher *b, int32_t from, bool together)
{
    const int32_t made = (int32_t)b->graph->nodes.count;
    const struct node node = *graph_node(b->graph, from);
    const uint64_t shared = b->shared[from];
    const bool first = (shared & (shared + 1)) == 0;
    if (!together && first)
        return GRAPHI_OK;
    b->ids.count = 0;
    for (int32_t id = from; id >= 0; id = b->next[id])
        b->ids.data[b->ids.count++] = id;
    const graphi_value whole = together ? product_of_all(b, &node, shared) : GRAPHI_NONE;
    TRY(b->graph->status);
    adopt(b->graph, made, &node);
    for (int i = 0; i < (int)b->ids.count; i++)
        TRY(replace(b, i, shared, whole));
    return GRAPHI_OK;
}

static graphi_status batch_all(struct batcher *b, bool together)
{
    const int32_t nodes = (int32_t)b->graph->nodes.count;
    for (int32_t id = 0; id < nodes; id++)
        b->first[id] = id;
    for (int32_t id = 0; id < nodes; id++)
        if (b->next[id] >= 0)
            b->first[b->next[id]] = b->first[id];
    TRY(find_followers(b));
    for (int32_t id = 0; id < nodes && b->searches < MOST_SEARCHES; id++)
        if (b->first[id] == id && b->next[id] >= 0)
            choose(b, id);
    for (int32_t id = 0; id < nodes; id++)
        if (b->shared[id])
            TRY(rewrite(b, id, together));
    return GRAPHI_OK;
}

static graphi_status run(struct batcher *b, bool together)
{
    const size_t nodes = b->graph->nodes.count, numbers = 5 * nodes + 2;
    b->first = mem_zalloc_array(numbers, sizeof *b->first);
    b->shared = mem_zalloc_array(nodes + 1, sizeof *b->shared);
    if (!b->first || !b->shared || !array_reserve(&b->ids, nodes) || !array_reserve(&b->values, nodes))
        return fail_memory("batch", numbers * sizeof *b->first);
    b->next = b->first + nodes;
    b->reached = b->next + nodes;
    b->stack = b->reached + nodes;
    b->begin = b->stack + nodes;
    TRY(partners_link(b->graph, &rule, b->next));
    TRY(wholes_open(b->graph, &b->wholes));
    return batch_all(b, together);
}

graphi_status pass_batch(graphi_graph *graph, const struct pass_options *options)
{
    struct batcher b = {.graph = graph};
    graphi_status status = run(&b, options->cores <= MOST_CORES);
    mem_free(b.first);
    mem_free(b.shared);
    mem_free(b.follower);
    array_free(&b.ids);
    array_free(&b.values);
    wholes_close(&b.wholes);
    return map_end(&b.map, graph, status);
}
