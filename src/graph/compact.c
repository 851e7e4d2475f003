/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction: drops what passes killed, sorts nodes topologically by data and `after` edges, renumbers nodes and
 * values. Among nodes that are ready the one with the smallest wished place goes first (a binary heap), so an untouched
 * graph keeps its order and repeated runs agree. */
#include "graph/graph.h"

#include "graph/op.h"

#include <string.h>

struct sorter {
    graphi_graph *graph;
    int32_t *waiting;            /* node: edges still open */
    int32_t *begin, *list;       /* followers of each node, CSR */
    int32_t *heap, heaped;
    int32_t *sorted, done;       /* node ids in their new order */
    int32_t *place;              /* node: new id, -1 killed */
};

static bool before(const graphi_graph *graph, int32_t a, int32_t b)
{
    int32_t x = graph_node(graph, a)->order, y = graph_node(graph, b)->order;
    return x != y ? x < y : a < b;
}

static void heap_push(struct sorter *s, int32_t node)
{
    int32_t i = s->heaped++;
    for (; i > 0 && before(s->graph, node, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = node;
}

static int32_t heap_pop(struct sorter *s)
{
    int32_t top = s->heap[0], last = s->heap[--s->heaped], i = 0;
    for (int32_t child; (child = 2 * i + 1) < s->heaped; i = child) {
        if (child + 1 < s->heaped && before(s->graph, s->heap[child + 1], s->heap[child]))
            child++;
        if (!before(s->graph, s->heap[child], last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

/* Edges to killed nodes go to whoever took over, or away; of doubled ones the first stays. named[n]: the last node,
 * plus one, that has an edge from n; all 0 at first. */
static void resolve_afters(graphi_graph *graph, int32_t *named)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        struct node *node = &graph->nodes.data[i];
        int kept = 0;
        for (int a = 0; a < node->afters; a++) {
            int32_t first = node->after[a];
            while (first >= 0 && !graph_node(graph, first)->kind)
                first = graph_node(graph, first)->successor;
            if (first < 0 || first == (int32_t)i || named[first] == (int32_t)i + 1)
                continue;
            named[first] = (int32_t)i + 1;
            node->after[kept++] = first;
        }
        /* graph_after relies on room at powers of two, which a shorter list still has. */
        node->afters = kept;
    }
}

/* Calls visit(first, then) for every edge between live nodes. */
static graphi_status each_edge(struct sorter *s, void (*visit)(struct sorter *, int32_t, int32_t))
{
    const graphi_graph *graph = s->graph;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        for (int k = 0; node->kind && k < node->inputs; k++) {
            int32_t producer = graph_value(graph, node->input[k])->node;
            if (producer < 0)
                continue;
            if (!graph_node(graph, producer)->kind) {
                char text[160];
                node_text(graph, (int32_t)i, text, sizeof text);
                return fail(GRAPHI_INVALID, text, "found input %d from a removed node, expected a live one", k);
            }
            visit(s, producer, (int32_t)i);
        }
        for (int a = 0; node->kind && a < node->afters; a++)
            visit(s, node->after[a], (int32_t)i);
    }
    return GRAPHI_OK;
}

static void count_edge(struct sorter *s, int32_t first, int32_t then)
{
    s->waiting[then]++;
    s->begin[first + 2]++;
}

static void store_edge(struct sorter *s, int32_t first, int32_t then) { s->list[s->begin[first + 1]++] = then; }

/* The update that a cycle goes through, of those that are left; without one, the first of them. */
static graphi_status fail_cycle(const struct sorter *s)
{
    const graphi_graph *graph = s->graph;
    const int32_t nodes = (int32_t)graph->nodes.count;
    int32_t first = -1, update = -1;
    char text[160];
    for (int32_t i = nodes - 1; i >= 0; i--)
        if (graph_node(graph, i)->kind && s->place[i] < 0) {
            first = i;
            update = graph_value(graph, graph_node(graph, i)->output)->assigns >= 0 ? i : update;
        }
    node_text(graph, update >= 0 ? update : first, text, sizeof text);
    if (update < 0)
        return fail(GRAPHI_INVALID, text, "found a cycle through it, expected an order");
    return fail(GRAPHI_INVALID, text,
                "found that what reads the old content of '%s', or a view of it, needs the new content, expected the "
                "other order, or that it reads a copy (graphi_identity)",
                graph_value(graph, graph_value(graph, graph_node(graph, update)->output)->assigns)->name);
}

static graphi_status sort_nodes(struct sorter *s)
{
    graphi_graph *graph = s->graph;
    int32_t nodes = (int32_t)graph->nodes.count, live = 0;
    TRY(each_edge(s, count_edge));
    for (int32_t i = 2; i < nodes + 2; i++)
        s->begin[i] += s->begin[i - 1];
    s->list = mem_zalloc_array((size_t)s->begin[nodes + 1] + 1, sizeof *s->list);
    if (!s->list)
        return fail_memory("compact", sizeof *s->list * (size_t)s->begin[nodes + 1]);
    TRY(each_edge(s, store_edge));
    for (int32_t i = 0; i < nodes; i++) {
        s->place[i] = -1;
        if (!graph_node(graph, i)->kind)
            continue;
        live++;
        if (s->waiting[i] == 0)
            heap_push(s, i);
    }
    while (s->heaped) {
        int32_t node = heap_pop(s);
        s->place[node] = s->done;
        s->sorted[s->done++] = node;
        for (int32_t e = s->begin[node]; e < s->begin[node + 1]; e++)
            if (--s->waiting[s->list[e]] == 0)
                heap_push(s, s->list[e]);
    }
    return s->done == live ? GRAPHI_OK : fail_cycle(s);
}

/* New ids: sources by old id, then results in node order. map[old] or -1. */
static int32_t number_values(const struct sorter *s, int32_t *map)
{
    const graphi_graph *graph = s->graph;
    size_t values = graph->values.count;
    for (size_t v = 0; v < values; v++) {
        enum value_kind kind = graph_value(graph, (int32_t)v)->kind;
        map[v] = kind == VALUE_INPUT || kind == VALUE_PARAMETER ? 0 : -1;
    }
    for (int32_t i = 0; i < s->done; i++)
        for (int k = 0; k < graph_node(graph, s->sorted[i])->inputs; k++)
            map[graph_node(graph, s->sorted[i])->input[k]] = 0;
    for (size_t i = 0; i < graph->outputs.count; i++)
        map[graph->outputs.data[i].value] = 0;
    int32_t next = 0;
    for (size_t v = 0; v < values; v++)
        if (graph_value(graph, (int32_t)v)->kind != VALUE_RESULT && map[v] == 0)
            map[v] = next++;
        else
            map[v] = -1;
    for (int32_t i = 0; i < s->done; i++) {
        const struct node *node = graph_node(graph, s->sorted[i]);
        for (int k = 0; k < node->outputs; k++)
            map[node->output + k] = next++;
    }
    return next;
}

static void move_all(struct sorter *s, const int32_t *map, struct value *values, int32_t value_count,
                     struct node *nodes)
{
    graphi_graph *graph = s->graph;
    for (size_t v = 0; v < graph->values.count; v++) {
        if (map[v] < 0)
            continue;
        struct value value = graph->values.data[v];
        if (value.node >= 0)
            value.node = s->place[value.node];
        if (value.assigns >= 0)
            value.assigns = map[value.assigns];
        values[map[v]] = value;
    }
    for (int32_t i = 0; i < s->done; i++) {
        struct node node = graph->nodes.data[s->sorted[i]];
        for (int k = 0; k < node.inputs; k++)
            node.input[k] = map[node.input[k]];
        for (int a = 0; a < node.afters; a++)
            node.after[a] = s->place[node.after[a]];
        if (node.outputs)
            node.output = map[node.output];
        node.order = i;
        nodes[i] = node;
    }
    for (size_t i = 0; i < graph->outputs.count; i++)
        graph->outputs.data[i].value = map[graph->outputs.data[i].value];
    for (size_t i = 0; i < graph->inputs.count; i++)
        graph->inputs.data[i] = map[graph->inputs.data[i]];
    for (size_t i = 0; i < graph->parameters.count; i++)
        graph->parameters.data[i] = map[graph->parameters.data[i]];
    if (s->done) /* a graph of inputs alone has no array */
        memcpy(graph->nodes.data, nodes, sizeof *nodes * (size_t)s->done);
    if (value_count)
        memcpy(graph->values.data, values, sizeof *values * (size_t)value_count);
    graph->nodes.count = (size_t)s->done;
    graph->values.count = (size_t)value_count;
}

static graphi_status check_outputs(const graphi_graph *graph)
{
    for (size_t i = 0; i < graph->outputs.count; i++) {
        int32_t producer = graph_value(graph, graph->outputs.data[i].value)->node;
        if (producer >= 0 && !graph_node(graph, producer)->kind)
            return fail(GRAPHI_INVALID, "compact", "found output '%s' of a removed node, expected a live one",
                        graph->outputs.data[i].name);
    }
    return GRAPHI_OK;
}

static size_t sorter_room(size_t nodes) { return nodes * 5 + 2; }

/* numbers: sorter_room() of them, all 0. */
static struct sorter sorter_of(graphi_graph *graph, int32_t *numbers)
{
    const size_t nodes = graph->nodes.count;
    return (struct sorter){.graph = graph,
                           .waiting = numbers,
                           .heap = numbers + nodes,
                           .sorted = numbers + nodes * 2,
                           .place = numbers + nodes * 3,
                           .begin = numbers + nodes * 4};
}

graphi_status graph_sorted(graphi_graph *graph, int32_t *sorted)
{
    const size_t room = sorter_room(graph->nodes.count);
    int32_t *numbers = mem_zalloc_array(room, sizeof *numbers);
    if (!numbers)
        return fail_memory("sorted", sizeof *numbers * room);
    struct sorter s = sorter_of(graph, numbers);
    s.sorted = sorted;
    graphi_status status = sort_nodes(&s);
    mem_free(s.list);
    mem_free(numbers);
    return status;
}

graphi_status graph_compact(graphi_graph *graph)
{
    size_t nodes = graph->nodes.count, values = graph->values.count;
    const size_t room = sorter_room(nodes);
    int32_t *numbers = mem_zalloc_array(room + values, sizeof *numbers);
    struct value *new_values = mem_zalloc_array(values + 1, sizeof *new_values);
    struct node *new_nodes = mem_zalloc_array(nodes + 1, sizeof *new_nodes);
    struct sorter s = {.graph = graph};
    graphi_status status = GRAPHI_OK;
    if (!numbers || !new_values || !new_nodes)
        status = fail_memory("compact", sizeof *new_nodes * nodes);
    if (status == GRAPHI_OK) {
        s = sorter_of(graph, numbers);
        resolve_afters(graph, s.place);
        status = check_outputs(graph);
    }
    if (status == GRAPHI_OK)
        status = sort_nodes(&s);
    if (status == GRAPHI_OK) {
        int32_t *to = numbers + room;
        int32_t count = number_values(&s, to);
        move_all(&s, to, new_values, count, new_nodes);
        graph_forget_names(graph);
        array_fit(&graph->values);
        array_fit(&graph->nodes);
    }
    mem_free(s.list);
    mem_free(numbers);
    mem_free(new_values);
    mem_free(new_nodes);
    return status;
}
