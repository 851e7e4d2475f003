/* SPDX-License-Identifier: Apache-2.0 */
/* See graph/sparse.h. The dense gradient of a table is a sum of `embedding_grad` nodes, one a lookup. Here their ids
 * and rows become one list (sparse_sum of ops/sparse.c), below each other in the order of the sum, and the update reads
 * and writes rows of the table and of what the optimizer keeps beside it. The dense nodes are then read by nobody, and
 * no plan has them. Usual size: 1,000 ids of a table of 100,000 rows, or 35 lookups of 20 ids of 10,000. */
#include "graph/sparse.h"

#include "base/memory.h"
#include "graph/op.h"

/* The i-th lookup gradient that makes up `gradient`, NULL past the last or where it is none. */
static const struct node *term_at(const graphi_graph *graph, graphi_value gradient, int i)
{
    const int32_t maker = graph_value(graph, gradient)->node;
    const struct node *node = maker < 0 ? NULL : graph_node(graph, maker);
    if (node && node_has(node, OP_ADDS)) {
        const int32_t part = i < node->inputs ? graph_value(graph, node->input[i])->node : -1;
        node = part < 0 ? NULL : graph_node(graph, part);
    } else if (i) {
        return NULL;
    }
    return node && node_is(node, IS_LOOKUP_GRADIENT) ? node : NULL;
}

static int terms_of(const graphi_graph *graph, graphi_value gradient)
{
    const int32_t maker = graph_value(graph, gradient)->node;
    return maker >= 0 && node_has(graph_node(graph, maker), OP_ADDS) ? graph_node(graph, maker)->inputs : 1;
}

/* As pass `tables` has it, which makes one sum of the dense ones. */
static bool alike(struct value_type a, const struct value_type *b)
{
    if (a.rank < 1 || a.rank != b->rank)
        return false;
    a.dims[0] = b->dims[0];
    return type_equal(&a, b);
}

struct sparse_ids sparse_ids(const graphi_graph *graph, const struct update_target *target)
{
    const int terms = terms_of(graph, target->gradient);
    struct sparse_ids ids = {.alike = true};
    const struct value_type *first = NULL;
    for (int i = 0; i < terms; i++) {
        const struct node *term = term_at(graph, target->gradient, i);
        if (!term)
            return (struct sparse_ids){0};
        const struct value_type *type = &graph_value(graph, term->input[0])->type;
        first = first ? first : type;
        ids.count += type_count(type);
        ids.alike = ids.alike && (terms == 1 || alike(*first, type));
        ids.bounded = ids.bounded || (terms > 1 && type->symbol >= 0);
    }
    ids.count = ids.bounded || ids.count > INT32_MAX ? 0 : ids.count;
    return ids;
}

/* Input `k` of a lookup gradient as one vector of ids, or one matrix with a row for each. */
static graphi_value flat(graphi_graph *graph, const struct node *term, int k)
{
    const struct value_type type = graph_value(graph, term->input[k])->type;
    const int64_t ids = type_count(&graph_value(graph, term->input[0])->type);
    const int64_t dims[] = {ids, k ? type.dims[type.rank - 1] : 0};
    const graphi_attribute shape = {.name = "shape", .type = GRAPHI_INTS, .ints = dims, .count = 1 + k};
    return type.rank == 1 + k ? term->input[k] : graphi_op(graph, "reshape", 1, &term->input[k], 1, &shape);
}

/* Input `k` of all terms, below each other. */
static graphi_value below(graphi_graph *graph, graphi_value gradient, int terms, int k)
{
    const graphi_attribute along = {.name = "axis", .type = GRAPHI_INT, .i = 0};
    graphi_value *part = mem_zalloc_array((size_t)terms, sizeof *part), all = GRAPHI_NONE;
    if (!part)
        return graph_broken(graph, fail_memory("minimize", sizeof *part * (size_t)terms));
    for (int i = 0; i < terms; i++) {
        const struct node term = *term_at(graph, gradient, i); /* a copy: valid while nodes are appended */
        part[i] = flat(graph, &term, k);
    }
    all = terms == 1 ? part[0] : graphi_op(graph, "concat", terms, part, 1, &along);
    mem_free(part);
    return all;
}

void sparse_gradient(graphi_graph *graph, struct update_target *target)
{
    const int terms = terms_of(graph, target->gradient);
    const graphi_attribute rows = {
        .name = "rows", .type = GRAPHI_INT, .i = graph_value(graph, target->parameter)->type.dims[0]};
    graph->scope = term_at(graph, target->gradient, 0)->scope;
    const graphi_value in[] = {below(graph, target->gradient, terms, 0), below(graph, target->gradient, terms, 1)};
    target->rows = graphi_op(graph, "sparse_sum", 2, in, 1, &rows);
    target->gradient = target->rows + 1;
}

graphi_value sparse_read(graphi_graph *graph, const struct update_target *target, graphi_value parameter)
{
    if (target->rows == GRAPHI_NONE)
        return parameter;
    return graphi_op(graph, "sparse_get", 2, (graphi_value[]){parameter, target->rows}, 0, NULL);
}

graphi_value sparse_written(graphi_graph *graph, const struct update_target *target, graphi_value parameter,
                            graphi_value value)
{
    if (target->rows == GRAPHI_NONE)
        return value;
    return graphi_op(graph, "sparse_set", 3, (graphi_value[]){parameter, target->rows, value}, 0, NULL);
}

graphi_value sparse_squares(graphi_graph *graph, const struct update_target *target)
{
    const graphi_attribute rows = {
        .name = "rows", .type = GRAPHI_INT, .i = graph_value(graph, target->parameter)->type.dims[0]};
    if (target->rows == GRAPHI_NONE)
        return graphi_op(graph, "reduce_sum_squares", 1, &target->gradient, 0, NULL);
    return graphi_op(graph, "sparse_squares", 2, (graphi_value[]){target->rows, target->gradient}, 1, &rows);
}
