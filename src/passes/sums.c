/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of matrix products: add(matmul(a, b), matmul(c, d)) is one matmul of two pairs, whose accumulators take both products
 * before anything is stored. `sums` does it for products of rows (a gate's x W + h U, a gradient through several products),
 * `reduce` for weight gradients (transposed a): the 160 terms of an unrolled LSTM become one node and one result.
 *
 * A sum is a tree of add and add_n nodes whose inner results nobody else reads; its leaves are the terms. Terms that are
 * products of one form, read by the sum alone, become pairs in order of the tree; the others are added behind them. */
#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/gemm.h"

#include <string.h>

struct summer {
    graphi_graph *graph;
    int32_t *begin, *list;
    bool *output;  /* value is an output of the graph */
    bool weights;  /* transposed a only */
    ARRAY(int32_t) terms, inner; /* leaves (values) and inner nodes of the tree at hand */
};

static bool is_sum(const struct node *node) { return is_kind(node, "add") || is_kind(node, "add_n"); }

static bool single_use(const struct summer *s, int32_t value)
{
    return s->begin[value + 1] - s->begin[value] == 1 && !s->output[value] && graph_value(s->graph, value)->assigns < 0;
}

static bool same_type(const struct summer *s, int32_t a, int32_t b)
{
    return type_equal(&graph_value(s->graph, a)->type, &graph_value(s->graph, b)->type);
}

/* The producer of `value` when it is a product that may become pairs of the sum `root`; NULL otherwise. */
static const struct node *product(const struct summer *s, int32_t value, const struct node *root)
{
    int32_t id = graph_value(s->graph, value)->node;
    const struct node *node = id < 0 ? NULL : graph_node(s->graph, id);
    const int64_t *program;
    if (!node || !is_kind(node, "matmul") || !single_use(s, value) || node->backward != root->backward ||
        !same_type(s, value, root->output) || attr_int(node, "packed_b") || attr_ints(node, "program", &program))
        return NULL;
    int a = graph_value(s->graph, node->input[0])->type.rank, b = graph_value(s->graph, node->input[1])->type.rank;
    bool transposed = attr_int(node, "trans_a") != 0;
    return transposed == s->weights && b == 2 && (!transposed || a == 2) ? node : NULL;
}

/* Is `value` an inner node of the tree under a node of type `like`? */
static bool is_inner(const struct summer *s, int32_t value, int32_t like, bool backward)
{
    int32_t id = graph_value(s->graph, value)->node;
    return id >= 0 && is_sum(graph_node(s->graph, id)) && single_use(s, value) && same_type(s, value, like) &&
           graph_node(s->graph, id)->backward == backward;
}

static bool collect(struct summer *s, int32_t id, int depth)
{
    enum { DEEPEST = 600 };
    const struct node *node = graph_node(s->graph, id);
    if (!array_push(&s->inner, id))
        return false;
    for (int k = 0; k < node->inputs; k++) {
        int32_t v = node->input[k];
        bool fine = depth < DEEPEST && is_inner(s, v, node->output, node->backward)
                        ? collect(s, graph_value(s->graph, v)->node, depth + 1)
                        : array_push(&s->terms, v);
        if (!fine)
            return false;
    }
    return true;
}

/* Builds the product of all chosen terms, and adds the rest. */
static graphi_status build(struct summer *s, const struct node *root, const bool *chosen, int products, int pairs,
                           struct value_map *map)
{
    graphi_value *input = mem_zalloc_array((size_t)pairs * 2 + s->terms.count + 1, sizeof *input);
    if (!input)
        return fail_memory("sums", (size_t)pairs * 2 * sizeof *input);
    graphi_attribute attributes[3] = {{.name = "pairs", .type = GRAPHI_INT, .i = pairs}};
    int count = 0;
    for (size_t t = 0; t < s->terms.count; t++) {
        if (!chosen[t])
            continue;
        const struct node *node = graph_node(s->graph, graph_value(s->graph, s->terms.data[t])->node);
        attributes[1] = (graphi_attribute){.name = "trans_a", .type = GRAPHI_INT, .i = attr_int(node, "trans_a")};
        attributes[2] = (graphi_attribute){.name = "trans_b", .type = GRAPHI_INT, .i = attr_int(node, "trans_b")};
        for (int k = 0; k < node->inputs; k++)
            input[count++] = node->input[k];
    }
    int32_t first = (int32_t)s->graph->nodes.count;
    graphi_value value = graphi_op(s->graph, "matmul", count, input, 3, attributes);
    for (size_t t = 0; t < s->terms.count; t++)
        if (!chosen[t])
            value = graphi_op(s->graph, "add", 2, (graphi_value[]){value, s->terms.data[t]}, 0, NULL);
    mem_free(input);
    TRY(s->graph->status);
    adopt(s->graph, first, root);
    if (!map_reach(map, s->graph))
        return fail_memory("sums", s->graph->values.count);
    map->to[root->output] = value;
    for (size_t t = 0; t < s->terms.count; t++)
        if (chosen[t])
            TRY(graph_supersede(s->graph, graph_value(s->graph, s->terms.data[t])->node, first));
    for (size_t i = 0; i < s->inner.count; i++)
        TRY(graph_supersede(s->graph, s->inner.data[i], (int32_t)s->graph->nodes.count - 1));
    /* The product belongs where its last term stood, not its first. */
    for (size_t i = (size_t)first; i < s->graph->nodes.count; i++)
        s->graph->nodes.data[i].order = root->order;
    return GRAPHI_OK;
}

/* Products of one tree must agree in trans_b: the first decides. */
static graphi_status rewrite(struct summer *s, int32_t id, struct value_map *map)
{
    const struct node root = *graph_node(s->graph, id);
    s->terms.count = s->inner.count = 0;
    if (!collect(s, id, 0))
        return fail_memory("sums", s->graph->nodes.count);
    bool *chosen = mem_zalloc_array(s->terms.count + 1, sizeof *chosen);
    if (!chosen)
        return fail_memory("sums", s->terms.count);
    int products = 0, pairs = 0;
    int64_t trans_b = -1;
    for (size_t t = 0; t < s->terms.count; t++) {
        const struct node *node = product(s, s->terms.data[t], &root);
        if (!node || (trans_b >= 0 && attr_int(node, "trans_b") != trans_b) ||
            pairs + attr_int(node, "pairs") > GEMM_MAX_PAIRS)
            continue;
        trans_b = attr_int(node, "trans_b");
        pairs += (int)attr_int(node, "pairs");
        products++;
        chosen[t] = true;
    }
    graphi_status status = products > 1 ? build(s, &root, chosen, products, pairs, map) : GRAPHI_OK;
    mem_free(chosen);
    return status;
}

static graphi_status sum_products(graphi_graph *graph, bool weights)
{
    struct summer s = {.graph = graph, .weights = weights};
    struct value_map map = {0};
    s.output = mem_zalloc_array(graph->values.count + 1, sizeof *s.output);
    graphi_status status = s.output && map_reach(&map, graph) ? GRAPHI_OK : fail_memory("sums", graph->values.count);
    for (size_t i = 0; status == GRAPHI_OK && i < graph->outputs.count; i++)
        s.output[graph->outputs.data[i].value] = true;
    if (status == GRAPHI_OK)
        status = graph_users(graph, &s.begin, &s.list);
    /* Roots last to first, so that a tree is seen whole before its parts. */
    for (int32_t id = (int32_t)graph->nodes.count - 1; status == GRAPHI_OK && id >= 0; id--) {
        const struct node *node = graph_node(graph, id);
        bool root = node->kind && is_sum(node) && graph_value(graph, node->output)->assigns < 0;
        if (root && single_use(&s, node->output)) {
            const struct node *user = graph_node(graph, s.list[s.begin[node->output]]);
            root = !user->kind || !is_sum(user) || !same_type(&s, node->output, user->output) ||
                   user->backward != node->backward;
        }
        if (root)
            status = rewrite(&s, id, &map);
    }
    mem_free(s.output);
    mem_free(s.begin);
    mem_free(s.list);
    array_free(&s.terms);
    array_free(&s.inner);
    if (status == GRAPHI_OK)
        return map_apply(&map, graph);
    map_free(&map);
    return status;
}

graphi_status pass_sums(graphi_graph *graph, const struct pass_options *options) { return sum_products(graph, false); }

graphi_status pass_reduce(graphi_graph *graph, const struct pass_options *options) { return sum_products(graph, true); }
