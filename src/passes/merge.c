/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions that share their input become one with the weights side by side, whose result is cut into views.
 * Fewer, wider kernels; but tiles fall elsewhere, which may alter rounding, and per-gate scheduling has less to choose from:
 * off unless asked for. Weights must be sources, so that their concatenation is ready before anything else. */
#include "passes/passes.h"

#include "graph/op.h"

#include <string.h>

enum { MOST_MERGED = 64 };

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
        return attr_int(node, "groups") == 1 && is_weight(graph, node->input[1], 4) ? 1 : 0;
    if (attr_int(node, "packed_b") || attr_int(node, "trans_a"))
        return 0;
    int pairs = (int)attr_int(node, "pairs");
    for (int p = 0; p < pairs; p++)
        if (!is_weight(graph, node->input[2 * p + 1], 2))
            return 0;
    return pairs;
}

static bool same_attributes(const struct node *a, const struct node *b)
{
    for (int i = 0; i < a->attributes; i++) {
        const graphi_attribute *x = &a->attribute[i], *y = &b->attribute[i];
        if (x->i != y->i || x->f != y->f || x->count != y->count ||
            (x->type == GRAPHI_STRING && strcmp(x->s, y->s) != 0) ||
            (x->count && memcmp(x->ints, y->ints, sizeof *x->ints * (size_t)x->count) != 0))
            return false;
    }
    return true;
}

static int weight_axis(const struct node *node)
{
    return is_kind(node, "conv2d") ? 3 : attr_int(node, "trans_b") ? 0 : 1;
}

/* Same inputs, attributes, phase, and weights of the same size but for the axis that is joined. */
static bool partners(const graphi_graph *graph, const struct node *a, const struct node *b)
{
    int pairs = mergeable(graph, b);
    if (!pairs || a->kind != b->kind || a->inputs != b->inputs || a->backward != b->backward || !same_attributes(a, b))
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

static graphi_status merge(graphi_graph *graph, const int32_t *ids, int count, struct value_map *map)
{
    const struct node first = *graph_node(graph, ids[0]);
    graphi_value *input = mem_zalloc_array((size_t)first.inputs, sizeof *input);
    if (!input)
        return fail_memory("merge", sizeof *input * (size_t)first.inputs);
    int32_t made = (int32_t)graph->nodes.count;
    graphi_attribute axis = {.name = "axis", .type = GRAPHI_INT, .i = weight_axis(&first)};
    for (int k = 0; k < first.inputs; k++) {
        graphi_value weights[MOST_MERGED];
        for (int i = 0; i < count; i++)
            weights[i] = graph_node(graph, ids[i])->input[k];
        input[k] = k % 2 ? graphi_op(graph, "concat", count, weights, 1, &axis) : weights[0];
    }
    graphi_value whole = graphi_op(graph, first.kind->name, first.inputs, input, first.attributes, first.attribute);
    mem_free(input);
    TRY(graph->status);
    int32_t product = graph_value(graph, whole)->node;
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        int32_t old = graph_node(graph, ids[i])->output;
        const struct value_type type = graph_value(graph, old)->type;
        int64_t size = type.dims[type.rank - 1];
        graphi_attribute cut[] = {{.name = "axis", .type = GRAPHI_INT, .i = type.rank - 1},
                                  {.name = "begin", .type = GRAPHI_INT, .i = begin},
                                  {.name = "end", .type = GRAPHI_INT, .i = begin + size}};
        graphi_value part = graphi_op(graph, "slice", 1, &whole, 3, cut);
        TRY(graph->status);
        if (!map_reach(map, graph))
            return fail_memory("merge", graph->values.count);
        map->to[old] = part;
        begin += size;
    }
    adopt(graph, made, &first);
    for (int i = 0; i < count; i++)
        TRY(graph_supersede(graph, ids[i], product));
    return GRAPHI_OK;
}

graphi_status pass_merge(graphi_graph *graph, const struct pass_options *options)
{
    int32_t *begin = NULL, *list = NULL;
    struct value_map map = {0};
    graphi_status status = map_reach(&map, graph) ? GRAPHI_OK : fail_memory("merge", graph->values.count);
    if (status == GRAPHI_OK)
        status = graph_users(graph, &begin, &list);
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
            status = merge(graph, ids, count, &map);
    }
    mem_free(begin);
    mem_free(list);
    if (status == GRAPHI_OK)
        return map_apply(&map, graph);
    map_free(&map);
    return status;
}
