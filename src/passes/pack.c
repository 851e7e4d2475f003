/* SPDX-License-Identifier: Apache-2.0 */
/* Packing as nodes: the weights that products read as right operand are brought into the kernel's order by `pack`
 * nodes, one for each (weight, transposition), shared by all products. A weight that does not change is then packed
 * once for all runs (OP_PACK); one that is updated, once a step, outside every time loop. Updated weights that meet
 * fewer rows than packing pays for stay as they are. Weights that pass `merge` put side by side are packed side by
 * side, without being concatenated first. Convolutions: pack_conv.c. */
#include "passes/passes.h"
#include "passes/successor.h"

#include "graph/op.h"
#include "kernels/pack.h"
#include "ops/matmul.h"

#include <string.h>

/* Rows that all products with an updated weight must have together; below, packing costs as much as it saves. */
enum { FEWEST_ROWS = 16 };

struct packer {
    graphi_graph *graph;
    int64_t *rows;    /* value * 2 + transposed: rows of all products that read it so */
    graphi_value *packed;
    int64_t dtype;
};

static bool is_source(const graphi_graph *graph, int32_t value)
{
    const struct value *b = graph_value(graph, value);
    return (b->kind == VALUE_PARAMETER || follows_from_kept(graph, value)) && b->type.rank == 2 &&
           b->type.dtype == GRAPHI_F32;
}

/* The concatenation of source matrices, whole panels of columns of the operand each, that gives right operand `value`;
 * NULL: it is none. */
static const struct node *side_by_side(const graphi_graph *graph, int32_t value, bool trans)
{
    int32_t id = graph_value(graph, value)->node;
    const struct node *node = id < 0 ? NULL : graph_node(graph, id);
    if (!node || !node_is(node, IS_CONCAT) || graph_value(graph, value)->type.rank != 2 ||
        attr_int(node, "axis") != !trans)
        return NULL;
    for (int i = 0; i < node->inputs; i++) {
        const struct value *part = graph_value(graph, node->input[i]);
        if (!is_source(graph, node->input[i]) || !type_equal(&part->type, &graph_value(graph, node->input[0])->type) ||
            part->type.dims[!trans] % PANEL_MAX)
            return NULL;
    }
    return node;
}

/* Every right operand of the product is a source matrix, or several side by side. */
static bool packable(const graphi_graph *graph, const struct node *node)
{
    if (!is_product(node) || product_packed(node) || product_trans_a(node))
        return false;
    for (int p = 0; p < product_pairs(node); p++) {
        int32_t b = product_right(node, p);
        if (!is_source(graph, b) && !side_by_side(graph, b, product_trans_b(node)))
            return false;
    }
    return true;
}

static size_t form(const struct node *node, int pair)
{
    return (size_t)product_right(node, pair) * 2 + product_trans_b(node);
}

static void count_rows(const struct packer *p, const struct node *node)
{
    const struct value_type *a = &graph_value(p->graph, product_left(node, 0))->type;
    for (int pair = 0; pair < product_pairs(node); pair++)
        p->rows[form(node, pair)] += type_count(a) / a->dims[a->rank - 1];
}

static bool worthwhile(const struct packer *p, const struct node *node)
{
    for (int pair = 0; pair < product_pairs(node); pair++) {
        int32_t b = product_right(node, pair);
        const struct node *parts = side_by_side(p->graph, b, product_trans_b(node));
        if (graph_value(p->graph, parts ? parts->input[0] : b)->assigned && p->rows[form(node, pair)] < FEWEST_ROWS)
            return false;
    }
    return true;
}

static graphi_value packed_form(struct packer *p, const struct node *node, int pair)
{
    size_t at = form(node, pair);
    if (p->packed[at] != GRAPHI_NONE)
        return p->packed[at];
    graphi_attribute attributes[] = {
        {.name = "trans", .type = GRAPHI_INT, .i = product_trans_b(node)},
        {.name = "dtype", .type = GRAPHI_INT, .i = p->dtype},
    };
    const graphi_value right = product_right(node, pair);
    const struct node *parts = side_by_side(p->graph, right, product_trans_b(node));
    const graphi_value *source = parts ? parts->input : &right;
    int sources = parts ? parts->inputs : 1;
    const struct value *weight = graph_value(p->graph, source[0]);
    struct node like = *node;
    like.scope = weight->name ? weight->name : node->scope;
    int32_t id = (int32_t)p->graph->nodes.count;
    p->packed[at] = graphi_op(p->graph, "pack", sources, source, 2, attributes);
    adopt(p->graph, id, &like);
    return p->packed[at];
}

static graphi_status rewrite(struct packer *p, int32_t id, struct value_map *map)
{
    struct successor s;
    TRY(successor_begin(p->graph, id, 0, &s));
    struct product_operands operands = {.input = s.input};
    for (int pair = 0; pair < product_pairs(&s.node); pair++)
        product_pair(&operands, product_left(&s.node, pair), packed_form(p, &s.node, pair));
    s.attribute[PRODUCT_PACKED].i = 1;
    s.attribute[PRODUCT_TRANS_B].i = 0;
    return successor_place(p->graph, &s, map);
}

graphi_status pass_pack(graphi_graph *graph, const struct pass_options *options)
{
    size_t values = graph->values.count, nodes = graph->nodes.count;
    struct packer p = {.graph = graph, .dtype = options->multiplicands};
    struct value_map map = {0};
    p.rows = mem_zalloc_array(values * 2 + 1, sizeof *p.rows);
    p.packed = mem_zalloc_array(values * 2 + 1, sizeof *p.packed);
    graphi_status status = p.rows && p.packed ? GRAPHI_OK : fail_memory("pack", values * 2 * sizeof *p.rows);
    if (status == GRAPHI_OK)
        memset(p.packed, 0xff, (values * 2 + 1) * sizeof *p.packed);
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++)
        if (packable(graph, graph_node(graph, (int32_t)i)))
            count_rows(&p, graph_node(graph, (int32_t)i));
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++)
        if (packable(graph, graph_node(graph, (int32_t)i)) && worthwhile(&p, graph_node(graph, (int32_t)i)))
            status = rewrite(&p, (int32_t)i, &map);
    mem_free(p.rows);
    mem_free(p.packed);
    status = map_end(&map, graph, status);
    return status == GRAPHI_OK ? pack_convolutions(graph, options) : status;
}
