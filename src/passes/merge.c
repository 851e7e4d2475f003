/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions that share their input become one with the weights side by side, whose result is cut into
 * views. Fewer, wider kernels; but convolutions may choose another algorithm, which alters rounding, and per-gate
 * scheduling has less to choose from: off unless asked for. Weights must be sources, so that their concatenation is
 * ready before anything else; equal concatenations are one, and the packing pass takes those of whole panels apart
 * again, packing the sources in place. */
#include "passes/passes.h"

#include "graph/op.h"

#include <string.h>

enum { MOST_MERGED = 64 };

struct merger {
    graphi_graph *graph;
    struct value_map map;
    int32_t *whole; /* of a weight: the concatenation that it begins, -1: none */
};

static bool is_weight(const graphi_graph *graph, int32_t value, int rank)
{
    const struct value *v = graph_value(graph, value);
    return (v->kind == VALUE_PARAMETER || v->kind == VALUE_CONSTANT) && v->type.rank == rank;
}

/* Number of (input, weight) pairs of a node that may be merged; 0: may not. */
static int mergeable(const graphi_graph *graph, const struct node *node)
{
    const int64_t *program;
    bool matmul = is_kind(node, "matmul"), conv = is_kind(node, "conv2d");
    if ((!matmul && !conv) || attr_ints(node, "program", &program) > 0)
        return 0;
    if (conv)
        return attr_int(node, "groups") == 1 && attr_ints(node, "pool", &program) == 0 &&
               is_weight(graph, node->input[1], 4);
    if (attr_int(node, "packed_b") || attr_int(node, "trans_a"))
        return 0;
    int pairs = (int)attr_int(node, "pairs");
    for (int p = 0; p < pairs; p++)
        if (!is_weight(graph, node->input[2 * p + 1], 2))
            return 0;
    return pairs;
}

static int weight_axis(const struct node *node)
{
    return is_kind(node, "conv2d") ? 3 : attr_int(node, "trans_b") ? 0 : 1;
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

static bool concatenates(const struct node *node, const graphi_value *parts, int count)
{
    return node->inputs == count && memcmp(node->input, parts, (size_t)count * sizeof *parts) == 0;
}

/* The weights that the nodes read as input k, side by side. */
static graphi_value beside(struct merger *m, const int32_t *ids, int count, int k, int axis)
{
    graphi_value weights[MOST_MERGED];
    for (int i = 0; i < count; i++)
        weights[i] = graph_node(m->graph, ids[i])->input[k];
    int32_t known = m->whole[weights[0]];
    if (known >= 0) {
        const struct node *node = graph_node(m->graph, graph_value(m->graph, known)->node);
        if (attr_int(node, "axis") == axis && concatenates(node, weights, count))
            return known;
    }
    graphi_attribute along = {.name = "axis", .type = GRAPHI_INT, .i = axis};
    known = graphi_op(m->graph, "concat", count, weights, 1, &along);
    if (m->graph->status == GRAPHI_OK)
        m->whole[weights[0]] = known;
    return known;
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
        if (!map_reach(&m->map, m->graph))
            return fail_memory("merge", m->graph->values.count);
        m->map.to[old] = part;
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

static graphi_status run(struct merger *m)
{
    graphi_graph *graph = m->graph;
    int32_t *begin = NULL, *list = NULL;
    size_t sources = graph->values.count + 1;
    m->whole = mem_alloc(sources * sizeof *m->whole);
    graphi_status status =
        m->whole && map_reach(&m->map, graph) ? GRAPHI_OK : fail_memory("merge", graph->values.count);
    if (status == GRAPHI_OK) {
        memset(m->whole, 0xff, sources * sizeof *m->whole);
        status = graph_users(graph, &begin, &list);
    }
    int32_t nodes = (int32_t)graph->nodes.count;
    for (int32_t id = 0; status == GRAPHI_OK && id < nodes; id++) {
        const struct node *node = graph_node(graph, id);
        if (!node->kind || !mergeable(graph, node))
            continue;
        int32_t ids[MOST_MERGED] = {id};
        int count = 1;
        for (int32_t u = begin[node->input[0]]; u < begin[node->input[0] + 1] && count < MOST_MERGED; u++) {
            const struct node *other = graph_node(graph, list[u]);
            if (list[u] > ids[count - 1] && other->kind && partners(graph, node, other))
                ids[count++] = list[u];
        }
        if (count > 1)
            status = merge(m, ids, count);
    }
    mem_free(m->whole);
    mem_free(begin);
    mem_free(list);
    if (status == GRAPHI_OK)
        return map_apply(&m->map, graph);
    map_free(&m->map);
    return status;
}

graphi_status pass_merge(graphi_graph *graph, const struct pass_options *options)
{
    return run(&(struct merger){.graph = graph});
}
