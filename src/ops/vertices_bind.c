/* SPDX-License-Identifier: Apache-2.0 */
/* Vertex functions to the units of the loop kernel: where every value of a region lies, and a kernel or a move for each
 * node, bound for the rows of one block. Values that somebody reads outside lie in the node's results, others in the
 * workspace, whose bytes are used again after the last reader. Views are their source with other strides; parts of a
 * concatenation are made in place where everybody takes rows with gaps. A kernel that refuses gaps gets dense rows in
 * another round. Compile time only. */
#include "ops/vertices.h"

#include <string.h>

struct place {
    bool there;
    struct vertices_array array;
    struct array_desc desc; /* of a block */
};

struct free_bytes {
    int64_t begin, bytes;
};

struct binder {
    const struct bind_call *call;
    struct vertices_node node;
    struct vertices_spec spec;
    ARRAY(struct vertices_unit) units;
    ARRAY(struct vertices_array) arrays;
    ARRAY(struct vertices_term) terms;
    ARRAY(struct kernel) kernels;
    ARRAY(unsigned char) data;
    ARRAY(struct free_bytes) unused;
    bool broken;
    int64_t work; /* bytes of the workspace so far */
    /* of the function at hand */
    int f;
    const graphi_graph *body;
    struct place *at;     /* per value */
    int32_t *last;        /* per value: the last node that reads it, nodes.count: also a copy at the end; -1: none */
    int32_t *home;        /* per value: the output where it lies; -1: none */
    bool *dense, *parted; /* per value: no gaps; a part of a concatenation */
    int32_t *inputs;
    int input_count;
    bool again;
};

/* --- places --- */

static int64_t block_rows(const struct binder *b, int32_t symbol)
{
    return symbol == BODY_EDGES ? frontier_block_edges(&b->node.bounds) : frontier_block_rows(&b->node.bounds);
}

static int64_t bound_rows(const struct binder *b, int32_t symbol)
{
    return symbol == BODY_EDGES ? b->node.bounds.edges : b->node.bounds.vertices;
}

static int64_t multiple_of(const struct binder *b, const struct value_type *type)
{
    return type->symbol < 0 ? 1 : type->dims[0] / bound_rows(b, type->symbol);
}

/* A value's array of one block, dense. */
static struct array_desc block_desc(const struct binder *b, const struct value_type *type)
{
    int64_t dims[GRAPHI_MAX_RANK];
    memcpy(dims, type->dims, sizeof dims);
    if (type->symbol >= 0)
        dims[0] = multiple_of(b, type) * block_rows(b, type->symbol);
    struct array_desc desc = array_dense(type->dtype, type->rank, dims);
    desc.bounded = type->symbol >= 0;
    return desc;
}

/* Bytes from the first to the last element of a row. */
static int64_t row_span(const struct array_desc *desc)
{
    int64_t last = 0;
    for (int i = 1; i < desc->rank; i++)
        last += (desc->dims[i] - 1) * desc->strides[i];
    return (last + 1) * (int64_t)graphi_dtype_size(desc->dtype);
}

/* `like` says where the whole lies; offset: bytes in its row. */
static struct place place_at(const struct binder *b, const struct value_type *type, const struct array_desc *desc,
                             struct vertices_array like, int64_t offset)
{
    const int64_t size = (int64_t)graphi_dtype_size(type->dtype);
    struct place p = {.there = true, .array = like, .desc = *desc};
    p.array.offset += offset;
    p.array.column += offset;
    p.array.multiple = (int32_t)multiple_of(b, type);
    p.array.row_bytes = desc->rank ? desc->strides[0] * size : size;
    p.array.used = row_span(desc);
    p.array.count = desc->rank ? desc->dims[0] : 1;
    return p;
}

static enum vertices_rows rows_kind(const struct value_type *type)
{
    return type->symbol < 0 ? VERTICES_FIXED : type->symbol == BODY_EDGES ? VERTICES_EDGES : VERTICES_ROWS;
}

/* First fit among freed bytes, else at the end. */
static int64_t take_work(struct binder *b, int64_t bytes)
{
    bytes = divide_up(bytes, 64) * 64;
    for (size_t i = 0; i < b->unused.count; i++) {
        struct free_bytes *u = &b->unused.data[i];
        if (u->bytes < bytes)
            continue;
        const int64_t begin = u->begin;
        u->begin += bytes;
        u->bytes -= bytes;
        return begin;
    }
    const int64_t begin = b->work;
    b->work += bytes;
    return begin;
}

/* A dense place of its own: in an output, or the workspace. */
static void place_own(struct binder *b, int32_t value)
{
    const struct value_type *type = &graph_value(b->body, value)->type;
    const struct array_desc desc = block_desc(b, type);
    struct vertices_array a = {.place = VERTICES_WORK, .rows = rows_kind(type)};
    if (b->home[value] >= 0) {
        a.place = VERTICES_OUT;
        a.index = b->home[value];
        a.rows = !b->node.backward && a.index < b->node.states ? VERTICES_SLOTS : a.rows;
    } else {
        a.bytes = divide_up(array_count(&desc) * (int64_t)graphi_dtype_size(desc.dtype), 64) * 64;
        a.begin = a.offset = take_work(b, a.bytes);
    }
    b->at[value] = place_at(b, type, &desc, a, 0);
}

static void place_input(struct binder *b, int32_t value, int argument)
{
    const struct value_type *type = &graph_value(b->body, value)->type;
    const struct array_desc desc = block_desc(b, type);
    const struct vertices_array a = {.place = VERTICES_IN, .rows = rows_kind(type), .index = argument};
    b->at[value] = place_at(b, type, &desc, a, 0);
}

static void place_constant(struct binder *b, int32_t value)
{
    const struct value *v = graph_value(b->body, value);
    const struct array_desc desc = block_desc(b, &v->type);
    const size_t bytes = (size_t)type_bytes(&v->type), begin = b->data.count, room = (bytes + 63) / 64 * 64;
    if (!array_reserve(&b->data, begin + room)) {
        b->broken = true;
        return;
    }
    memset(b->data.data + begin, 0, room);
    memcpy(b->data.data + begin, v->data, bytes);
    b->data.count += room;
    const struct vertices_array a = {.place = VERTICES_DATA, .rows = VERTICES_FIXED, .offset = (int64_t)begin};
    b->at[value] = place_at(b, &v->type, &desc, a, 0);
}

/* Bytes whose last reader was this node. */
static void release(struct binder *b, int32_t node)
{
    for (size_t v = 0; v < b->body->values.count; v++) {
        const struct vertices_array *a = &b->at[v].array;
        if (b->last[v] != node || !b->at[v].there || a->place != VERTICES_WORK || !a->bytes)
            continue;
        bool shared = false; /* with a view, or parts of a concatenation, that is read later */
        for (size_t w = 0; w < b->body->values.count; w++)
            shared |= b->at[w].there && b->at[w].array.place == VERTICES_WORK && b->at[w].array.bytes &&
                      b->at[w].array.begin == a->begin && (b->last[w] > node || w > v) && b->last[w] >= node;
        if (!shared)
            b->broken |= !array_push(&b->unused, ((struct free_bytes){a->begin, a->bytes}));
    }
}

/* --- units --- */

static struct vertices_unit *add_unit(struct binder *b, enum vertices_work work, int inputs, int outputs)
{
    const struct vertices_unit unit = {
        .work = work, .function = b->f, .array = (int32_t)b->arrays.count, .inputs = inputs, .outputs = outputs};
    if (!array_push(&b->units, unit)) {
        b->broken = true;
        return NULL;
    }
    return &b->units.data[b->units.count - 1];
}

static void add_array(struct binder *b, const struct vertices_array *array)
{
    b->broken |= !array_push(&b->arrays, *array);
}

/* A move of rows from one array to a value's. */
static void add_move(struct binder *b, enum vertices_work work, int64_t child, const struct vertices_array *from,
                     int32_t to)
{
    const struct value_type *type = &graph_value(b->body, to)->type;
    struct vertices_unit *unit = add_unit(b, work, 1, 1);
    if (!unit)
        return;
    unit->child = child;
    unit->columns = type_count(type) / type->dims[0];
    unit->edges = type->symbol == BODY_EDGES;
    add_array(b, from);
    add_array(b, &b->at[to].array);
}

static void bind_call_in(const struct binder *b, int32_t id, struct array_desc *descs, char *where, size_t size,
                         struct bind_call *out)
{
    const struct node *node = graph_node(b->body, id);
    node_text(b->body, id, where, size);
    for (int i = 0; i < node->inputs + node->outputs; i++) {
        const int32_t v = i < node->inputs ? node->input[i] : node->output + i - node->inputs;
        descs[i] = b->at[v].there ? b->at[v].desc : block_desc(b, &graph_value(b->body, v)->type);
    }
    *out = *b->call;
    out->where = where;
    out->node = node;
    out->in = descs;
    out->out = descs + node->inputs;
    out->key = node->key;
    out->sample_rows = 1;
    out->absent = 0;
    out->streaming = GRAPHI_STREAM_NEVER;
}

/* Asks for dense places of the node's values with gaps; false when it has none. */
static bool make_dense(struct binder *b, const struct node *node)
{
    bool any = false;
    for (int i = 0; i < node->inputs + node->outputs; i++) {
        const int32_t v = i < node->inputs ? node->input[i] : node->output + i - node->inputs;
        if (b->at[v].there && !array_is_dense(&b->at[v].desc))
            any = b->dense[v] = true;
    }
    return any;
}

static graphi_status add_kernel(struct binder *b, int32_t id)
{
    const struct node *node = graph_node(b->body, id);
    struct array_desc descs[VERTICES_UNIT_ARRAYS];
    struct bind_call call;
    struct kernel kernel = {0};
    char where[160];
    for (int i = 0; i < node->outputs; i++)
        if (!b->at[node->output + i].there)
            place_own(b, node->output + i);
    bind_call_in(b, id, descs, where, sizeof where, &call);
    if (!node->kind->bind)
        return fail(GRAPHI_UNSUPPORTED, where, "found no kernel, expected one");
    graphi_status status = node->kind->bind(&call, &kernel);
    if (status == GRAPHI_UNSUPPORTED && make_dense(b, node)) {
        b->again = true;
        return GRAPHI_OK;
    }
    TRY(status);
    struct vertices_unit *unit = add_unit(b, VERTICES_KERNEL, node->inputs, node->outputs);
    if (!unit || kernel.steps || !array_push(&b->kernels, kernel)) {
        kernel_fini(&kernel);
        return kernel.steps ? fail(GRAPHI_UNSUPPORTED, where, "found a loop in a vertex function, expected none")
                            : fail_memory("vertices", sizeof kernel);
    }
    unit->kernel = (int32_t)b->kernels.count - 1;
    unit->edges = node->outputs && graph_value(b->body, node->output)->type.symbol == BODY_EDGES;
    if (kernel.workspace) { /* not shared: kernels of one step have theirs at the same time */
        unit->workspace = b->work;
        b->work += divide_up((int64_t)kernel.workspace, 64) * 64;
    }
    for (int i = 0; i < node->inputs + node->outputs; i++)
        add_array(b, &b->at[i < node->inputs ? node->input[i] : node->output + i - node->inputs].array);
    const double blocks = (double)b->node.bounds.vertices / (double)frontier_block_rows(&b->node.bounds);
    b->spec.flops += kernel.flops * blocks;
    b->spec.bytes += kernel.bytes * blocks;
    return GRAPHI_OK;
}

/* Whether the result is its input with other strides. */
static bool place_view(struct binder *b, int32_t id)
{
    const struct node *node = graph_node(b->body, id);
    struct array_desc descs[VERTICES_UNIT_ARRAYS];
    struct bind_call call;
    char where[160];
    if (!(node->kind->flags & OP_VIEW) || node->outputs != 1 || b->at[node->output].there || b->home[node->output] >= 0)
        return false;
    bind_call_in(b, id, descs, where, sizeof where, &call);
    struct array_desc view = call.out[0];
    int64_t offset = 0;
    if (!node->kind->view(&call, &view, &offset) || (!array_is_dense(&view) && b->dense[node->output]))
        return false;
    const struct value_type *type = &graph_value(b->body, node->output)->type;
    b->at[node->output] =
        place_at(b, type, &view, b->at[node->input[0]].array, offset * (int64_t)graphi_dtype_size(view.dtype));
    if (b->last[node->output] > b->last[node->input[0]])
        b->last[node->input[0]] = b->last[node->output];
    return true;
}

/* --- concatenations --- */

static bool takes_gaps(const struct binder *b, int32_t value, int32_t except)
{
    for (int32_t n = 0; n < (int32_t)b->body->nodes.count; n++) {
        const struct node *node = graph_node(b->body, n);
        const bool move = node_is(node, IS_VERTEX_SPREAD) || node_is(node, IS_VERTEX_COMBINE);
        for (int i = 0; n != except && !move && i < node->inputs; i++)
            if (node->input[i] == value && !(node->kind->flags & OP_STRIDED_IN))
                return false;
    }
    return true;
}

static bool may_be_part(const struct binder *b, int32_t value, int32_t concat, const struct array_desc *part)
{
    const struct value *v = graph_value(b->body, value);
    if (b->at[value].there || b->parted[value] || b->home[value] >= 0 || v->kind == VALUE_CONSTANT ||
        v->type.symbol < 0)
        return false;
    if (array_is_dense(part))
        return v->node < 0 || !(graph_node(b->body, v->node)->kind->flags & OP_VIEW);
    if (b->dense[value] || !takes_gaps(b, value, concat))
        return false;
    if (v->node < 0)
        return true; /* gathered: placed inputs are there already */
    const struct node *from = graph_node(b->body, v->node);
    return from->kind->flags & (OP_STRIDED_OUT | OP_PARTS) || node_is(from, IS_VERTEX_SPREAD) ||
           node_is(from, IS_VERTEX_COMBINE);
}

/* Inputs of a concatenation are made inside its result, all of them or none. */
static void place_parts(struct binder *b, int32_t id)
{
    const struct node *node = graph_node(b->body, id);
    struct array_desc descs[VERTICES_UNIT_ARRAYS], parts[VERTICES_UNIT_ARRAYS];
    int64_t offsets[VERTICES_UNIT_ARRAYS], end = 0;
    struct bind_call call;
    char where[160];
    bind_call_in(b, id, descs, where, sizeof where, &call);
    bool all = true;
    for (int i = 0; all && i < node->inputs; i++) {
        parts[i] = call.out[0];
        offsets[i] = end;
        all = node->kind->part(&call, i, &parts[i], &end) && may_be_part(b, node->input[i], id, &parts[i]);
        parts[i].bounded = true;
        for (int k = 0; all && k < i; k++)
            all = node->input[k] != node->input[i];
    }
    if (!all)
        return;
    if (!b->at[node->output].there)
        place_own(b, node->output);
    for (int i = 0; i < node->inputs; i++) {
        const int32_t v = node->input[i];
        b->at[v] = place_at(b, &graph_value(b->body, v)->type, &parts[i], b->at[node->output].array,
                            offsets[i] * (int64_t)graphi_dtype_size(parts[i].dtype));
        b->parted[v] = true;
        b->last[v] = b->last[node->output] > b->last[v] ? b->last[node->output] : b->last[v];
    }
}

static bool is_placed(const struct binder *b, const struct node *node)
{
    bool all = node->kind->flags & OP_PARTS;
    for (int i = 0; all && i < node->inputs; i++)
        all = b->parted[node->input[i]];
    return all;
}

/* --- a function --- */

/* What is gathered, or, backward, the gradients of states. */
static void place_gathered(struct binder *b)
{
    const struct vertices_function *f = &b->node.function[b->f];
    const int64_t count = b->node.backward ? b->node.states : f->gathers;
    for (int64_t i = 0; i < count; i++) {
        const int32_t v = b->inputs[1 + f->rows + i];
        const bool read = b->last[v] >= 0 || b->home[v] >= 0;
        if (read && !b->at[v].there)
            place_own(b, v);
    }
}

static void gather(struct binder *b)
{
    const struct vertices_function *f = &b->node.function[b->f];
    for (int64_t i = 0; i < f->gathers; i++) {
        const int32_t v = b->inputs[1 + f->rows + i];
        const struct vertices_gather *g = &f->gather[i];
        const int64_t row_bytes = b->node.width[g->state] * (int64_t)sizeof(float);
        const struct vertices_array state = {.place = VERTICES_OUT,
                                             .rows = VERTICES_SLOTS,
                                             .index = (int32_t)g->state,
                                             .multiple = 1,
                                             .row_bytes = row_bytes,
                                             .used = row_bytes};
        if (b->at[v].there)
            add_move(b, (enum vertices_work)g->work, g->child, &state, v);
    }
}

/* What parents gathered of a state, of all functions. */
static int32_t add_terms(struct binder *b, int64_t state)
{
    int32_t count = 0;
    for (int f = 0; f < b->node.functions; f++)
        for (int64_t i = 0; i < b->node.function[f].gathers; i++) {
            const struct vertices_gather *g = &b->node.function[f].gather[i];
            if (g->state != state)
                continue;
            const struct vertices_term term = {.function = f,
                                               .work = (int32_t)g->work,
                                               .output = (int32_t)g->output,
                                               .child = g->child,
                                               .row_bytes = b->node.width[state] * (int64_t)sizeof(float)};
            b->broken |= !array_push(&b->terms, term);
            count++;
        }
    return count;
}

static void gather_gradients(struct binder *b)
{
    const struct vertices_function *f = &b->node.function[b->f];
    for (int64_t s = 0, input = 1; s < b->node.states; s++) {
        const bool seed = b->node.seeds >> s & 1;
        const int32_t v = b->inputs[1 + f->rows + s];
        const int64_t row_bytes = b->node.width[s] * (int64_t)sizeof(float);
        const struct vertices_array outside = {.place = seed ? VERTICES_IN : VERTICES_NOWHERE,
                                               .rows = VERTICES_SLOTS,
                                               .index = seed ? (int32_t)input++ : 0,
                                               .multiple = 1,
                                               .row_bytes = row_bytes,
                                               .used = row_bytes};
        if (!b->at[v].there)
            continue;
        const int32_t term = (int32_t)b->terms.count;
        add_move(b, VERTICES_PARENTS, 0, &outside, v);
        if (b->units.count) {
            b->units.data[b->units.count - 1].term = term;
            b->units.data[b->units.count - 1].terms = add_terms(b, s);
        }
    }
}

static graphi_status add_node(struct binder *b, int32_t id)
{
    const struct node *node = graph_node(b->body, id);
    if (node->inputs + node->outputs > VERTICES_UNIT_ARRAYS)
        return fail(GRAPHI_UNSUPPORTED, b->call->where,
                    "found an operation of %d values in a vertex function, "
                    "expected at most %d",
                    node->inputs + node->outputs, VERTICES_UNIT_ARRAYS);
    if (node_is(node, IS_VERTEX_SPREAD) || node_is(node, IS_VERTEX_COMBINE)) {
        if (!b->at[node->output].there)
            place_own(b, node->output);
        add_move(b, node_is(node, IS_VERTEX_SPREAD) ? VERTICES_SPREAD : VERTICES_COMBINE, 0,
                 &b->at[node->input[1]].array, node->output);
        return GRAPHI_OK;
    }
    if (is_placed(b, node) || place_view(b, id))
        return GRAPHI_OK;
    return add_kernel(b, id);
}

/* Outputs whose value lies elsewhere. */
static void add_copies(struct binder *b)
{
    for (size_t i = 0; i < b->body->outputs.count; i++) {
        const int32_t v = b->body->outputs.data[i].value;
        const int64_t k = vertices_output(b->body->outputs.data[i].name);
        if (k < 0 || (k < 64 && b->call->absent >> k & 1) || (b->home[v] == k && b->at[v].array.place == VERTICES_OUT))
            continue;
        const struct value_type *type = &graph_value(b->body, v)->type;
        const struct array_desc desc = block_desc(b, type);
        const bool state = !b->node.backward && k < b->node.states;
        const struct vertices_array to = {
            .place = VERTICES_OUT, .rows = state ? VERTICES_SLOTS : rows_kind(type), .index = (int32_t)k};
        const struct place there = place_at(b, type, &desc, to, 0);
        struct vertices_unit *unit = add_unit(b, VERTICES_COPY, 1, 1);
        if (!unit)
            return;
        unit->columns = type_count(type) / type->dims[0];
        unit->edges = type->symbol == BODY_EDGES;
        add_array(b, &b->at[v].array);
        add_array(b, &there.array);
    }
}

static void find_homes(struct binder *b)
{
    const int32_t nodes = (int32_t)b->body->nodes.count;
    for (size_t v = 0; v < b->body->values.count; v++)
        b->home[v] = b->last[v] = -1;
    for (int32_t n = 0; n < nodes; n++)
        for (int k = 0; k < graph_node(b->body, n)->inputs; k++)
            b->last[graph_node(b->body, n)->input[k]] = n;
    for (size_t i = 0; i < b->body->outputs.count; i++) {
        const int32_t v = b->body->outputs.data[i].value;
        const int64_t k = vertices_output(b->body->outputs.data[i].name);
        if (k < 0 || (k < 64 && b->call->absent >> k & 1))
            continue;
        b->last[v] = nodes;
        if (b->home[v] < 0)
            b->home[v] = (int32_t)k;
    }
}

static void place_sources(struct binder *b)
{
    const struct vertices_function *f = &b->node.function[b->f];
    const int64_t middle = b->node.backward ? b->node.states : f->gathers;
    for (int64_t i = 0; i < f->rows; i++) {
        place_input(b, b->inputs[1 + i], f->input + (int)i);
        b->home[b->inputs[1 + i]] = -1; /* read where it lies; as an output it is a copy */
    }
    for (int64_t i = 0; i < f->weights; i++)
        place_input(b, b->inputs[1 + f->rows + middle + i], f->input + (int)(f->rows + i));
    place_input(b, b->inputs[0], 0);
    for (size_t v = 0; v < b->body->values.count; v++)
        if (graph_value(b->body, (int32_t)v)->kind == VALUE_CONSTANT)
            place_constant(b, (int32_t)v);
}

static graphi_status bind_function(struct binder *b)
{
    const size_t values = b->body->values.count;
    memset(b->at, 0, sizeof *b->at * values);
    memset(b->parted, 0, sizeof *b->parted * values);
    find_homes(b);
    place_sources(b);
    for (int32_t n = (int32_t)b->body->nodes.count - 1; n >= 0; n--)
        if (graph_node(b->body, n)->kind->flags & OP_PARTS && graph_node(b->body, n)->inputs < VERTICES_UNIT_ARRAYS)
            place_parts(b, n);
    place_gathered(b);
    if (b->node.backward)
        gather_gradients(b);
    else
        gather(b);
    for (int32_t n = 0; n < (int32_t)b->body->nodes.count && !b->again; n++) {
        TRY(add_node(b, n));
        release(b, n);
    }
    add_copies(b);
    return b->broken ? fail_memory("vertices", sizeof *b->at * values) : GRAPHI_OK;
}

/* Takes back what a round made that is to be made again. */
static void forget(struct binder *b, size_t units, size_t arrays, size_t terms, size_t kernels)
{
    for (size_t i = kernels; i < b->kernels.count; i++)
        kernel_fini(&b->kernels.data[i]);
    b->units.count = units;
    b->arrays.count = arrays;
    b->terms.count = terms;
    b->kernels.count = kernels;
    b->unused.count = 0;
}

static graphi_status bind_functions(struct binder *b)
{
    for (b->f = 0; b->f < b->node.functions; b->f++) {
        b->body = b->node.function[b->f].body;
        const size_t values = b->body->values.count + 1, units = b->units.count, arrays = b->arrays.count;
        const size_t terms = b->terms.count, kernels = b->kernels.count;
        const int64_t work = b->work; /* functions have their blocks one after the other */
        b->at = mem_zalloc_array(values, sizeof *b->at);
        b->last = mem_zalloc_array(3 * values, sizeof *b->last);
        b->dense = mem_zalloc_array(2 * values, sizeof *b->dense);
        graphi_status status = b->at && b->last && b->dense ? GRAPHI_OK : fail_memory("vertices", values);
        if (!status) {
            b->home = b->last + values;
            b->inputs = b->home + values;
            b->parted = b->dense + values;
            b->input_count = vertices_body_inputs(b->body, b->inputs);
            do {
                b->again = false;
                b->work = work;
                forget(b, units, arrays, terms, kernels);
                status = bind_function(b);
            } while (!status && b->again);
            b->unused.count = 0;
        }
        mem_free(b->at);
        mem_free(b->last);
        mem_free(b->dense);
        TRY(status);
    }
    return GRAPHI_OK;
}

/* --- the node --- */

static void describe(const struct binder *b, struct vertices_argument *argument)
{
    const struct vertices_node *n = &b->node;
    const int64_t *types;
    for (int64_t s = 0, input = 1; s < n->states; s++)
        if (n->backward && n->seeds >> s & 1)
            argument[input++] = (struct vertices_argument){.rows = VERTICES_SLOTS, .multiple = 1, .present = 1};
    for (int f = 0; f < n->functions; f++)
        for (int64_t i = 0; i < n->function[f].rows; i++) {
            const struct array_desc *desc = &b->call->in[n->function[f].input + i];
            const graphi_graph *body = n->function[f].body;
            int32_t at = -1; /* the i-th input behind the frontier */
            for (int64_t seen = -1; seen < 1 + i;)
                seen += graph_value(body, ++at)->kind == VALUE_INPUT;
            const struct value_type *type = &graph_value(body, at)->type;
            argument[n->function[f].input + i] =
                (struct vertices_argument){.rows = rows_kind(type),
                                           .function = f,
                                           .multiple = (int32_t)multiple_of(b, type),
                                           .present = 1,
                                           .row_bytes = desc->strides[0] * (int64_t)graphi_dtype_size(desc->dtype)};
        }
    attr_ints(b->call->node, "types", &types);
    for (int k = 0; k < b->call->node->outputs; k++, types += VERTICES_TYPE) {
        const struct array_desc *desc = &b->call->out[k];
        const bool edges = types[1] == VERTICES_EDGES;
        const int64_t bound = edges ? n->bounds.edges : n->bounds.vertices;
        argument[b->call->node->inputs + k] =
            (struct vertices_argument){.rows = (int32_t)types[1],
                                       .function = (int32_t)types[0],
                                       .multiple = (int32_t)(desc->dims[0] / bound),
                                       .present = types[1] != VERTICES_FIXED && !(k < 64 && b->call->absent >> k & 1),
                                       .row_bytes = desc->strides[0] * (int64_t)graphi_dtype_size(desc->dtype)};
    }
}

static graphi_status check_layouts(const struct bind_call *call)
{
    for (int i = 0; i < call->node->inputs + call->node->outputs; i++) {
        const struct array_desc *desc = i < call->node->inputs ? &call->in[i] : &call->out[i - call->node->inputs];
        if (!array_is_dense(desc))
            return fail(GRAPHI_UNSUPPORTED, call->where, "found argument %d with gaps, expected dense rows", i);
    }
    return GRAPHI_OK;
}

static graphi_status bind_all(struct binder *b, struct vertices_argument *argument, struct kernel *kernel)
{
    TRY(bind_functions(b));
    describe(b, argument);
    b->spec.bounds = b->node.bounds;
    b->spec.backward = b->node.backward;
    b->spec.inputs = b->call->node->inputs;
    b->spec.outputs = b->call->node->outputs;
    b->spec.argument = argument;
    b->spec.units = (int)b->units.count;
    b->spec.unit = b->units.data;
    b->spec.arrays = (int)b->arrays.count;
    b->spec.array = b->arrays.data;
    b->spec.terms = (int)b->terms.count;
    b->spec.term = b->terms.data;
    b->spec.kernels = (int)b->kernels.count;
    b->spec.kernel = b->kernels.data;
    b->spec.data = b->data.data;
    b->spec.data_bytes = b->data.count;
    b->spec.workspace = (size_t)b->work;
    b->spec.shares = (int)most(least(b->call->cores > 0 ? b->call->cores : 8, 64), 1);
    return vertices_bind(&b->spec, kernel);
}

graphi_status vertices_bind_node(const struct bind_call *call, struct kernel *kernel)
{
    struct binder b = {.call = call};
    TRY(check_layouts(call));
    TRY(vertices_node_of(call->where, call->node, &b.node));
    struct vertices_argument *argument =
        mem_zalloc_array((size_t)(call->node->inputs + call->node->outputs) + 1, sizeof *argument);
    graphi_status status = argument ? bind_all(&b, argument, kernel) : fail_memory("vertices", sizeof *argument);
    mem_free(argument);
    for (size_t i = 0; i < b.kernels.count; i++)
        kernel_fini(&b.kernels.data[i]);
    array_free(&b.units);
    array_free(&b.arrays);
    array_free(&b.terms);
    array_free(&b.kernels);
    array_free(&b.data);
    array_free(&b.unused);
    return status;
}
