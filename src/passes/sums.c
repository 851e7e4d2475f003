/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of matrix products: add(matmul(a, b), matmul(c, d)) is one matmul of two pairs, whose accumulators take both
 * products before anything is stored. `sums` does it for products of rows (a gate's x W + h U, a gradient through
 * several products), `reduce` for weight gradients (transposed a): the 160 terms of an unrolled LSTM become one node
 * and one result. Sums over rows of the same gradients (those of a bias) are products with ones there: one node reads
 * what the weight gradient keeps anyway.
 *
 * A sum is a tree of add and add_n nodes whose inner results nobody else reads; its leaves are the terms. Terms that
 * are products of one form, read by the sum alone, become pairs in order of the tree; the others are added behind them.
 *
 * A product that reads what a parameter had before its update goes before the update, one that reads what it has then
 * behind it: they cannot be one. The node made of the terms takes the place of the last of them, so no node that waits
 * for one of them may stand before it. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/gemm_spec.h"
#include "ops/matmul.h"

#include <string.h>

struct summer {
    graphi_graph *graph;
    struct uses uses;
    bool weights;  /* transposed a only */
    bool columns;  /* sums over rows too; not where a product would round their terms to bfloat16 */
    bool *kept;    /* value is the right operand of a weight gradient */
    int32_t *next; /* per node: the first that waits for it although no data flows */
    ARRAY(int32_t) terms, inner; /* leaves (values) and inner nodes of the tree at hand */
};

static bool is_sum(const struct node *node) { return node_has(node, OP_ADDS); }

static bool single_use(const struct summer *s, int32_t value) { return uses_once(&s->uses, s->graph, value); }

/* Is this the sum over rows of a matrix that a weight gradient reads too? Others would be kept until the last of them
 * is made. */
static bool is_column_sum(const struct summer *s, const struct node *node)
{
    if (!s->columns || !node_is(node, IS_SUM_TO) || !s->kept[node->input[0]])
        return false;
    const struct value_type *in = &graph_value(s->graph, node->input[0])->type,
                            *out = &graph_value(s->graph, node->output)->type;
    return in->rank == 2 && in->symbol < 0 && in->dims[0] > 1 && type_count(out) == in->dims[1] &&
           out->dims[out->rank - 1] == in->dims[1];
}

/* Of a term: a product, or a sum over rows. */
static int pairs_of(const struct node *node) { return is_product(node) ? product_pairs(node) : 1; }

static bool trans_b_of(const struct node *node) { return is_product(node) && product_trans_b(node); }

/* The producer of `value` when it is a product that may become pairs of the sum `root`; NULL otherwise. */
static const struct node *product(const struct summer *s, int32_t value, const struct node *root)
{
    int32_t id = graph_value(s->graph, value)->node;
    const struct node *node = id < 0 ? NULL : graph_node(s->graph, id);
    if (!node || !single_use(s, value) || node->backward != root->backward || !same_type(s->graph, value, root->output))
        return NULL;
    if (is_column_sum(s, node))
        return node;
    if (!is_plain_product(node))
        return NULL;
    int a = graph_value(s->graph, product_left(node, 0))->type.rank,
        b = graph_value(s->graph, product_right(node, 0))->type.rank;
    bool transposed = product_trans_a(node);
    return transposed == s->weights && b == 2 && (!transposed || a == 2) ? node : NULL;
}

/* Is `value` an inner node of the tree under a node of type `like`? */
static bool is_inner(const struct summer *s, int32_t value, int32_t like, bool backward)
{
    int32_t id = graph_value(s->graph, value)->node;
    return id >= 0 && is_sum(graph_node(s->graph, id)) && single_use(s, value) && same_type(s->graph, value, like) &&
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

/* A column of ones, as long as the matrix has rows. */
static graphi_value ones(graphi_graph *graph, int64_t rows)
{
    struct value_type type = {.dtype = GRAPHI_F32, .rank = 2, .dims = {rows, 1}, .symbol = -1};
    float *data = mem_alloc((size_t)rows * sizeof *data);
    if (!data)
        return graph_broken(graph, fail_memory("sums", (size_t)rows * sizeof *data));
    for (int64_t i = 0; i < rows; i++)
        data[i] = 1;
    graphi_value value = graph_constant(graph, &type, data);
    mem_free(data);
    return value;
}

/* Adds a term's pairs. `column` is the ones used last. */
static void take_pairs(struct summer *s, const struct node *node, graphi_value *column, struct product_operands *to)
{
    if (is_product(node)) {
        for (int i = 0; i < product_pairs(node); i++)
            product_pair(to, product_left(node, i), product_right(node, i));
        return;
    }
    const graphi_value matrix = node->input[0];
    int64_t rows = graph_value(s->graph, matrix)->type.dims[0];
    if (*column == GRAPHI_NONE || graph_value(s->graph, *column)->type.dims[0] != rows)
        *column = ones(s->graph, rows);
    product_pair(to, *column, matrix);
}

/* The product has the type of the sum but where it was one over rows: a row then. */
static graphi_value as_result(graphi_graph *graph, graphi_value value, int32_t like)
{
    const struct value_type type = graph_value(graph, like)->type;
    if (graph->status != GRAPHI_OK || type_equal(&graph_value(graph, value)->type, &type))
        return value;
    graphi_attribute shape = {.name = "shape", .type = GRAPHI_INTS, .ints = type.dims, .count = type.rank};
    return graphi_op(graph, "reshape", 1, &value, 1, &shape);
}

/* Builds the product of all chosen terms, and adds the rest. */
static graphi_status build(struct summer *s, const struct node *root, const bool *chosen, int pairs,
                           struct value_map *map)
{
    graphi_value *input = mem_zalloc_array((size_t)pairs * 2 + s->terms.count + 1, sizeof *input);
    if (!input)
        return fail_memory("sums", (size_t)pairs * 2 * sizeof *input);
    struct product_operands operands = {.input = input, .base = GRAPHI_NONE};
    graphi_value column = GRAPHI_NONE;
    bool trans_b = false;
    for (size_t t = 0; t < s->terms.count; t++) {
        if (!chosen[t])
            continue;
        const struct node *node = graph_node(s->graph, graph_value(s->graph, s->terms.data[t])->node);
        trans_b = trans_b_of(node);
        take_pairs(s, node, &column, &operands);
    }
    int32_t first = (int32_t)s->graph->nodes.count;
    graphi_value value = product_append(s->graph, &operands, s->weights, trans_b);
    value = as_result(s->graph, value, root->output);
    for (size_t t = 0; t < s->terms.count; t++)
        if (!chosen[t])
            value = graphi_op(s->graph, "add", 2, (graphi_value[]){value, s->terms.data[t]}, 0, NULL);
    mem_free(input);
    TRY(s->graph->status);
    adopt(s->graph, first, root);
    TRY(map_set(map, s->graph, root->output, value));
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

/* The first node that waits for one of the tree's inner ones; -1: a term stands behind it. */
static int32_t first_waiting(const struct summer *s)
{
    int32_t first = INT32_MAX;
    for (size_t i = 0; i < s->inner.count; i++)
        first = s->next[s->inner.data[i]] < first ? s->next[s->inner.data[i]] : first;
    for (size_t t = 0; t < s->terms.count; t++)
        if (graph_value(s->graph, s->terms.data[t])->node >= first)
            return -1;
    return first;
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
    int32_t waiting = first_waiting(s), last = -1;
    int trans_b = -1;
    for (size_t t = 0; t < s->terms.count && waiting >= 0; t++) {
        const struct node *node = product(s, s->terms.data[t], &root);
        int32_t term = graph_value(s->graph, s->terms.data[t])->node;
        if (!node || (trans_b >= 0 && trans_b_of(node) != trans_b) || pairs + pairs_of(node) > GEMM_MAX_PAIRS ||
            term >= waiting || s->next[term] <= last)
            continue;
        waiting = s->next[term] < waiting ? s->next[term] : waiting;
        last = term > last ? term : last;
        trans_b = trans_b_of(node);
        pairs += pairs_of(node);
        products++;
        chosen[t] = true;
    }
    graphi_status status = products > 1 ? build(s, &root, chosen, pairs, map) : GRAPHI_OK;
    mem_free(chosen);
    return status;
}

static void mark_kept(const graphi_graph *graph, bool *kept)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        for (int p = 0; is_weight_gradient(node) && p < product_pairs(node); p++)
            kept[product_right(node, p)] = true;
    }
}

static void mark_next(const graphi_graph *graph, int32_t *next)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        next[i] = INT32_MAX;
    for (int32_t i = (int32_t)graph->nodes.count - 1; i >= 0; i--)
        for (int a = 0; a < graph_node(graph, i)->afters; a++)
            next[graph_node(graph, i)->after[a]] = i;
}

static graphi_status sum_products(graphi_graph *graph, bool weights, bool columns)
{
    struct summer s = {.graph = graph, .weights = weights, .columns = columns};
    struct value_map map = {0};
    s.kept = mem_zalloc_array(graph->values.count + 1, sizeof *s.kept);
    s.next = mem_zalloc_array(graph->nodes.count + 1, sizeof *s.next);
    graphi_status status = s.kept && s.next ? GRAPHI_OK : fail_memory("sums", graph->values.count);
    if (status == GRAPHI_OK) {
        mark_kept(graph, s.kept);
        mark_next(graph, s.next);
        status = uses_open(graph, &s.uses);
    }
    /* Roots last to first, so that a tree is seen whole before its parts. */
    for (int32_t id = (int32_t)graph->nodes.count - 1; status == GRAPHI_OK && id >= 0; id--) {
        const struct node *node = graph_node(graph, id);
        bool root = node->kind && is_sum(node) && graph_value(graph, node->output)->assigns < 0;
        if (root && single_use(&s, node->output)) {
            const struct node *user = graph_node(graph, s.uses.list[s.uses.begin[node->output]]);
            root = !user->kind || !is_sum(user) || !same_type(graph, node->output, user->output) ||
                   user->backward != node->backward;
        }
        if (root)
            status = rewrite(&s, id, &map);
    }
    uses_close(&s.uses);
    mem_free(s.kept);
    mem_free(s.next);
    array_free(&s.terms);
    array_free(&s.inner);
    return map_end(&map, graph, status);
}

graphi_status pass_sums(graphi_graph *graph, const struct pass_options *options)
{
    return sum_products(graph, false, false);
}

graphi_status pass_reduce(graphi_graph *graph, const struct pass_options *options)
{
    return sum_products(graph, true, options->multiplicands != GRAPHI_BF16);
}
