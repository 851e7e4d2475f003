/* SPDX-License-Identifier: Apache-2.0 */
/* Order by weights. A network that is unrolled over time reads the weights of all its layers at every step. Where they
 * are more than the caches hold, each is gone when its turn comes again. Its nodes are then ordered by the weight that
 * they read, as far as the edges allow: one layer after the other in place of one step after the other, unless that
 * spares less than half of what is read from memory. The array order is what one operation at a time follows, what ties
 * between levels are decided by, and what the memory planner plans along; no value depends on it. Linear in the graph
 * but for sorting; LSTM medium with its gradients, 1,000 nodes, takes 0.4 ms. */
#include "passes/passes.h"

#include "graph/op.h"

#include <string.h>

/* Smaller weights than this part of the caches are not looked at: there may be very many. */
enum { SMALLEST_PART = 256 };

struct weights {
    const graphi_graph *graph;
    int64_t cache;
    int32_t *readers; /* of a value that is a weight, which is worth looking at from two on */
    int32_t *recent;  /* weights in the caches, those read last first */
    int count;
    int64_t held;     /* their bytes */
};

static int64_t bytes_of(const struct weights *w, int32_t value)
{
    return type_bytes(&graph_value(w->graph, value)->type);
}

/* A parameter, a constant, or a packed form of one: 1, which is in `is` for values before this one. */
static int32_t is_weight(const graphi_graph *graph, const int32_t *is, int32_t value)
{
    const struct value *v = graph_value(graph, value);
    if (v->kind != VALUE_RESULT)
        return v->kind == VALUE_PARAMETER || v->kind == VALUE_CONSTANT;
    const struct node *node = graph_node(graph, v->node);
    return node->kind->flags & OP_PACK ? is[node->input[0]] : 0;
}

/* Counts the nodes that read each weight, packing aside; gives the bytes of those that are read more than once. is:
 * scratch, one a value. */
static int64_t count_readers(struct weights *w, int32_t *is)
{
    int64_t all = 0;
    for (int32_t v = 0; v < (int32_t)w->graph->values.count; v++)
        is[v] = is_weight(w->graph, is, v);
    for (size_t i = 0; i < w->graph->nodes.count; i++) {
        const struct node *node = graph_node(w->graph, (int32_t)i);
        for (int k = 0; k < node->inputs && !(node->kind->flags & OP_PACK); k++)
            w->readers[node->input[k]] += is[node->input[k]];
    }
    for (int32_t v = 0; v < (int32_t)w->graph->values.count; v++) {
        if (bytes_of(w, v) < w->cache / SMALLEST_PART)
            w->readers[v] = 0;
        all += w->readers[v] > 1 ? bytes_of(w, v) : 0;
    }
    return all;
}

/* Input k of a node, if it is a weight that others read as well; else -1. */
static int32_t weight_at(const struct weights *w, const struct node *node, int k)
{
    return w->readers[node->input[k]] > 1 && !(node->kind->flags & OP_PACK) ? node->input[k] : -1;
}

/* The largest of a node's weights, of several the first in the graph; -1: it has none. */
static int32_t main_weight(const struct weights *w, const struct node *node)
{
    int32_t most = -1;
    for (int k = 0; k < node->inputs; k++) {
        const int32_t value = weight_at(w, node, k);
        if (value < 0)
            continue;
        const int64_t more = most < 0 ? 1 : bytes_of(w, value) - bytes_of(w, most);
        if (more > 0 || (more == 0 && value < most))
            most = value;
    }
    return most;
}

/* Bytes that reading a weight brings from memory, of caches that keep what was read last. */
static int64_t read_weight(struct weights *w, int32_t value)
{
    int at = 0;
    while (at < w->count && w->recent[at] != value)
        at++;
    const int64_t missed = at < w->count ? 0 : bytes_of(w, value);
    w->count += at == w->count;
    memmove(w->recent + 1, w->recent, sizeof *w->recent * (size_t)at);
    w->recent[0] = value;
    for (w->held += missed; w->held > w->cache && w->count > 1; w->count--)
        w->held -= bytes_of(w, w->recent[w->count - 1]);
    return missed;
}

/* What the nodes in this order bring from memory; NULL: as they are. */
static int64_t missed_bytes(struct weights *w, const int32_t *sorted)
{
    int64_t missed = 0;
    w->count = 0;
    w->held = 0;
    for (int32_t i = 0; i < (int32_t)w->graph->nodes.count; i++) {
        const struct node *node = graph_node(w->graph, sorted ? sorted[i] : i);
        for (int k = 0; k < node->inputs; k++)
            missed += weight_at(w, node, k) >= 0 ? read_weight(w, node->input[k]) : 0;
    }
    return missed;
}

/* Wished places: that of the first node with the same main weight, in the backward pass of the first one there. Others
 * come with the last of those whose results they read, or, where they read none, with the first of their readers, which
 * is -2 - its place until they are looked at. first: two a value, -1 everywhere. */
static void wish(const struct weights *w, int32_t *first, int32_t *place)
{
    const graphi_graph *graph = w->graph;
    const int32_t nodes = (int32_t)graph->nodes.count;
    for (int32_t i = 0; i < nodes; i++) {
        const struct node *node = graph_node(graph, i);
        const int32_t weight = main_weight(w, node);
        int32_t *at = weight < 0 ? NULL : &first[2 * weight + node->backward];
        if (at)
            *at = *at < 0 ? i : *at;
        place[i] = at ? *at : -1;
        for (int k = 0; !at && k < node->inputs; k++) {
            const int32_t producer = graph_value(graph, node->input[k])->node;
            if (producer >= 0 && place[producer] > place[i])
                place[i] = place[producer];
        }
    }
    for (int32_t i = nodes - 1; i >= 0; i--) {
        const struct node *node = graph_node(graph, i);
        if (place[i] < 0)
            place[i] = place[i] == -1 ? i : -2 - place[i];
        for (int k = 0; k < node->inputs; k++) {
            const int32_t producer = graph_value(graph, node->input[k])->node;
            if (producer >= 0 && place[producer] < 0 && (place[producer] == -1 || -2 - place[producer] > place[i]))
                place[producer] = -2 - place[i];
        }
    }
}

/* Leaves the graph with the better order. numbers: two a node, four a value, all 0. */
static graphi_status reorder(graphi_graph *graph, struct weights *w, int32_t *numbers)
{
    const size_t nodes = graph->nodes.count, values = graph->values.count;
    int32_t *place = numbers, *sorted = numbers + nodes, *first = numbers + 2 * nodes;
    w->readers = first + 2 * values;
    w->recent = w->readers + values;
    if (count_readers(w, first) <= w->cache)
        return GRAPHI_OK;
    for (size_t v = 0; v < 2 * values; v++)
        first[v] = -1;
    wish(w, first, place);
    for (size_t i = 0; i < nodes; i++)
        graph->nodes.data[i].order = place[i];
    TRY(graph_sorted(graph, sorted));
    if (missed_bytes(w, sorted) <= missed_bytes(w, NULL) / 2)
        return graph_compact(graph);
    for (size_t i = 0; i < nodes; i++)
        graph->nodes.data[i].order = (int32_t)i;
    return GRAPHI_OK;
}

graphi_status pass_reuse(graphi_graph *graph, const struct pass_options *options)
{
    const size_t count = 2 * graph->nodes.count + 4 * graph->values.count + 1;
    struct weights w = {.graph = graph, .cache = options->cache};
    if (!options->cache)
        return GRAPHI_OK;
    int32_t *numbers = mem_zalloc_array(count, sizeof *numbers);
    graphi_status status = numbers ? reorder(graph, &w, numbers) : fail_memory("reuse", count * sizeof *numbers);
    mem_free(numbers);
    return status;
}
