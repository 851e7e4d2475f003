/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of vertex functions: results that nobody reads are dropped, and what is left gets the passes that any graph
 * gets, so that products take their element-wise work on tiles and chains are one program (cavs.txt 3, kernel fusion).
 * Passes that weigh rows, cores or weights of a whole graph say nothing about blocks of rows, and packed weights would
 * be packed in the loop: these are left out. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "base/text.h"
#include "graph/op.h"
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

static graphi_status rewrite(const struct uses *uses, const struct node *node, const struct pass_options *options,
                             const char *disable)
{
    struct pass_options inner = *options;
    inner.disable = disable;
    inner.cores = 1;
    for (int r = 0; r < node->regions; r++) {
        drop_unread(uses, node, node->region[r]);
        node->region[r]->rewritten = true;
        TRY(passes_run(node->region[r], &inner));
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
    for (size_t i = 0; !status && i < graph->nodes.count; i++)
        if (node_is(graph_node(graph, (int32_t)i), IS_VERTICES))
            status = rewrite(&uses, graph_node(graph, (int32_t)i), options, disable.data);
    uses_close(&uses);
    text_free(&disable);
    return status;
}
