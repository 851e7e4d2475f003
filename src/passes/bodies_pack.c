/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that products of vertex functions read are packed by nodes outside, once a step or once for all, never in the
 * loop over blocks (passes/pack.c does the same for products outside). A weight takes part whose readers in the region
 * are all products, as right operands. */
#include "passes/bodies.h"

#include "graph/op.h"
#include "ops/matmul.h"
#include "ops/vertices.h"
#include "passes/edit.h"

/* Vertices of a batch; with fewer, packing takes as long as it saves. */
enum { FEWEST_VERTICES = 128 };

static bool packs(const struct node *node)
{
    return is_product(node) && !product_packed(node) && !product_trans_a(node) && !product_trans_b(node);
}

/* Is input k of the product a right operand? */
static bool is_right(const struct node *node, int k)
{
    return k < 2 * product_pairs(node) && k % 2;
}

static bool all_packed(const struct node *node, const bool *packed)
{
    bool all = packs(node);
    for (int pair = 0; all && pair < product_pairs(node); pair++)
        all = packed[product_right(node, pair)];
    return all;
}

/* Leaves marked what all readers take packed; a product takes all of its right operands so, or none. */
static void find_packed(const graphi_graph *body, bool *packed)
{
    for (size_t i = 0; i < body->outputs.count; i++)
        packed[body->outputs.data[i].value] = false;
    for (bool again = true; again;) {
        again = false;
        for (size_t n = 0; n < body->nodes.count; n++) {
            const struct node *node = graph_node(body, (int32_t)n);
            const bool all = all_packed(node, packed);
            for (int k = 0; k < node->inputs; k++)
                if (packed[node->input[k]] && (!all || !is_right(node, k))) {
                    packed[node->input[k]] = false;
                    again = true;
                }
        }
    }
}

/* The packed form of an argument of the node; of a transpose, where it comes from. */
static graphi_value pack(graphi_graph *graph, int32_t id, graphi_value weight, graphi_dtype dtype)
{
    const int32_t producer = graph_value(graph, weight)->node, first = (int32_t)graph->nodes.count;
    const bool trans = producer >= 0 && node_is(graph_node(graph, producer), IS_TRANSPOSE);
    const graphi_value source = trans ? graph_node(graph, producer)->input[0] : weight;
    const graphi_attribute attributes[] = {int_attribute("trans", trans), int_attribute("dtype", dtype)};
    struct node like = *graph_node(graph, id);
    like.scope = graph_value(graph, source)->name ? graph_value(graph, source)->name : like.scope;
    const graphi_value form = graphi_op(graph, "pack", 1, &source, 2, attributes);
    if (form != GRAPHI_NONE)
        adopt(graph, first, &like);
    return form;
}

/* Attributes are borrowed from the graph that was cloned: a product that changes gets its own. */
static graphi_status mark_products(graphi_graph *body, const bool *packed)
{
    for (size_t n = 0; n < body->nodes.count; n++) {
        struct node *node = &body->nodes.data[n];
        if (!all_packed(node, packed))
            continue;
        graphi_attribute *own = arena_copy(&body->arena, node->attribute, sizeof *own * (size_t)node->attributes);
        if (!own)
            return fail_memory("pack", sizeof *own * (size_t)node->attributes);
        own[PRODUCT_PACKED].i = 1;
        node->attribute = own;
    }
    return GRAPHI_OK;
}

/* inputs, packed: room for all values of the region. */
static graphi_status pack_function(graphi_graph *graph, int32_t id, int r, const struct vertices_node *n,
                                   graphi_dtype dtype, int32_t *inputs, bool *packed)
{
    const struct vertices_function *f = &n->function[r];
    graphi_graph *body = graph_node(graph, id)->region[r];
    vertices_body_inputs(body, inputs);
    const int64_t first = 1 + f->rows + (n->backward ? n->states : f->gathers);
    for (int64_t i = 0; i < f->weights; i++) {
        const struct value_type *type = &graph_value(body, inputs[first + i])->type;
        packed[inputs[first + i]] = type->rank == 2 && type->dtype == GRAPHI_F32 && type->symbol < 0;
    }
    find_packed(body, packed);
    TRY(mark_products(body, packed));
    for (int64_t i = 0; i < f->weights; i++) {
        if (!packed[inputs[first + i]])
            continue;
        const int at = f->input + (int)(f->rows + i);
        const graphi_value form = pack(graph, id, graph_node(graph, id)->input[at], dtype);
        TRY(graph->status);
        graph->nodes.data[id].input[at] = form;
        body->values.data[inputs[first + i]].type = graph_value(graph, form)->type;
    }
    return GRAPHI_OK;
}

graphi_status bodies_pack(graphi_graph *graph, int32_t id, graphi_dtype dtype)
{
    struct vertices_node n;
    TRY(vertices_node_of("pack", graph_node(graph, id), &n));
    graphi_status status = GRAPHI_OK;
    for (int r = 0; r < n.functions && n.bounds.vertices >= FEWEST_VERTICES && status == GRAPHI_OK; r++) {
        const size_t values = n.function[r].body->values.count + 1;
        int32_t *inputs = mem_zalloc_array(values, sizeof *inputs);
        bool *packed = mem_zalloc_array(values, sizeof *packed);
        status = inputs && packed ? pack_function(graph, id, r, &n, dtype, inputs, packed)
                                  : fail_memory("pack", values * sizeof *inputs);
        mem_free(inputs);
        mem_free(packed);
    }
    return status;
}
