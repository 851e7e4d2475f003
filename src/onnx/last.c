/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes of values (last.h): for each graph a walk over its nodes and their bodies. One thread builds a model. */
#include "onnx/last.h"

#include "base/memory.h"

struct walk {
    struct onnx_model *model;
    struct model_graph **owner; /* of each value: whose node or input it is */
    int *last;                  /* node of the owner that reads it last, or makes it; -1: none; -2: an output */
};

static void own(struct walk *w, struct model_graph *graph)
{
    for (size_t i = 0; i < graph->inputs.count; i++)
        w->owner[graph->inputs.data[i]] = graph;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct model_node *node = &graph->nodes.data[i];
        for (int k = 0; k < node->outs; k++)
            if (node->out[k] >= 0) {
                w->owner[node->out[k]] = graph;
                w->last[node->out[k]] = (int)i;
            }
        for (int k = 0; k < 2; k++)
            if (node->body[k])
                own(w, node->body[k]);
    }
}

static void read(struct walk *w, const struct model_graph *graph, int value, int node)
{
    if (value >= 0 && w->owner[value] == graph)
        w->last[value] = node;
}

/* All that a body reads of `graph`. */
static void read_body(struct walk *w, const struct model_graph *graph, const struct model_graph *body, int node)
{
    for (size_t i = 0; i < body->nodes.count; i++) {
        const struct model_node *n = &body->nodes.data[i];
        for (int k = 0; k < n->ins; k++)
            read(w, graph, n->in[k], node);
        for (int k = 0; k < 2; k++)
            if (n->body[k])
                read_body(w, graph, n->body[k], node);
    }
    for (size_t i = 0; i < body->outputs.count; i++)
        read(w, graph, body->outputs.data[i], node);
}

static void mark(struct walk *w, struct model_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct model_node *n = &graph->nodes.data[i];
        for (int k = 0; k < n->ins; k++)
            read(w, graph, n->in[k], (int)i);
        for (int k = 0; k < 2; k++)
            if (n->body[k])
                read_body(w, graph, n->body[k], (int)i);
    }
    for (size_t i = 0; i < graph->outputs.count; i++)
        read(w, graph, graph->outputs.data[i], -2);
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int k = 0; k < 2; k++)
            if (graph->nodes.data[i].body[k])
                mark(w, graph->nodes.data[i].body[k]);
}

/* Values by their last node: counted, then put in place. */
static graphi_status lists(struct walk *w)
{
    const size_t count = w->model->values.count;
    for (size_t v = 0; v < count; v++)
        if (w->owner[v] && w->last[v] >= 0)
            w->owner[v]->nodes.data[w->last[v]].last_count++;
    for (size_t v = 0; v < count; v++) {
        if (!w->owner[v] || w->last[v] < 0)
            continue;
        struct model_node *node = &w->owner[v]->nodes.data[w->last[v]];
        if (!node->last) {
            node->last = arena_alloc(&w->model->arena, (size_t)node->last_count * sizeof *node->last);
            if (!node->last)
                return fail_memory("model", (size_t)node->last_count * sizeof *node->last);
            node->last_count = 0;
        }
        node->last[node->last_count++] = (int)v;
    }
    return GRAPHI_OK;
}

graphi_status model_find_last(struct onnx_model *model)
{
    const size_t count = model->values.count + 1;
    struct walk w = {
        .model = model, .owner = mem_zalloc_array(count, sizeof *w.owner), .last = mem_alloc(count * sizeof *w.last)};
    graphi_status status = w.owner && w.last ? GRAPHI_OK : fail_memory("model", count * sizeof *w.last);
    for (size_t i = 0; i < count && status == GRAPHI_OK; i++)
        w.last[i] = -1;
    if (status == GRAPHI_OK) {
        own(&w, model->graph);
        mark(&w, model->graph);
        status = lists(&w);
    }
    mem_free(w.owner);
    mem_free(w.last);
    return status;
}
