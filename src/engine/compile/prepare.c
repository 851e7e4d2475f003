/* SPDX-License-Identifier: Apache-2.0 */
/* Results made outside of the tasks: of nodes that pass `derive` found to follow from parameters and constants alone,
 * and of packing. They are known, here and in states, by what they are made of: the names of parameters, the content of
 * constants, operations, attributes and layouts. Those of constants alone lie in the plan. Compile time only. */
#include "engine/compile/prepare.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/number.h"
#include "base/status.h"
#include "graph/op.h"

#include <string.h>

/* --- what they are known by --- */

static uint64_t hash_place(uint64_t hash, const struct place *place)
{
    hash = hash_bytes(hash, place->desc.dims, sizeof place->desc.dims[0] * (size_t)place->desc.rank);
    hash = hash_bytes(hash, place->desc.strides, sizeof place->desc.strides[0] * (size_t)place->desc.rank);
    return hash_u64(hash, (uint64_t)place->offset);
}

/* A constant has no name: its bytes tell it from others, in every plan. */
static uint64_t hash_input(const struct compiled *c, uint64_t hash, int32_t value)
{
    const struct buffer *from = &c->buffers.data[c->place[value].buffer];
    if (from->kind == BUFFER_PARAMETER)
        hash = hash_string(hash, c->parameters.data[from->source].name);
    else if (from->kind == BUFFER_PREPARED)
        hash = hash_u64(hash, c->prepared.data[from->source].key);
    else
        hash = hash_bytes(hash_u64(hash, (uint64_t)graph_value(c->graph, from->source)->type.dtype),
                          graph_value(c->graph, from->source)->data, (size_t)from->bytes);
    return hash_place(hash, &c->place[value]);
}

static uint64_t key_of(const struct compiled *c, const struct bound *bound)
{
    const struct node *node = graph_node(c->graph, bound->node);
    uint64_t hash = hash_string(hash_u64(HASH_START, (uint64_t)c->isa), node->kind->name);
    hash = hash_string(hash, bound->kernel.name);
    for (int i = 0; i < node->inputs; i++)
        hash = hash_input(c, hash, node->input[i]);
    hash = hash_u64(hash, (uint64_t)c->options.precision);
    hash = hash_bytes(hash, &c->conv_error, sizeof c->conv_error);
    return graph_hash_attributes(hash, node);
}

static bool add_source(struct compiled *c, struct prepared *form, int32_t parameter)
{
    for (int32_t s = 0; s < form->sources; s++)
        if (c->sources.data[form->source + s] == parameter)
            return true;
    form->sources++;
    return array_push(&c->sources, parameter);
}

/* The parameters that the node's inputs are, or follow from, in the order of the inputs, each once. */
static bool find_sources(struct compiled *c, const struct bound *bound, struct prepared *form)
{
    const struct node *node = graph_node(c->graph, bound->node);
    bool enough = true;
    form->source = (int32_t)c->sources.count;
    for (int i = 0; i < node->inputs && enough; i++) {
        const struct buffer *from = &c->buffers.data[c->place[node->input[i]].buffer];
        if (from->kind == BUFFER_PARAMETER)
            enough = add_source(c, form, from->source);
        for (int32_t s = 0; from->kind == BUFFER_PREPARED && enough && s < c->prepared.data[from->source].sources; s++)
            enough = add_source(c, form, c->sources.data[c->prepared.data[from->source].source + s]);
    }
    return enough;
}

static bool same_sources(const struct compiled *c, const struct prepared *a, const struct prepared *b)
{
    return a->sources == b->sources && memcmp(c->sources.data + a->source, c->sources.data + b->source,
                                              (size_t)a->sources * sizeof *c->sources.data) == 0;
}

/* --- taking them out --- */

/* Where the form is among those there are, by an index of their keys; -1: nowhere. */
static int32_t find_form(const struct compiled *c, const struct index *forms, const struct prepared *form)
{
    size_t seen = 0;
    int32_t at;
    while ((at = index_next(forms, form->key, &seen)) >= 0 &&
           (c->prepared.data[at].bytes != form->bytes || !same_sources(c, &c->prepared.data[at], form)))
        continue;
    return at;
}

/* Where each result lies within the form, whose bytes these are. */
static int64_t place_results(struct compiled *c, const struct node *node, int64_t from)
{
    const int64_t first = from;
    for (int i = 0; i < node->outputs; i++) {
        struct buffer *to = &c->buffers.data[c->place[node->output + i].buffer];
        to->offset = from;
        from += whole_lines(to->bytes);
    }
    return node->outputs == 1 ? c->buffers.data[c->place[node->output].buffer].bytes : from - first;
}

static void belong(struct compiled *c, const struct node *node, int32_t form, int64_t from)
{
    place_results(c, node, from);
    for (int i = 0; i < node->outputs; i++)
        c->buffers.data[c->place[node->output + i].buffer].source = form;
}

static graphi_status add_prepared(struct compiled *c, struct index *forms, struct bound *bound)
{
    const struct node *node = graph_node(c->graph, bound->node);
    struct prepared form = {.key = key_of(c, bound), .bytes = place_results(c, node, 0), .passing = true};
    if (!find_sources(c, bound, &form))
        return fail_memory("forms", c->sources.count * sizeof *c->sources.data);
    const int32_t same = find_form(c, forms, &form);
    if (same >= 0) { /* of constants, it lies where the first of them does */
        const struct bound *first = &c->prepared.data[same].bound;
        c->sources.count = (size_t)form.source;
        belong(c, node, same, c->buffers.data[c->arguments.data[first->argument + first->inputs].buffer].offset);
        return GRAPHI_OK;
    }
    TRY(bind_arguments(c, bound));
    form.bound = *bound;
    if (!index_add(forms, form.key, (int32_t)c->prepared.count) || !array_push(&c->prepared, form))
        return fail_memory("forms", sizeof form);
    *bound = (struct bound){0}; /* the kernel moved */
    belong(c, node, (int32_t)c->prepared.count - 1, form.sources ? 0 : c->constant_bytes);
    c->constant_bytes += form.sources ? 0 : whole_lines(form.bytes);
    return GRAPHI_OK;
}

/* --- those of constants --- */

static void *constant_address(const struct compiled *c, const struct argument *argument)
{
    const struct buffer *buffer = &c->buffers.data[argument->buffer];
    unsigned char *base = buffer->kind == BUFFER_CONSTANT
                              ? (void *)(uintptr_t)graph_value(c->graph, buffer->source)->data
                              : c->constants + buffer->offset;
    return base + argument->offset;
}

static graphi_status make_constant(const struct compiled *c, const struct bound *bound)
{
    const int count = bound->inputs + bound->outputs;
    struct kernel_array *array = mem_zalloc_array((size_t)count, sizeof *array);
    void *workspace = mem_alloc(bound->kernel.workspace);
    graphi_status status = GRAPHI_OK;
    for (int k = 0; k < count && array; k++) {
        const struct argument *argument = &c->arguments.data[bound->argument + k];
        array[k] = (struct kernel_array){constant_address(c, argument), argument->rows};
    }
    if (!array || !workspace)
        status = fail_memory("packed constants", bound->kernel.workspace);
    else
        status = kernel_run_serial(&bound->kernel,
                                   &(struct kernel_call){.in = array, .out = array + bound->inputs,
                                                         .workspace = workspace, .params = bound->kernel.params});
    mem_free(array);
    mem_free(workspace);
    return status;
}

/* Once, here. */
static graphi_status make_constants(struct compiled *c)
{
    graphi_status status = GRAPHI_OK;
    c->constants = mem_zalloc((size_t)c->constant_bytes);
    if (!c->constants)
        return fail_memory("packed constants", (size_t)c->constant_bytes);
    for (size_t i = 0; i < c->prepared.count && !status; i++)
        if (!c->prepared.data[i].sources)
            status = make_constant(c, &c->prepared.data[i].bound);
    return status;
}

/* --- all of it --- */

/* Which forms no task reads. */
static void find_passing(struct layout *l)
{
    struct compiled *c = l->compiled;
    for (size_t n = 0; n < c->graph->nodes.count; n++) {
        const struct node *node = graph_node(c->graph, (int32_t)n);
        for (int i = 0; i < node->inputs && l->role[n] == ROLE_TASK; i++) {
            const struct buffer *from = &c->buffers.data[c->place[node->input[i]].buffer];
            if (from->kind == BUFFER_PREPARED)
                c->prepared.data[from->source].passing = false;
        }
    }
}

static void find_last_forms(struct compiled *c)
{
    for (size_t p = 0; p < c->parameters.count; p++)
        c->parameters.data[p].last_form = -1;
    c->packed_bytes = 0;
    for (size_t i = 0; i < c->prepared.count; i++) {
        const struct prepared *form = &c->prepared.data[i];
        c->packed_bytes += form->passing ? 0 : form->bytes;
        for (int32_t s = 0; s < form->sources; s++)
            c->parameters.data[c->sources.data[form->source + s]].last_form = (int32_t)i;
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
    if (status)
        return status;
    find_passing(l);
    find_last_forms(c);
    return make_constants(c);
}
