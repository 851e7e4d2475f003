/* SPDX-License-Identifier: Apache-2.0 */
/* From placed and bound nodes to tasks: who waits for whom, the order, the arena, and who is whose largest input.
 * Nodes without a kernel of their own (views, placed concatenations, assignments that their producer performs) vanish:
 * their readers wait for whoever writes the bytes. A parameter's new content waits for every reader of the old one,
 * through views too. Compile time only, one thread. Usual size: 500 to 5,000 tasks. */
#include "base/hash.h"
#include "base/index.h"
#include "base/number.h"
#include "base/status.h"
#include "engine/compile/tasks.h"
#include "engine/compile/memory.h"
#include "engine/cost/cost.h"
#include "graph/op.h"

#include <string.h>

enum { PARAMS_ALIGN = 32 }; /* of what a kernel may keep in its parameters */

struct builder {
    struct compiled *compiled;
    struct layout *layout;
    edge_array edges;    /* between nodes, later between tasks */
    int32_t *task_of;    /* node: its task, -1 */
    int32_t *origin;     /* value: whose bytes it is, through views and assignments that vanished; else itself */
    ARRAY(int32_t) asked; /* values whose writers are still to be found */
    bool broken;         /* out of memory */
};

static void add(struct builder *b, int32_t from, int32_t to)
{
    if (!b->broken && !array_push(&b->edges, ((struct edge){from, to})))
        b->broken = true;
}

static void ask(struct builder *b, int32_t value)
{
    if (!b->broken && !array_push(&b->asked, value))
        b->broken = true;
}

/* One sweep, as what a node reads comes before it: walks up a chain of views would take the square of its length. */
static void find_origins(struct builder *b)
{
    const graphi_graph *graph = b->compiled->graph;
    for (int32_t v = 0; v < (int32_t)graph->values.count; v++)
        b->origin[v] = v;
    for (int32_t n = 0; n < (int32_t)graph->nodes.count; n++) {
        const struct node *node = graph_node(graph, n);
        if (b->layout->role[n] != ROLE_NONE || node->kind->flags & OP_PARTS)
            continue;
        int from = node->kind->flags & OP_VIEW ? 0 : 1; /* assign(parameter, value) */
        b->origin[node->output] = b->origin[node->input[from]];
    }
}

/* The node with a task that makes `value`; -1: there is none, or questions for the parts of a placed concatenation. */
static int32_t writer_of(struct builder *b, int32_t value)
{
    const graphi_graph *graph = b->compiled->graph;
    int32_t producer = graph_value(graph, b->origin[value])->node;
    if (producer < 0 || b->layout->role[producer] == ROLE_PREPARED)
        return -1;
    if (b->layout->role[producer] == ROLE_TASK)
        return producer;
    const struct node *node = graph_node(graph, producer);
    for (int i = 0; i < node->inputs; i++)
        ask(b, node->input[i]);
    return -1;
}

/* Edges to `to` from every task that writes bytes of `value`. */
static void wait_for(struct builder *b, int32_t value, int32_t to)
{
    for (ask(b, value); b->asked.count;) {
        int32_t writer = writer_of(b, b->asked.data[--b->asked.count]);
        if (writer >= 0)
            add(b, writer, to);
    }
}

static void data_edges(struct builder *b)
{
    const graphi_graph *graph = b->compiled->graph;
    for (int32_t n = 0; n < (int32_t)graph->nodes.count; n++) {
        const struct node *node = graph_node(graph, n);
        if (b->layout->role[n] != ROLE_TASK)
            continue;
        for (int i = 0; i < node->inputs; i++)
            wait_for(b, node->input[i], n);
        for (int i = 0; i < node->afters; i++)
            if (graph_node(graph, node->after[i])->outputs)
                wait_for(b, graph_node(graph, node->after[i])->output, n);
    }
}

static void readers_before(struct builder *b, int32_t old, int32_t writer)
{
    for (int32_t u = b->layout->users_begin[old]; u < b->layout->users_begin[old + 1]; u++)
        if (b->layout->role[b->layout->users[u]] == ROLE_TASK)
            add(b, b->layout->users[u], writer);
}

/* graph_order_updates ordered nodes; who writes a parameter's bytes is known only now: the assignment, a node of that
 * order, or what makes its value in their place, which is none. */
static void update_edges(struct builder *b)
{
    const struct compiled *c = b->compiled;
    for (int32_t id = 0; id < (int32_t)c->buffers.count; id++) {
        const struct buffer *buffer = &c->buffers.data[id];
        if (buffer->kind != BUFFER_PARAMETER || !c->parameters.data[buffer->source].assigned)
            continue;
        for (int32_t v = b->layout->lying.data[id].first; v >= 0; v = b->layout->next[v]) {
            int32_t writer = graph_value(c->graph, v)->node;
            if (writer < 0 || b->layout->role[writer] != ROLE_TASK)
                continue;
            for (int32_t w = b->layout->lying.data[id].first; w >= 0; w = b->layout->next[w])
                if (graph_value(c->graph, b->origin[w])->kind == VALUE_PARAMETER) /* the old content */
                    readers_before(b, w, writer);
        }
    }
}

/* Numbers the tasks in a topological order of all edges and rewrites the edges in those numbers. */
static graphi_status number_tasks(struct builder *b, struct bound *bound)
{
    struct compiled *c = b->compiled;
    int nodes = (int)c->graph->nodes.count;
    int32_t *begin, *list, *order = mem_alloc(sizeof *order * ((size_t)nodes + 1));
    if (!order)
        return fail_memory("tasks", sizeof *order * (size_t)nodes);
    edges_sort(&b->edges);
    graphi_status status = edges_successors(&b->edges, nodes, &begin, &list);
    if (!status) {
        status = edges_order(nodes, begin, list, order);
        b->layout->cycle = status == GRAPHI_INVALID;
        mem_free(begin);
        mem_free(list);
    }
    if (!status) {
        c->task = mem_zalloc_array((size_t)nodes + 1, sizeof *c->task);
        if (!c->task)
            status = fail_memory("tasks", (size_t)nodes * sizeof *c->task);
    }
    for (int i = 0; !status && i < nodes; i++) {
        b->task_of[order[i]] = -1;
        if (b->layout->role[order[i]] != ROLE_TASK)
            continue;
        b->task_of[order[i]] = c->tasks;
        c->task[c->tasks++] = bound[order[i]];
        bound[order[i]] = (struct bound){0}; /* the kernel moved */
    }
    for (size_t e = 0; !status && e < b->edges.count; e++)
        b->edges.data[e] = (struct edge){b->task_of[b->edges.data[e].from], b->task_of[b->edges.data[e].to]};
    edges_sort(&b->edges);
    mem_free(order);
    return status;
}

/* --- messages --- */

static graphi_status find_messages(struct compiled *c)
{
    for (int32_t t = 0; t < c->tasks; t++) {
        const struct node *node = graph_node(c->graph, c->task[t].node);
        const bool sends = node_is(node, IS_SIGNAL_EVENT);
        if (!sends && !node_is(node, IS_WAIT_EVENT))
            continue;
        const struct plan_message message = {t, (int)attr_int(node, "event"), sends};
        if (!array_push(&c->messages, message))
            return fail_memory("messages", c->messages.count * sizeof message);
        c->waits_count += !sends;
    }
    return GRAPHI_OK;
}

/* An event has one sender and one receiver. */
static graphi_status check_messages(const struct compiled *c)
{
    for (size_t i = 0; i < c->messages.count; i++)
        for (size_t j = 0; j < i; j++)
            if (c->messages.data[i].number == c->messages.data[j].number &&
                c->messages.data[i].sends == c->messages.data[j].sends) {
                char where[160];
                node_text(c->graph, c->task[c->messages.data[i].task].node, where, sizeof where);
                return fail(GRAPHI_INVALID, where, "found event %d, which another operation %s too, expected one alone",
                            c->messages.data[i].number, c->messages.data[i].sends ? "signals" : "waits for");
            }
    return GRAPHI_OK;
}

static graphi_status list_messages(struct compiled *c)
{
    TRY(find_messages(c));
    TRY(check_messages(c));
    const size_t tasks = (size_t)c->tasks, count = c->messages.count;
    if (!count)
        return GRAPHI_OK;
    c->message_of = mem_alloc((2 * tasks + 2 * count) * sizeof *c->message_of);
    if (!c->message_of)
        return fail_memory("messages", 2 * tasks * sizeof *c->message_of);
    c->wait_of = c->message_of + tasks;
    c->waits = c->wait_of + tasks;
    c->wait_message = c->waits + count;
    memset(c->message_of, 0xff, 2 * tasks * sizeof *c->message_of); /* -1 */
    int waits = 0;
    for (size_t i = 0; i < count; i++) {
        const struct plan_message *message = &c->messages.data[i];
        c->message_of[message->task] = (int32_t)i;
        if (message->sends)
            continue;
        c->waits[waits] = message->task;
        c->wait_message[waits] = (int32_t)i;
        c->wait_of[message->task] = waits++;
    }
    return GRAPHI_OK;
}

/* --- memory --- */

struct memory_input {
    ARRAY(struct memory_value) value;
    ARRAY(int32_t) list;
    ARRAY(int32_t) buffer; /* of each value; -1 - task: that task's workspace */
};

static bool add_tasks(const struct builder *b, struct memory_input *in, int32_t id)
{
    const struct compiled *c = b->compiled;
    const struct layout *l = b->layout;
    struct memory_value value = {.bytes = c->buffers.data[id].bytes, .begin = (int32_t)in->list.count,
                                 .kept = c->buffers.data[id].kept};
    bool enough = true;
    for (int32_t v = l->lying.data[id].first; v >= 0; v = l->next[v]) {
        int32_t task = b->task_of[graph_value(c->graph, v)->node];
        if (task >= 0)
            enough = enough && array_push(&in->list, task);
    }
    value.producers = (int32_t)in->list.count - value.begin;
    for (int32_t v = l->lying.data[id].first; v >= 0; v = l->next[v])
        for (int32_t u = l->users_begin[v]; u < l->users_begin[v + 1]; u++)
            if (b->task_of[l->users[u]] >= 0)
                enough = enough && array_push(&in->list, b->task_of[l->users[u]]);
    value.readers = (int32_t)in->list.count - value.begin - value.producers;
    return enough && array_push(&in->value, value) && array_push(&in->buffer, id);
}

static bool add_workspace(const struct compiled *c, struct memory_input *in, int32_t task)
{
    struct memory_value value = {.bytes = (int64_t)c->task[task].kernel.workspace, .begin = (int32_t)in->list.count,
                                 .producers = 1};
    return array_push(&in->list, task) && array_push(&in->value, value) && array_push(&in->buffer, -1 - task);
}

static graphi_status gather(const struct builder *b, struct memory_input *in)
{
    struct compiled *c = b->compiled;
    bool enough = true;
    for (int32_t id = 0; id < (int32_t)c->buffers.count; id++)
        if (c->buffers.data[id].kind == BUFFER_ARENA)
            enough = enough && add_tasks(b, in, id);
    for (int32_t t = 0; t < c->tasks; t++) {
        int64_t bytes = (int64_t)c->task[t].kernel.workspace;
        c->task[t].workspace = -1;
        if (bytes)
            enough = enough && add_workspace(c, in, t);
        if (bytes > c->workspace_bytes)
            c->workspace_bytes = bytes;
    }
    return enough ? GRAPHI_OK : fail_memory("memory plan", in->list.count * sizeof(int32_t));
}

static void take_offsets(struct compiled *c, const struct memory_input *in, const struct memory_solution *solution)
{
    for (size_t v = 0; v < in->value.count; v++) {
        int32_t id = in->buffer.data[v];
        if (id >= 0)
            c->buffers.data[id].offset = solution->offset[v];
        else
            c->task[-1 - id].workspace = solution->offset[v];
    }
    c->arena_bytes = solution->bytes;
    c->live_maximum_bytes = solution->live_maximum;
    c->unordered_bytes = solution->unordered_bytes;
    c->ordering_edges = (int64_t)solution->edges.count;
}

static void place_inputs(struct compiled *c)
{
    c->input_bytes = 0;
    for (size_t id = 0; id < c->buffers.count; id++)
        if (c->buffers.data[id].kind == BUFFER_INPUT) {
            c->buffers.data[id].offset = c->input_bytes;
            c->input_bytes += whole_lines(c->buffers.data[id].bytes);
        }
}

/* Parameters, their packed forms and inputs. */
static int64_t bytes_beside_arena(const struct compiled *c)
{
    int64_t bytes = c->input_bytes + c->packed_bytes;
    for (size_t p = 0; p < c->parameters.count; p++)
        bytes += type_bytes(&graph_value(c->graph, c->parameters.data[p].value)->type);
    return bytes;
}

/* No edges that save bytes where there are messages: one from behind a message to a signal would hold that up, and may
 * so hold up the message's sender. */
static int64_t arena_target(const struct compiled *c)
{
    return c->messages.count ? INT64_MAX / 4 : c->options.arena_target;
}

static graphi_status plan_memory(struct builder *b)
{
    struct compiled *c = b->compiled;
    struct memory_input in = {0};
    int32_t *begin = NULL, *list = NULL;
    int64_t *ns = mem_alloc(sizeof *ns * ((size_t)c->tasks + 1));
    graphi_status status = ns ? gather(b, &in) : fail_memory("memory plan", sizeof *ns * (size_t)c->tasks);
    if (!status)
        status = edges_successors(&b->edges, c->tasks, &begin, &list);
    if (!status) {
        for (int32_t t = 0; t < c->tasks; t++)
            ns[t] = (int64_t)cost_estimate(c->machine, &c->task[t].kernel);
        graphi_machine_info about;
        graphi_machine_get_info(c->machine, &about);
        struct memory_problem problem = {.tasks = c->tasks, .edges_begin = begin, .edges = list, .ns = ns,
                                         .values = (int)in.value.count, .value = in.value.data, .list = in.list.data,
                                         .target = arena_target(c), .cores = about.cores,
                                         .beside = bytes_beside_arena(c)};
        struct memory_solution solution;
        status = memory_plan(&problem, &solution);
        if (!status) {
            take_offsets(c, &in, &solution);
            for (size_t e = 0; e < solution.edges.count; e++)
                add(b, solution.edges.data[e].from, solution.edges.data[e].to);
            edges_sort(&b->edges);
            memory_solution_free(&solution);
        }
    }
    mem_free(ns);
    mem_free(begin);
    mem_free(list);
    array_free(&in.value);
    array_free(&in.list);
    array_free(&in.buffer);
    return status;
}

/* --- results --- */

/* The task that wrote most of a value, of which a view is some and a concatenation all parts, and how much of it. */
static int64_t most_written(struct builder *b, int32_t value, int32_t *task)
{
    const graphi_graph *graph = b->compiled->graph;
    const int64_t all = type_bytes(&graph_value(graph, value)->type);
    int64_t most = 0;
    for (ask(b, value); b->asked.count;) {
        int32_t part = b->asked.data[--b->asked.count], writer = writer_of(b, part);
        int64_t bytes = least(all, type_bytes(&graph_value(graph, b->origin[part])->type));
        if (writer < 0 || bytes <= most)
            continue;
        most = bytes;
        *task = b->task_of[writer];
    }
    return most;
}

/* The task that wrote the largest input of each, for policies that care for caches. */
static void largest_inputs(struct builder *b)
{
    struct compiled *c = b->compiled;
    for (int32_t t = 0; t < c->tasks; t++) {
        const struct node *node = graph_node(c->graph, c->task[t].node);
        int64_t most = 0;
        c->largest_input_from[t] = -1;
        for (int i = 0; i < node->inputs; i++) {
            int32_t from = -1;
            int64_t bytes = most_written(b, node->input[i], &from);
            if (bytes <= most)
                continue;
            most = bytes;
            c->largest_input_from[t] = from;
        }
    }
}

/* Into how many pieces a task may be cut. */
static void most_pieces(struct compiled *c)
{
    for (int32_t t = 0; t < c->tasks; t++) {
        const struct kernel *kernel = &c->task[t].kernel;
        int most = 1;
        for (int phase = 0; phase < kernel->phases; phase++)
            most = kernel->shares[phase] > most ? kernel->shares[phase] : most;
        if (kernel->pieces && kernel->pieces < most)
            most = kernel->pieces;
        c->shares[t] = (uint8_t)(most < UINT8_MAX ? most : UINT8_MAX);
    }
}

static graphi_status finish(struct builder *b)
{
    struct compiled *c = b->compiled;
    size_t n = (size_t)c->tasks + 1;
    TRY(edges_successors(&b->edges, c->tasks, &c->edges_begin, &c->edges));
    c->pending = mem_zalloc_array(n, sizeof *c->pending);
    c->flags = mem_zalloc_array(n, sizeof *c->flags);
    c->scalability = mem_zalloc_array(n, sizeof *c->scalability);
    c->shares = mem_zalloc_array(n, sizeof *c->shares);
    c->kind = mem_zalloc_array(n, sizeof *c->kind);
    c->curve_of = mem_zalloc_array(n, sizeof *c->curve_of);
    c->largest_input_from = mem_zalloc_array(n, sizeof *c->largest_input_from);
    if (!c->pending || !c->flags || !c->scalability || !c->shares || !c->kind || !c->curve_of || !c->largest_input_from)
        return fail_memory("tasks", n * 16);
    for (size_t e = 0; e < b->edges.count; e++)
        c->pending[b->edges.data[e].to]++;
    largest_inputs(b);
    most_pieces(c);
    return b->broken ? fail_memory("tasks", b->asked.count * sizeof *b->asked.data) : GRAPHI_OK;
}

static size_t params_room(const struct kernel *kernel)
{
    return (kernel->params_bytes + PARAMS_ALIGN - 1) & ~(size_t)(PARAMS_ALIGN - 1);
}

/* The first task whose kernel has parameters of the same content, this one if there is none; -1: no memory. */
static int32_t first_like(const struct compiled *c, int32_t task, struct index *seen)
{
    const struct kernel *kernel = &c->task[task].kernel;
    const uint64_t hash = hash_u64(hash_wide(HASH_START, kernel->params, kernel->params_bytes), kernel->params_bytes);
    size_t at = 0;
    for (int32_t first; (first = index_next(seen, hash, &at)) >= 0;) {
        const struct kernel *other = &c->task[first].kernel;
        if (other->params_bytes == kernel->params_bytes &&
            memcmp(other->params, kernel->params, kernel->params_bytes) == 0)
            return first;
    }
    return index_add(seen, hash, task) ? task : -1;
}

/* Parameters of all kernels move into one block in the order of the tasks: allocated one by one while binding, each
 * would be a miss of its own in cache and translation when its task runs. Equal ones are kept once: the cells of an
 * unrolled network differ in their arguments only, and a fused program is 3 KB. */
static graphi_status gather_params(struct compiled *c)
{
    size_t bytes = 0, at = 0;
    struct index seen = {0};
    int32_t *like = mem_alloc(sizeof *like * ((size_t)c->tasks + 1));
    bool enough = like;
    for (int32_t t = 0; t < c->tasks && enough; t++) {
        like[t] = c->task[t].kernel.params ? first_like(c, t, &seen) : t;
        bytes += like[t] == t ? params_room(&c->task[t].kernel) : 0;
        enough = like[t] >= 0;
    }
    index_free(&seen);
    c->params = enough ? mem_zalloc(bytes) : NULL;
    for (int32_t t = 0; t < c->tasks && c->params; t++) {
        struct kernel *kernel = &c->task[t].kernel;
        void *own = kernel->params;
        if (!own)
            continue;
        kernel->params = like[t] == t ? c->params + at : c->task[like[t]].kernel.params;
        if (like[t] == t) {
            memcpy(kernel->params, own, kernel->params_bytes);
            at += params_room(kernel);
        }
        mem_free(own);
    }
    mem_free(like);
    return c->params ? GRAPHI_OK : fail_memory("tasks", bytes);
}

graphi_status plan_tasks(struct compiled *compiled, struct layout *layout, struct bound *bound)
{
    struct builder b = {.compiled = compiled, .layout = layout};
    b.task_of = mem_alloc(sizeof *b.task_of * (compiled->graph->nodes.count + 1));
    b.origin = mem_alloc(sizeof *b.origin * (compiled->graph->values.count + 1));
    b.broken = !b.task_of || !b.origin;
    if (!b.broken) {
        find_origins(&b);
        data_edges(&b);
        update_edges(&b);
    }
    graphi_status status = b.broken ? fail_memory("tasks", b.edges.count * sizeof(struct edge)) : GRAPHI_OK;
    if (!status)
        status = number_tasks(&b, bound);
    if (!status)
        status = list_messages(compiled);
    if (!status) {
        place_inputs(compiled);
        status = plan_memory(&b);
    }
    if (!status && b.broken)
        status = fail_memory("tasks", b.edges.count * sizeof(struct edge));
    if (!status)
        status = finish(&b);
    if (!status)
        status = gather_params(compiled);
    array_free(&b.edges);
    array_free(&b.asked);
    mem_free(b.task_of);
    mem_free(b.origin);
    return status;
}
