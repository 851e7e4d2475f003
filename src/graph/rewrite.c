/* SPDX-License-Identifier: Apache-2.0 */
/* What passes do to a graph: clone, rewire, kill, compact. Between a rewiring and the next compaction the array order
 * need not be topological and killed nodes (kind NULL) are skipped; graph_check holds again afterwards. Everything is
 * linear in the graph, compaction with a logarithm. One thread at a time. Usual size: 20,000 nodes, 60,000 edges, a few
 * milliseconds. */
#include "graph/graph.h"

#include "graph/op.h"

#include <string.h>

static graphi_status clone_node(graphi_graph *copy, struct node *node)
{
    size_t bytes = sizeof *node->input * (size_t)node->inputs;
    size_t after_bytes = sizeof *node->after * (size_t)node->afters;
    int regions = node->regions;
    graphi_graph **region = node->region;
    node->regions = 0;
    node->input = arena_copy(&copy->arena, node->input, bytes);
    /* graph_after grows at powers of two: a copy must have the room that it assumes. */
    size_t room = 1;
    while (room < (size_t)node->afters)
        room *= 2;
    int32_t *after = arena_alloc(&copy->arena, sizeof *after * room);
    if (!node->input || !after)
        return fail_memory("clone", bytes + after_bytes);
    if (node->afters)
        memcpy(after, node->after, after_bytes);
    node->after = after;
    if (!regions)
        return GRAPHI_OK;
    node->region = arena_alloc(&copy->arena, sizeof *region * (size_t)regions);
    if (!node->region)
        return fail_memory("clone", sizeof *region * (size_t)regions);
    for (int r = 0; r < regions; r++) {
        TRY(graph_clone(region[r], &node->region[r]));
        node->regions = r + 1;
    }
    return GRAPHI_OK;
}

graphi_status graph_clone(const graphi_graph *graph, graphi_graph **out)
{
    TRY(graphi_graph_status(graph));
    graphi_graph *copy;
    TRY(graphi_graph_create(&copy));
    graphi_status status = GRAPHI_OK;
    if (!array_reserve(&copy->values, graph->values.count) || !array_reserve(&copy->nodes, graph->nodes.count) ||
        !array_reserve(&copy->symbols, graph->symbols.count) || !array_reserve(&copy->outputs, graph->outputs.count) ||
        !array_reserve(&copy->inputs, graph->inputs.count) ||
        !array_reserve(&copy->parameters, graph->parameters.count))
        status = fail_memory("clone", sizeof(struct value) * graph->values.count);
#define COPY(what)                                                                                                     \
    if (status == GRAPHI_OK && graph->what.count) {                                                                    \
        memcpy(copy->what.data, graph->what.data, sizeof *graph->what.data * graph->what.count);                       \
        copy->what.count = graph->what.count;                                                                          \
    }
    COPY(values)
    COPY(symbols)
    COPY(outputs)
    COPY(inputs)
    COPY(parameters)
#undef COPY
    for (size_t i = 0; status == GRAPHI_OK && i < graph->nodes.count; i++) {
        copy->nodes.data[i] = graph->nodes.data[i];
        status = clone_node(copy, &copy->nodes.data[i]);
        copy->nodes.count = i + 1;
    }
    if (status != GRAPHI_OK) {
        graphi_graph_destroy(copy);
        return status;
    }
    copy->backward = graph->backward;
    copy->depth = graph->depth;
    copy->vertex_function = graph->vertex_function;
    *out = copy;
    return GRAPHI_OK;
}

void graph_remap(graphi_graph *graph, const int32_t *map)
{
#define FOLLOW(v)                                                                                                      \
    while (map[v] != (v))                                                                                              \
        (v) = map[v];
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int k = 0; k < graph->nodes.data[i].inputs; k++)
            FOLLOW(graph->nodes.data[i].input[k])
    for (size_t i = 0; i < graph->outputs.count; i++)
        FOLLOW(graph->outputs.data[i].value)
#undef FOLLOW
}

void graph_kill(graphi_graph *graph, int32_t node)
{
    struct node *n = &graph->nodes.data[node];
    for (int r = 0; r < n->regions; r++) {
        n->region[r]->next = graph->retired;
        graph->retired = n->region[r];
    }
    n->regions = n->inputs = n->afters = 0;
    n->kind = NULL;
}

graphi_status graph_supersede(graphi_graph *graph, int32_t node, int32_t successor)
{
    for (int i = 0; i < graph_node(graph, node)->afters; i++)
        if (graph_node(graph, node)->after[i] != successor)
            TRY(graph_after(graph, graph_node(graph, node)->after[i], successor));
    if (graph_node(graph, node)->order < graph_node(graph, successor)->order)
        graph->nodes.data[successor].order = graph_node(graph, node)->order;
    graph_kill(graph, node);
    graph->nodes.data[node].successor = successor;
    return GRAPHI_OK;
}

graphi_status graph_users(const graphi_graph *graph, int32_t **begin, int32_t **list)
{
    size_t values = graph->values.count, uses = 0;
    for (size_t i = 0; i < graph->nodes.count; i++)
        uses += (size_t)graph->nodes.data[i].inputs;
    int32_t *first = mem_zalloc_array(values + 2, sizeof *first), *users = mem_zalloc_array(uses + 1, sizeof *users);
    if (!first || !users) {
        mem_free(first);
        mem_free(users);
        return fail_memory("users", sizeof *users * (uses + values));
    }
    /* Counted two places up, so that filling leaves each start where it belongs. */
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int k = 0; k < graph->nodes.data[i].inputs; k++)
            first[graph->nodes.data[i].input[k] + 2]++;
    for (size_t v = 2; v < values + 2; v++)
        first[v] += first[v - 1];
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int k = 0; k < graph->nodes.data[i].inputs; k++)
            users[first[graph->nodes.data[i].input[k] + 1]++] = (int32_t)i;
    *begin = first;
    *list = users;
    return GRAPHI_OK;
}

struct readers graph_readers(const graphi_graph *graph, const int32_t *begin, const int32_t *list, int32_t value)
{
    return (struct readers){
        .graph = graph, .begin = begin, .list = list, .of = value, .value = value, .next = begin[value]};
}

/* The place behind `reader` among the readers of the value at hand, which ascend. */
static int32_t behind(const struct readers *r, int32_t reader)
{
    int32_t low = r->begin[r->value], high = r->begin[r->value + 1];
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (r->list[middle] <= reader)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t graph_next_reader(struct readers *r)
{
    while (r->next == r->begin[r->value + 1]) { /* a view whose readers were all seen: what comes behind it */
        if (r->value == r->of)
            return -1;
        int32_t view = graph_value(r->graph, r->value)->node;
        r->value = graph_node(r->graph, view)->input[0];
        r->next = behind(r, view);
    }
    int32_t reader = r->list[r->next++];
    const struct node *node = graph_node(r->graph, reader);
    if (node->kind->flags & OP_VIEW && node->input[0] == r->value) {
        r->value = node->output;
        r->next = r->begin[r->value];
    }
    return reader;
}

bool *graph_mark_outputs(const graphi_graph *graph)
{
    bool *output = mem_zalloc_array(graph->values.count + 1, sizeof *output);
    for (size_t i = 0; output && i < graph->outputs.count; i++)
        output[graph->outputs.data[i].value] = true;
    return output;
}

int32_t graph_constant(graphi_graph *graph, const struct value_type *type, const void *data)
{
    return graphi_constant(graph, type->dtype, type->rank, type->dims, data);
}

static bool feeds(const graphi_graph *graph, int32_t producer, const struct node *node)
{
    for (int k = 0; k < node->inputs; k++)
        if (graph_value(graph, node->input[k])->node == producer)
            return true;
    return false;
}

/* Adds an edge to `writer` from every node that reads `value` or a view made from it, unless data flow shows it at
 * once. */
static graphi_status order_readers(graphi_graph *graph, const int32_t *begin, const int32_t *list, int32_t value,
                                   int32_t writer)
{
    struct readers readers = graph_readers(graph, begin, list, value);
    for (int32_t reader; (reader = graph_next_reader(&readers)) >= 0;)
        if (reader != writer && !feeds(graph, reader, graph_node(graph, writer)))
            TRY(graph_after(graph, reader, writer));
    return GRAPHI_OK;
}

graphi_status graph_order_updates(graphi_graph *graph)
{
    int32_t *begin, *list;
    TRY(graph_users(graph, &begin, &list));
    graphi_status status = GRAPHI_OK;
    for (size_t v = 0; status == GRAPHI_OK && v < graph->values.count; v++) {
        const struct value *value = graph_value(graph, (int32_t)v);
        if (value->assigns >= 0 && graph_node(graph, value->node)->kind)
            status = order_readers(graph, begin, list, value->assigns, value->node);
    }
    mem_free(begin);
    mem_free(list);
    return status;
}
