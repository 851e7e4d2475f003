/* SPDX-License-Identifier: Apache-2.0 */
/* Where every value lies. Most results get a buffer of their own in the arena; five things save bytes and copies:
 *   - an assignment's result is its parameter's buffer, and the value assigned, unless an output, is written there by
 *     its producer already;
 *   - inputs of a concatenation lie inside its output when their producers can write and all their readers can read
 *     there;
 *   - views are their input with other strides;
 *   - an in-place kernel takes over an input's bytes when every other task on them precedes it;
 *   - an optional output that nobody reads has no bytes.
 * What follows from constants and from parameters that the plan does not change is prepared outside of the tasks.
 * All or nothing: a concatenation that cannot place every input copies them all. Whoever refuses a strided argument
 * when its kernel is bound gets a dense one in the next round (layout.dense). Compile time only. */
#include "base/status.h"
#include "engine/compile/layout.h"
#include "graph/op.h"

#include <string.h>

static struct array_desc dense_desc(const struct value_type *type)
{
    struct array_desc desc = array_dense(type->dtype, type->rank, type->dims);
    desc.bounded = type->symbol >= 0;
    return desc;
}

/* Optional outputs of a node that nobody reads. */
static uint64_t absent(const struct layout *l, const struct node *node)
{
    uint64_t bits = node->kind->optional;
    for (int i = 0; i < node->outputs && i < 64 && bits >> i; i++) {
        int32_t v = node->output + i;
        if (l->users_begin[v] < l->users_begin[v + 1] || l->output[v])
            bits &= ~(UINT64_C(1) << i);
    }
    return bits;
}

void bind_call_of(const struct layout *layout, int32_t id, struct array_desc *in, struct array_desc *out, char *where,
                  size_t size, struct bind_call *call)
{
    const struct compiled *compiled = layout->compiled;
    const struct node *node = graph_node(compiled->graph, id);
    for (int i = 0; i < node->inputs; i++) {
        const struct place *place = &compiled->place[node->input[i]];
        in[i] = place->buffer >= 0 ? place->desc : dense_desc(&graph_value(compiled->graph, node->input[i])->type);
    }
    for (int i = 0; i < node->outputs; i++) {
        const struct place *place = &compiled->place[node->output + i];
        out[i] = place->buffer >= 0 ? place->desc : dense_desc(&graph_value(compiled->graph, node->output + i)->type);
    }
    const struct value_type *type = node->outputs ? &graph_value(compiled->graph, node->output)->type : NULL;
    const int64_t bound = type && type->symbol >= 0 ? compiled->graph->symbols.data[type->symbol].bound : 0;
    node_text(compiled->graph, id, where, size);
    *call = (struct bind_call){.where = where,
                               .node = node,
                               .in = in,
                               .out = out,
                               .isa = (int)compiled->isa,
                               .multiplicands = compiled->options.precision,
                               .conv_error = compiled->conv_error,
                               .key = node->key,
                               .sample_rows = bound ? type->dims[0] / bound : 1,
                               .streaming = compiled->options.streaming,
                               .threads = compiled->machine->cores + compiled->machine->siblings,
                               .cores = compiled->machine->cores,
                               .absent = absent(layout, node)};
}

static graphi_status new_buffer(struct layout *l, const struct buffer *buffer, int32_t *id)
{
    struct compiled *c = l->compiled;
    if (!array_push(&c->buffers, *buffer) || !array_push(&l->lying, ((struct lying){-1, -1, -1})))
        return fail_memory("layout", sizeof *buffer);
    *id = (int32_t)c->buffers.count - 1;
    return GRAPHI_OK;
}

static void put(struct layout *l, int32_t value, int32_t buffer, int64_t offset, const struct array_desc *desc)
{
    struct compiled *c = l->compiled;
    c->place[value] = (struct place){.buffer = buffer, .offset = offset, .desc = *desc};
    struct lying *lying = &l->lying.data[buffer];
    int32_t readers = l->users_begin[value + 1];
    l->next[value] = lying->first;
    lying->first = value;
    if (readers > l->users_begin[value] && l->users[readers - 1] > lying->last_reader)
        lying->last_reader = l->users[readers - 1];
    if (l->output[value])
        c->buffers.data[buffer].kept = true;
}

static graphi_status own_buffer(struct layout *l, int32_t value, enum buffer_kind kind, int32_t source)
{
    const struct value_type *type = &graph_value(l->compiled->graph, value)->type;
    struct buffer buffer = {.kind = kind, .bytes = type_bytes(type), .source = source};
    struct array_desc desc = dense_desc(type);
    int32_t id = -1;
    TRY(new_buffer(l, &buffer, &id));
    put(l, value, id, 0, &desc);
    return GRAPHI_OK;
}

static graphi_status place_sources(struct layout *l)
{
    const struct compiled *c = l->compiled;
    int32_t parameters = 0;
    for (int32_t v = 0; v < (int32_t)c->graph->values.count; v++)
        switch (graph_value(c->graph, v)->kind) {
        case VALUE_INPUT: TRY(own_buffer(l, v, BUFFER_INPUT, v)); break;
        case VALUE_PARAMETER: TRY(own_buffer(l, v, BUFFER_PARAMETER, parameters++)); break;
        case VALUE_CONSTANT: TRY(own_buffer(l, v, BUFFER_CONSTANT, v)); break;
        case VALUE_RESULT: break;
        }
    return GRAPHI_OK;
}

/* --- assignments --- */

/* May the writer of a parameter read its bytes while it replaces them? One that updates them may, as input 0 alone. */
static bool works_in(const struct node *writer, int32_t parameter)
{
    if (!(writer->kind->flags & OP_UPDATES))
        return writer->kind->flags & OP_INPLACE;
    bool alone = writer->input[0] == parameter;
    for (int i = 1; i < writer->inputs; i++)
        alone = alone && writer->input[i] != parameter;
    return alone;
}

/* Does some reader of `value`, or of a view of it, come after `writer` in the graph, or is it the writer without being
 * able to work in place? */
static bool read_after(const struct layout *l, int32_t value, int32_t writer, int32_t assignment)
{
    const graphi_graph *graph = l->compiled->graph;
    const bool inplace = works_in(graph_node(graph, writer), value);
    struct readers readers = graph_readers(graph, l->users_begin, l->users, value);
    for (int32_t user; (user = graph_next_reader(&readers)) >= 0;)
        if (user != assignment && (user == writer ? !inplace : ancestors_has(l->ancestors, user, writer)))
            return true;
    return false;
}

/* assign(parameter, x): may x's producer write into the parameter? */
static bool elidable(const struct layout *l, int32_t id)
{
    const struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    if (l->no_elision || !node_is(node, IS_ASSIGN))
        return false;
    int32_t x = node->input[1], producer = graph_value(c->graph, x)->node;
    if (producer < 0 || c->place[x].buffer >= 0 || l->dense[x])
        return false;
    const struct node *from = graph_node(c->graph, producer);
    return !(from->kind->flags & (OP_VIEW | OP_PARTS | OP_PACK)) && !read_after(l, node->input[0], producer, id) &&
           !l->output[x]; /* of the last execution: the parameter may be set before it is read */
}

static void place_assignments(struct layout *l)
{
    struct compiled *c = l->compiled;
    for (int32_t n = 0; n < (int32_t)c->graph->nodes.count; n++) {
        const struct node *node = graph_node(c->graph, n);
        for (int i = 0; i < node->outputs; i++) {
            int32_t assigns = graph_value(c->graph, node->output + i)->assigns;
            if (assigns < 0)
                continue;
            struct place target = c->place[assigns];
            c->parameters.data[c->buffers.data[target.buffer].source].assigned = true;
            put(l, node->output + i, target.buffer, 0, &target.desc);
            if (elidable(l, n)) {
                l->role[n] = ROLE_NONE;
                put(l, node->input[1], target.buffer, 0, &target.desc);
            }
        }
    }
}

/* --- concatenations --- */

enum { NOBODY = -1, SEVERAL = -2 };

/* For all values at once: many concatenations may ask about one that many nodes read. */
static void find_refusing(struct layout *l)
{
    const graphi_graph *graph = l->compiled->graph;
    for (size_t v = 0; v < graph->values.count; v++)
        l->refuses[v] = NOBODY;
    for (int32_t n = 0; n < (int32_t)graph->nodes.count; n++) {
        const struct node *node = graph_node(graph, n);
        for (int i = 0; i < node->inputs && !(node->kind->flags & OP_STRIDED_IN); i++) {
            int32_t *refuses = &l->refuses[node->input[i]];
            *refuses = *refuses == NOBODY || *refuses == n ? n : SEVERAL;
        }
    }
}

static bool readers_take(const struct layout *l, int32_t value, int32_t except)
{
    return l->refuses[value] == NOBODY || l->refuses[value] == except;
}

/* Does the node have a part twice? */
static bool repeats(const struct layout *l, int32_t id)
{
    const struct node *node = graph_node(l->compiled->graph, id);
    bool twice = false;
    for (int i = 0; i < node->inputs; i++) {
        twice |= l->part_of[node->input[i]] == id;
        l->part_of[node->input[i]] = id;
    }
    for (int i = 0; i < node->inputs; i++) /* it may be asked again, in another round */
        l->part_of[node->input[i]] = -1;
    return twice;
}

static bool part_fits(const struct layout *l, int32_t id, int input, const struct array_desc *part)
{
    const struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    int32_t value = node->input[input], producer = graph_value(c->graph, value)->node;
    if (producer < 0 || c->place[value].buffer >= 0)
        return false;
    const struct node *from = graph_node(c->graph, producer);
    if (from->kind->flags & (OP_VIEW | OP_PACK))
        return false;
    if (array_is_dense(part))
        return true;
    if (l->dense[value] || l->output[value])
        return false;
    return (from->kind->flags & (OP_STRIDED_OUT | OP_PARTS)) && readers_take(l, value, id);
}

/* Readers of a concatenation that is no task wait for the producers of all parts, also of those in parts that are such
 * concatenations: so many edges at most, and some more for each node before, so that a chain of 10,000 concatenations
 * whose every link is read does not have a square of them. */
enum { MOST_WAITS = 1 << 20, MOST_WAITS_A_NODE = 64 };

/* Its readers and those behind views, but one concatenation that reads it: that may be no task, as a value is a part of
 * one place at most. If it is one, no other place has these parts, so that an edge a node at most is not counted. */
static int64_t count_waiting(const struct layout *l, int32_t value)
{
    const graphi_graph *graph = l->compiled->graph;
    struct readers readers = graph_readers(graph, l->users_begin, l->users, value);
    int64_t count = 0;
    bool part = false;
    while (graph_next_reader(&readers) >= 0)
        count++;
    for (int32_t u = l->users_begin[value]; u < l->users_begin[value + 1] && !part; u++)
        part = graph_node(graph, l->users[u])->kind->flags & OP_PARTS;
    return count - part;
}

/* Which concatenations are copies, because too many would wait. */
static graphi_status find_copied(struct layout *l)
{
    const graphi_graph *graph = l->compiled->graph;
    int32_t *writers = mem_alloc(sizeof *writers * (graph->values.count + 1)); /* of a value, at most */
    int64_t waits = 0;
    if (!writers)
        return fail_memory("layout", sizeof *writers * graph->values.count);
    for (size_t v = 0; v < graph->values.count; v++)
        writers[v] = 1;
    for (int32_t n = 0; n < (int32_t)graph->nodes.count; n++) {
        const struct node *node = graph_node(graph, n);
        int64_t all = 0;
        if (!(node->kind->flags & OP_PARTS))
            continue;
        for (int i = 0; i < node->inputs; i++)
            all = least(all + writers[node->input[i]], INT32_MAX);
        int64_t more = all * count_waiting(l, node->output);
        l->copied[n] = waits + more > MOST_WAITS + (int64_t)MOST_WAITS_A_NODE * n;
        if (l->copied[n])
            continue;
        waits += more;
        writers[node->output] = (int32_t)all;
    }
    mem_free(writers);
    return GRAPHI_OK;
}

static graphi_status place_parts_of(struct layout *l, int32_t id, struct array_desc *in, struct array_desc *out,
                                    struct array_desc *parts, int64_t *offsets)
{
    struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    struct bind_call call;
    char where[160];
    if (node->afters || node->derived || l->copied[id] || repeats(l, id))
        return GRAPHI_OK;
    bind_call_of(l, id, in, out, where, sizeof where, &call);
    int64_t end = 0;
    for (int i = 0; i < node->inputs; i++) {
        parts[i] = out[0];
        offsets[i] = end;
        if (!node->kind->part(&call, i, &parts[i], &end))
            return GRAPHI_OK;
        parts[i].bounded = in[i].bounded;
        if (!part_fits(l, id, i, &parts[i]))
            return GRAPHI_OK;
    }
    if (c->place[node->output].buffer < 0)
        TRY(own_buffer(l, node->output, BUFFER_ARENA, -1));
    struct place whole = c->place[node->output];
    for (int i = 0; i < node->inputs; i++)
        put(l, node->input[i], whole.buffer, whole.offset + offsets[i] * (int64_t)graphi_dtype_size(parts[i].dtype),
            &parts[i]);
    l->role[id] = ROLE_NONE;
    return GRAPHI_OK;
}

/* --- results --- */

static bool assigned_buffer(const struct compiled *c, int32_t buffer)
{
    const struct buffer *b = &c->buffers.data[buffer];
    return b->kind == BUFFER_PARAMETER && c->parameters.data[b->source].assigned;
}

/* Does some reader of `value` write into `buffer`? */
static bool reader_writes(const struct layout *l, int32_t value, int32_t buffer)
{
    const struct compiled *c = l->compiled;
    for (int32_t u = l->users_begin[value]; u < l->users_begin[value + 1]; u++) {
        const struct node *node = graph_node(c->graph, l->users[u]);
        for (int i = 0; i < node->outputs; i++)
            if (c->place[node->output + i].buffer == buffer)
                return true;
    }
    return false;
}

static bool place_view(struct layout *l, int32_t id, struct array_desc *in, struct array_desc *out)
{
    struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    if (!(node->kind->flags & OP_VIEW) || node->outputs != 1 || node->afters)
        return false;
    struct bind_call call;
    char where[160];
    bind_call_of(l, id, in, out, where, sizeof where, &call);
    struct array_desc view = out[0];
    int64_t offset = 0;
    struct place base = c->place[node->input[0]];
    if (!node->kind->view(&call, &view, &offset))
        return false;
    bool is_output = l->output[node->output];
    const enum buffer_kind kind = c->buffers.data[base.buffer].kind;
    if (is_output && kind != BUFFER_ARENA && kind != BUFFER_CONSTANT)
        return false; /* an output is of the last execution: these may be set again before it is read */
    if (assigned_buffer(c, base.buffer) && reader_writes(l, node->output, base.buffer))
        return false;
    if (!array_is_dense(&view) && (l->dense[node->output] || is_output || !readers_take(l, node->output, -1)))
        return false;
    put(l, node->output, base.buffer, base.offset + offset * (int64_t)graphi_dtype_size(view.dtype), &view);
    if (!(node->kind->flags & OP_EFFECT)) /* else it has something to do, though not with the bytes */
        l->role[id] = ROLE_NONE;
    return true;
}

static bool feeds(const graphi_graph *graph, int32_t producer, int32_t id)
{
    const struct node *node = graph_node(graph, id);
    for (int i = 0; i < node->inputs; i++)
        if (graph_value(graph, node->input[i])->node == producer)
            return true;
    return false;
}

/* Do all tasks on the buffer but `id` precede it? Those on what lay there before a node took the buffer over precede
 * that node: they were asked about then. */
static bool others_precede(const struct layout *l, int32_t buffer, int32_t id)
{
    const struct compiled *c = l->compiled;
    const struct lying *lying = &l->lying.data[buffer];
    int32_t producer = id;
    for (int32_t v = lying->first; v >= 0 && producer != lying->overwritten; v = l->next[v]) {
        for (int32_t u = l->users_begin[v]; u < l->users_begin[v + 1]; u++)
            if (l->users[u] != id && !ancestors_has(l->ancestors, id, l->users[u]))
                return false;
        producer = graph_value(c->graph, v)->node;
        if (producer == id || (!ancestors_has(l->ancestors, id, producer) && !feeds(c->graph, producer, id)))
            return false;
    }
    return true;
}

/* Does the node read the place's buffer in another way too, a slice say? Its bytes would change under it. */
static bool reads_otherwise(const struct compiled *c, const struct node *node, const struct place *place)
{
    for (int i = 0; i < node->inputs; i++) {
        const struct place *other = &c->place[node->input[i]];
        if (other->buffer == place->buffer &&
            (other->offset != place->offset || array_count(&other->desc) != array_count(&place->desc)))
            return true;
    }
    return false;
}

static bool place_inplace(struct layout *l, int32_t id, int output)
{
    struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    if (!(node->kind->flags & OP_INPLACE))
        return false;
    struct array_desc desc = dense_desc(&graph_value(c->graph, node->output + output)->type);
    int64_t bytes = type_bytes(&graph_value(c->graph, node->output + output)->type);
    for (int i = 0; i < node->inputs; i++) {
        const struct place *place = &c->place[node->input[i]];
        const struct buffer *buffer = &c->buffers.data[place->buffer];
        if (buffer->kind != BUFFER_ARENA || buffer->kept || buffer->bytes != bytes || place->offset ||
            place->desc.dtype != desc.dtype || place->desc.bounded != desc.bounded || !array_is_dense(&place->desc) ||
            array_count(&place->desc) != array_count(&desc))
            continue;
        struct lying *lying = &l->lying.data[place->buffer];
        if (lying->overwritten == id || lying->last_reader > id || !others_precede(l, place->buffer, id) ||
            reads_otherwise(c, node, place))
            continue;
        lying->overwritten = id;
        put(l, node->output + output, place->buffer, 0, &desc);
        return true;
    }
    return false;
}

static bool stays(const struct compiled *c, int32_t value)
{
    if (c->place[value].buffer < 0)
        return false;
    const struct buffer *buffer = &c->buffers.data[c->place[value].buffer];
    return buffer->kind == BUFFER_CONSTANT || buffer->kind == BUFFER_PREPARED ||
           (buffer->kind == BUFFER_PARAMETER && !c->parameters.data[buffer->source].assigned);
}

/* Is the node made outside of the tasks? Its inputs are placed. */
static bool preparable(const struct layout *l, const struct node *node)
{
    if (!(node->kind->flags & OP_PACK) && !node->derived)
        return false;
    for (int i = 0; i < node->outputs; i++)
        if (l->output[node->output + i] || l->compiled->place[node->output + i].buffer >= 0)
            return false;
    for (int i = 0; i < node->inputs; i++)
        if (!stays(l->compiled, node->input[i]))
            return false;
    return node->inputs > 0;
}

static graphi_status place_results(struct layout *l, int32_t id, struct array_desc *in, struct array_desc *out)
{
    struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    if (preparable(l, node)) {
        if (place_view(l, id, in, out))
            return GRAPHI_OK;
        l->role[id] = ROLE_PREPARED;
        for (int i = 0; i < node->outputs; i++)
            TRY(own_buffer(l, node->output + i, BUFFER_PREPARED, -1));
        return GRAPHI_OK;
    }
    const uint64_t unread = absent(l, node);
    for (int i = 0; i < node->outputs; i++) {
        if (c->place[node->output + i].buffer >= 0)
            continue;
        bool none = i < 64 && unread >> i & 1;
        if (none || (!place_view(l, id, in, out) && !place_inplace(l, id, i)))
            TRY(own_buffer(l, node->output + i, BUFFER_ARENA, -1));
        if (none)
            c->buffers.data[c->place[node->output + i].buffer].bytes = 0;
    }
    return GRAPHI_OK;
}

/* --- all of it --- */

static graphi_status layout_begin(struct layout *l)
{
    struct compiled *c = l->compiled;
    size_t values = c->graph->values.count, nodes = c->graph->nodes.count;
    c->buffers.count = l->lying.count = 0;
    if (!l->role) {
        l->role = mem_alloc(nodes + 1);
        l->dense = mem_zalloc_array(values + 1, sizeof *l->dense);
        l->output = graph_mark_outputs(c->graph);
        l->refuses = mem_alloc(sizeof *l->refuses * (values + 1));
        l->part_of = mem_alloc(sizeof *l->part_of * (values + 1));
        l->next = mem_alloc(sizeof *l->next * (values + 1));
        l->copied = mem_zalloc(nodes + 1);
        c->place = mem_alloc(sizeof *c->place * (values + 1));
        if (!l->role || !l->dense || !l->output || !l->refuses || !l->part_of || !l->next || !l->copied ||
            !c->place)
            return fail_memory("layout", values * sizeof *c->place);
        TRY(graph_users(c->graph, &l->users_begin, &l->users));
        memset(l->part_of, 0xff, sizeof *l->part_of * (values + 1));
        find_refusing(l);
        TRY(find_copied(l));
    }
    memset(l->role, ROLE_TASK, nodes);
    for (size_t v = 0; v < values; v++)
        c->place[v] = (struct place){.buffer = -1};
    for (size_t p = 0; p < c->parameters.count; p++)
        c->parameters.data[p].assigned = false;
    return GRAPHI_OK;
}

/* Most inputs and outputs a node has: what the descriptor lists must hold. */
size_t graph_widest(const graphi_graph *graph)
{
    size_t most = 1;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const struct node *node = &graph->nodes.data[n];
        size_t wide = (size_t)(node->inputs > node->outputs ? node->inputs : node->outputs);
        most = wide > most ? wide : most;
    }
    return most;
}

graphi_status layout_places(struct layout *l)
{
    struct compiled *c = l->compiled;
    TRY(layout_begin(l));
    size_t widest = graph_widest(c->graph);
    struct array_desc *descs = mem_zalloc_array(widest * 3, sizeof *descs);
    int64_t *offsets = mem_zalloc_array(widest, sizeof *offsets);
    graphi_status status = descs && offsets ? place_sources(l) : fail_memory("layout", widest * 3 * sizeof *descs);
    if (!status)
        place_assignments(l);
    for (int32_t n = (int32_t)c->graph->nodes.count - 1; !status && n >= 0; n--)
        if (graph_node(c->graph, n)->kind->flags & OP_PARTS)
            status = place_parts_of(l, n, descs, descs + widest, descs + 2 * widest, offsets);
    for (int32_t n = 0; !status && n < (int32_t)c->graph->nodes.count; n++)
        if (l->role[n] == ROLE_TASK)
            status = place_results(l, n, descs, descs + widest);
    mem_free(descs);
    mem_free(offsets);
    return status;
}

void layout_free(struct layout *l)
{
    mem_free(l->role);
    mem_free(l->dense);
    mem_free(l->output);
    mem_free(l->refuses);
    mem_free(l->part_of);
    mem_free(l->next);
    mem_free(l->copied);
    mem_free(l->users_begin);
    mem_free(l->users);
    array_free(&l->lying);
    if (l->ancestors)
        ancestors_free(l->ancestors);
    mem_free(l->ancestors);
}
