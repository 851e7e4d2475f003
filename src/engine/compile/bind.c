/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for placed nodes. A kernel may refuse a strided argument although its kind accepts such in general (a
 * convolution of groups, a broadcast that does not fold): the value then gets a dense place in another round of the
 * layout. Every round removes at least one strided value, and seldom is a second round needed. */
#include "base/hash.h"
#include "base/number.h"
#include "base/status.h"
#include "engine/compile/bind.h"
#include "graph/op.h"

#include <string.h>

static bool strided(const struct place *place) { return place->buffer >= 0 && !array_is_dense(&place->desc); }

/* Asks for dense places of the node's strided arguments; false when it has none. One that another reader asked for in
 * this round is still strided; one asked for in an earlier round is not. */
static bool make_dense(struct layout *l, const struct node *node)
{
    bool any = false;
    for (int i = 0; i < node->inputs + node->outputs; i++) {
        int32_t value = i < node->inputs ? node->input[i] : node->output + i - node->inputs;
        if (strided(&l->compiled->place[value]))
            any = l->dense[value] = true;
    }
    return any;
}

static graphi_status bind_node(struct layout *l, int32_t id, struct array_desc *descs, size_t widest,
                               struct bound *bound, bool *again)
{
    struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    struct bind_call call;
    char where[160];
    bind_call_of(l, id, descs, descs + widest, where, sizeof where, &call);
    if (!node->kind->bind)
        return fail(GRAPHI_UNSUPPORTED, where, "found no kernel, expected one");
    *bound = (struct bound){.node = id, .inputs = node->inputs, .outputs = node->outputs, .workspace = -1};
    graphi_status status = node->kind->bind(&call, &bound->kernel);
    if (status == GRAPHI_UNSUPPORTED && make_dense(l, node)) {
        *again = true;
        return GRAPHI_OK;
    }
    return status;
}

void bound_free(struct bound *bound, size_t nodes)
{
    for (size_t n = 0; bound && n < nodes; n++)
        kernel_fini(&bound[n].kernel);
    mem_free(bound);
}

graphi_status bind_nodes(struct layout *l, struct bound **out)
{
    const graphi_graph *graph = l->compiled->graph;
    size_t nodes = graph->nodes.count, widest = graph_widest(graph);
    struct bound *bound = mem_zalloc_array(nodes + 1, sizeof *bound);
    struct array_desc *descs = mem_alloc(sizeof *descs * widest * 2);
    graphi_status status = bound && descs ? GRAPHI_OK : fail_memory("kernels", nodes * sizeof *bound);
    for (bool again = true; !status && again;) {
        again = false;
        for (size_t n = 0; n < nodes; n++)
            kernel_fini(&bound[n].kernel);
        status = layout_places(l);
        for (size_t n = 0; !status && n < nodes; n++)
            if (l->role[n] != ROLE_NONE)
                status = bind_node(l, (int32_t)n, descs, widest, &bound[n], &again);
    }
    mem_free(descs);
    if (status) {
        bound_free(bound, nodes);
        return status;
    }
    *out = bound;
    return GRAPHI_OK;
}

static bool add_argument(struct compiled *c, int32_t value)
{
    const struct place *place = &c->place[value];
    const struct value_type *type = &graph_value(c->graph, value)->type;
    struct argument argument = {.value = value, .buffer = place->buffer, .offset = place->offset,
                                .rows = type->rank ? type->dims[0] : 1, .symbol = type->symbol};
    return array_push(&c->arguments, argument);
}

graphi_status bind_arguments(struct compiled *c, struct bound *bound)
{
    const struct node *node = graph_node(c->graph, bound->node);
    bool enough = true;
    bound->argument = (int32_t)c->arguments.count;
    for (int i = 0; i < node->inputs; i++)
        enough = enough && add_argument(c, node->input[i]);
    for (int i = 0; i < node->outputs; i++)
        enough = enough && add_argument(c, node->output + i);
    return enough ? GRAPHI_OK : fail_memory("arguments", c->arguments.count * sizeof(struct argument));
}

/* --- prepared forms --- */

/* What the form is made of: the operation, its attributes, and the source's key or name. */
static uint64_t form_key(const struct compiled *c, const struct bound *bound, uint64_t source)
{
    const struct node *node = graph_node(c->graph, bound->node);
    uint64_t hash = hash_string(hash_u64(source, (uint64_t)c->isa), node->kind->name);
    hash = hash_string(hash, bound->kernel.name);
    for (int i = 0; i < node->inputs; i++) {
        const struct place *in = &c->place[node->input[i]];
        hash = hash_bytes(hash, in->desc.dims, sizeof in->desc.dims[0] * (size_t)in->desc.rank);
        hash = hash_bytes(hash, in->desc.strides, sizeof in->desc.strides[0] * (size_t)in->desc.rank);
        hash = hash_u64(hash, (uint64_t)in->offset);
    }
    hash = hash_u64(hash, (uint64_t)c->options.precision);
    return graph_hash_attributes(hash, node);
}

/* What the form of node's inputs will be known by, here and in the state. */
static struct prepared form_of(const struct compiled *c, const struct bound *bound)
{
    const struct node *node = graph_node(c->graph, bound->node);
    struct prepared form = {.parameter = -1};
    uint64_t source = HASH_START;
    for (int i = 0; i < node->inputs; i++) { /* several: parameters */
        const struct buffer *from = &c->buffers.data[c->place[node->input[i]].buffer];
        if (from->kind == BUFFER_PARAMETER) {
            form.parameter = i ? form.parameter : from->source;
            source = hash_string(source, c->parameters.data[from->source].name);
        } else if (from->kind == BUFFER_PREPARED) {
            form.parameter = c->prepared.data[from->source].parameter;
            source = c->prepared.data[from->source].key;
        } else {
            source = hash_u64(source, (uint64_t)from->source); /* a constant has no name */
        }
    }
    form.key = form_key(c, bound, source);
    return form;
}

/* Where the form is among those there are, by an index of their keys; -1: nowhere. */
static int32_t find_form(const struct compiled *c, const struct index *forms, const struct prepared *form)
{
    size_t seen = 0;
    int32_t at;
    while ((at = index_next(forms, form->key, &seen)) >= 0 && c->prepared.data[at].parameter != form->parameter)
        continue;
    return at;
}

static graphi_status add_prepared(struct compiled *c, struct index *forms, struct bound *bound)
{
    struct buffer *to = &c->buffers.data[c->place[graph_node(c->graph, bound->node)->output].buffer];
    struct prepared form = form_of(c, bound);
    to->source = find_form(c, forms, &form);
    if (to->source >= 0) { /* of constants, it lies where the first of them does */
        const struct bound *same = &c->prepared.data[to->source].bound;
        to->offset = c->buffers.data[c->arguments.data[same->argument + same->inputs].buffer].offset;
        return GRAPHI_OK;
    }
    TRY(bind_arguments(c, bound));
    form.bound = *bound;
    if (!index_add(forms, form.key, (int32_t)c->prepared.count) || !array_push(&c->prepared, form))
        return fail_memory("packed forms", sizeof form);
    *bound = (struct bound){0}; /* the kernel moved */
    to->source = (int32_t)c->prepared.count - 1;
    c->packed_bytes += to->bytes;
    if (form.parameter < 0) {
        to->offset = c->constant_bytes;
        c->constant_bytes += whole_lines(to->bytes);
    }
    return GRAPHI_OK;
}

/* Makes the forms of constants: once, here. */
static graphi_status make_constants(struct compiled *c)
{
    graphi_status status = GRAPHI_OK;
    c->constants = mem_zalloc((size_t)c->constant_bytes);
    if (!c->constants)
        return fail_memory("packed constants", (size_t)c->constant_bytes);
    for (size_t i = 0; i < c->prepared.count && !status; i++) {
        const struct prepared *form = &c->prepared.data[i];
        if (form->parameter >= 0)
            continue;
        struct kernel_array array[2];
        for (int k = 0; k < 2; k++) {
            const struct argument *argument = &c->arguments.data[form->bound.argument + k];
            const struct buffer *buffer = &c->buffers.data[argument->buffer];
            unsigned char *base = buffer->kind == BUFFER_CONSTANT
                                      ? (void *)(uintptr_t)graph_value(c->graph, buffer->source)->data
                                      : c->constants + buffer->offset;
            array[k] = (struct kernel_array){base + argument->offset, argument->rows};
        }
        void *workspace = mem_alloc(form->bound.kernel.workspace);
        struct kernel_call call = {
            .in = array, .out = array + 1, .workspace = workspace, .params = form->bound.kernel.params};
        status = workspace ? kernel_run_serial(&form->bound.kernel, &call)
                           : fail_memory("packed constants", form->bound.kernel.workspace);
        mem_free(workspace);
    }
    return status;
}

static void chain_forms(struct compiled *c)
{
    for (size_t p = 0; p < c->parameters.count; p++)
        c->parameters.data[p].forms = -1;
    for (size_t i = c->prepared.count; i-- > 0;) {
        struct prepared *form = &c->prepared.data[i];
        int32_t *first = form->parameter < 0 ? NULL : &c->parameters.data[form->parameter].forms;
        form->next = first ? *first : -1;
        if (first)
            *first = (int32_t)i;
    }
}

graphi_status bind_prepared(struct layout *l, struct bound *bound)
{
    struct compiled *c = l->compiled;
    struct index forms = {0};
    graphi_status status = GRAPHI_OK;
    for (size_t n = 0; n < c->graph->nodes.count && !status; n++)
        if (l->role[n] == ROLE_PREPARED)
            status = add_prepared(c, &forms, &bound[n]);
    index_free(&forms);
    chain_forms(c);
    return status ? status : make_constants(c);
}
