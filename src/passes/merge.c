/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions that share their input become one with the weights side by side, whose result is cut into
 * views. Fewer, wider kernels; but convolutions may choose another algorithm, which alters rounding, and per-gate
 * scheduling has less to choose from: off unless asked for. Weights must be sources, so that their concatenation is
 * ready before anything else; equal concatenations are one, and the packing pass takes those of whole panels apart
 * again, packing the sources in place. */
#include "passes/partners.h"
#include "passes/edit.h"

#include "base/hash.h"
#include "graph/op.h"
#include "ops/conv.h"
#include "ops/epilogue.h"
#include "ops/matmul.h"

#include <string.h>

enum { MOST_MERGED = 64 };

struct merger {
    graphi_graph *graph;
    struct value_map map;
    struct wholes wholes; /* of weights */
    int32_t *next;        /* of a node: the next one that may be merged with it, -1: none */
};

static bool is_weight(const graphi_graph *graph, int32_t value, int rank)
{
    const struct value *v = graph_value(graph, value);
    return (v->kind == VALUE_PARAMETER || v->kind == VALUE_CONSTANT) && v->type.rank == rank;
}

/* Number of (input, weight) pairs of a node that may be merged; 0: may not. */
static int mergeable(const graphi_graph *graph, const struct node *node)
{
    if (node_is(node, IS_CONV))
        return !epilogue_given(node) && !conv_node_pooled(node) && attr_int(node, "groups") == 1 &&
               is_weight(graph, conv_node_weights(node), 4);
    if (!is_plain_product(node) || product_trans_a(node))
        return 0;
    int pairs = product_pairs(node);
    for (int p = 0; p < pairs; p++)
        if (!is_weight(graph, product_right(node, p), 2))
            return 0;
    return pairs;
}

static int weight_axis(const struct node *node)
{
    return node_is(node, IS_CONV) ? 3 : product_trans_b(node) ? 0 : 1;
}

/* Same inputs, attributes, phase, and weights of the same size but for the axis that is joined. */
static bool partners(const graphi_graph *graph, const struct node *a, const struct node *b)
{
    int pairs = mergeable(graph, b);
    if (!pairs || a->kind != b->kind || a->inputs != b->inputs || a->backward != b->backward || !attributes_equal(a, b))
        return false;
    int axis = weight_axis(a);
    for (int p = 0; p < pairs; p++) {
        const struct value_type *x = &graph_value(graph, a->input[2 * p + 1])->type;
        const struct value_type *y = &graph_value(graph, b->input[2 * p + 1])->type;
        if (a->input[2 * p] != b->input[2 * p])
            return false;
        for (int d = 0; d < x->rank; d++)
            if (d != axis && x->dims[d] != y->dims[d])
                return false;
    }
    return true;
}

/* The same for partners. */
static uint64_t partners_hash(const graphi_graph *graph, const struct node *node)
{
    const int axis = weight_axis(node);
    uint64_t hash = hash_u64(hash_string(HASH_START, node->kind->name), (uint64_t)node->backward);
    for (int k = 0; k + 1 < node->inputs; k += 2) {
        const struct value_type *weight = &graph_value(graph, node->input[k + 1])->type;
        hash = hash_u64(hash, (uint64_t)node->input[k]);
        for (int d = 0; d < weight->rank; d++)
            hash = hash_u64(hash, d == axis ? 0 : (uint64_t)weight->dims[d]);
    }
    return graph_hash_attributes(hash, node);
}

static bool may_merge(const graphi_graph *graph, const struct node *node) { return mergeable(graph, node) > 0; }

static const struct partner_rule rule = {may_merge, partners, partners_hash};

/* The weights that the nodes read as input k, side by side. */
static graphi_value beside(struct merger *m, const int32_t *ids, int count, int k, int axis)
{
    graphi_value weights[MOST_MERGED];
    for (int i = 0; i < count; i++)
        weights[i] = graph_node(m->graph, ids[i])->input[k];
    return whole_of(&m->wholes, weights, count, axis);
}

static graphi_status cut(struct merger *m, const int32_t *ids, int count, graphi_value whole)
{
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        int32_t old = graph_node(m->graph, ids[i])->output;
        const struct value_type type = graph_value(m->graph, old)->type;
        int64_t size = type.dims[type.rank - 1];
        graphi_attribute range[] = {{.name = "axis", .type = GRAPHI_INT, .i = type.rank - 1},
                                    {.name = "begin", .type = GRAPHI_INT, .i = begin},
                                    {.name = "end", .type = GRAPHI_INT, .i = begin + size}};
        graphi_value part = graphi_op(m->graph, "slice", 1, &whole, 3, range);
        TRY(m->graph->status);
        TRY(map_set(&m->map, m->graph, old, part));
        begin += size;
    }
    return GRAPHI_OK;
}

static graphi_status merge(struct merger *m, const int32_t *ids, int count)
{
    const struct node first = *graph_node(m->graph, ids[0]);
    graphi_value *input = mem_zalloc_array((size_t)first.inputs, sizeof *input);
    if (!input)
        return fail_memory("merge", sizeof *input * (size_t)first.inputs);
    int32_t made = (int32_t)m->graph->nodes.count;
    for (int k = 0; k < first.inputs; k++)
        input[k] = k % 2 ? beside(m, ids, count, k, weight_axis(&first)) : first.input[k];
    graphi_value whole = graphi_op(m->graph, first.kind->name, first.inputs, input, first.attributes, first.attribute);
    mem_free(input);
    TRY(m->graph->status);
    int32_t product = graph_value(m->graph, whole)->node;
    TRY(cut(m, ids, count, whole));
    adopt(m->graph, made, &first);
    for (int i = 0; i < count; i++)
        TRY(graph_supersede(m->graph, ids[i], product));
    return GRAPHI_OK;
}

static graphi_status merge_all(struct merger *m)
{
    const int32_t nodes = (int32_t)m->graph->nodes.count;
    for (int32_t id = 0; id < nodes; id++) {
        int32_t ids[MOST_MERGED];
        int count = 0;
        if (!graph_node(m->graph, id)->kind) /* merged */
            continue;
        for (int32_t other = id; other >= 0 && count < MOST_MERGED; other = m->next[other])
            ids[count++] = other;
        if (count > 1)
            TRY(merge(m, ids, count));
    }
    return GRAPHI_OK;
}

static graphi_status run(struct merger *m)
{
    const size_t nodes = m->graph->nodes.count + 1;
    m->next = mem_alloc(nodes * sizeof *m->next);
    graphi_status status = m->next ? GRAPHI_OK : fail_memory("merge", nodes);
    if (status == GRAPHI_OK)
        status = wholes_open(m->graph, &m->wholes);
    if (status == GRAPHI_OK)
        status = partners_link(m->graph, &rule, m->next);
    if (status == GRAPHI_OK)
        status = merge_all(m);
    wholes_close(&m->wholes);
    mem_free(m->next);
    return map_end(&m->map, m->graph, status);
}

graphi_status pass_merge(graphi_graph *graph, const struct pass_options *options)
{
    return run(&(struct merger){.graph = graph});
}
