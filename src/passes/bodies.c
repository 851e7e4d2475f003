/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of vertex functions: results that nobody reads are dropped, and what is left gets the passes that any graph
 * gets, so that products take their element-wise work on tiles and chains are one program (cavs.txt 3, kernel fusion).
 * Passes that weigh rows, cores or weights of a whole graph say nothing about blocks of rows, and packed weights would
 * be packed in the loop: these are left out. */
#include "passes/bodies.h"
#include "passes/edit.h"
#include "passes/passes.h"

#include "base/text.h"
#include "graph/op.h"
#include "kernels/program.h"
#include "ops/matmul.h"
#include "ops/vertices.h"

static const char left_out[] = "merge,batch,stages,reuse,recompute,pack,round,bands,tables,reduce,ready";

/* Keeps the outputs of a region that the node's readers, or the graph, want. */
static void drop_unread(const struct uses *uses, const struct node *node, graphi_graph *body)
{
    size_t kept = 0;
    for (size_t i = 0; i < body->outputs.count; i++) {
        const int64_t k = vertices_output(body->outputs.data[i].name);
        const int32_t v = node->output + (int32_t)k;
        if (!(node->kind->optional >> least(k, 63) & 1) || k > 63 || uses_count(uses, v) || uses->output[v])
            body->outputs.data[kept++] = body->outputs.data[i];
    }
    body->outputs.count = kept;
    graph_forget_names(body);
}

/* --- sums that go on --- */

/* There before the product: it comes from outside of the loop, or is a row of it for each edge. */
static bool is_before(const graphi_graph *body, int32_t v)
{
    const struct value *value = graph_value(body, v);
    return value->kind == VALUE_INPUT || (value->node >= 0 && node_is(graph_node(body, value->node), IS_VERTEX_SPREAD));
}

/* x + h U, of a result that nobody else reads: the sums of the product begin with x, as those of x W continued by h U
 * do where both are in one place (deepcpu.txt 5.2.1). */
static graphi_status begin_sum(graphi_graph *body, const struct uses *uses, int32_t id, struct value_map *map)
{
    const struct node node = *graph_node(body, id);
    for (int k = 0; k < 2; k++) {
        const int32_t product = node.input[k], x = node.input[1 - k], from = graph_value(body, product)->node;
        if (from < 0 || !is_before(body, x) || !same_type(body, x, node.output) ||
            !same_type(body, product, node.output) || !uses_once(uses, body, product))
            continue;
        const struct node host = *graph_node(body, from);
        if (!host.kind || !is_plain_product(&host) || product_trans_a(&host) || product_pairs(&host) != 1)
            continue;
        graphi_value input[3];
        struct product_operands of = {.input = input, .base = x};
        product_pair(&of, product_left(&host, 0), product_right(&host, 0));
        const int32_t first = (int32_t)body->nodes.count;
        const graphi_value sum = product_append(body, &of, false, product_trans_b(&host));
        TRY(body->status);
        adopt(body, first, &node);
        TRY(map_set(map, body, node.output, sum));
        graph_kill(body, id);
        return GRAPHI_OK;
    }
    return GRAPHI_OK;
}

static graphi_status begin_sums(graphi_graph *body)
{
    struct uses uses = {0};
    struct value_map map = {0};
    const size_t nodes = body->nodes.count;
    graphi_status status = uses_open(body, &uses);
    for (size_t i = 0; !status && i < nodes; i++)
        if (node_computes(graph_node(body, (int32_t)i), PROGRAM_ADD))
            status = begin_sum(body, &uses, (int32_t)i, &map);
    uses_close(&uses);
    return map_end(&map, body, status);
}

static graphi_status rewrite(const struct uses *uses, const struct node *node, const struct pass_options *options,
                             const char *disable)
{
    struct pass_options inner = *options;
    inner.disable = disable;
    inner.cores = 1;
    for (int r = 0; r < node->regions; r++) {
        drop_unread(uses, node, node->region[r]);
        node->region[r]->rewritten = true;
        TRY(begin_sums(node->region[r]));
        TRY(options->all(node->region[r], &inner));
    }
    return GRAPHI_OK;
}

graphi_status pass_bodies(graphi_graph *graph, const struct pass_options *options)
{
    struct uses uses = {0};
    struct text disable = {0};
    bool any = false;
    for (size_t i = 0; i < graph->nodes.count; i++)
        any |= node_is(graph_node(graph, (int32_t)i), IS_VERTICES);
    if (!any)
        return GRAPHI_OK;
    text_add(&disable, "%s,%s", options->disable ? options->disable : "none", left_out);
    graphi_status status = disable.broken ? fail_memory("bodies", sizeof left_out) : uses_open(graph, &uses);
    const size_t nodes = graph->nodes.count;
    for (size_t i = 0; !status && i < nodes; i++)
        if (node_is(graph_node(graph, (int32_t)i), IS_VERTICES))
            status = rewrite(&uses, graph_node(graph, (int32_t)i), options, disable.data);
    for (size_t i = 0; !status && i < nodes && options->packs; i++)
        if (node_is(graph_node(graph, (int32_t)i), IS_VERTICES))
            status = bodies_pack(graph, (int32_t)i, options->multiplicands);
    uses_close(&uses);
    text_free(&disable);
    return status ? status : graph_compact(graph);
}
