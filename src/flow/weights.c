/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of all plans of a session (weights.h). */
#include "flow/weights.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "value/op.h"

#include <stdio.h>
#include <string.h>

void weights_init(struct weights *weights)
{
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
#ifdef __GLIBC__
    /* Readers who never pause would keep a writer out for ever. No thread reads twice, which this kind forbids. */
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    pthread_rwlock_init(&weights->lock, &kind);
    pthread_rwlockattr_destroy(&kind);
}

void weights_fini(struct weights *weights)
{
    graphi_state_destroy(weights->state);
    for (size_t i = 0; i < weights->names.count; i++)
        mem_free(weights->names.data[i]);
    array_free(&weights->names);
    index_free(&weights->index);
    pthread_rwlock_destroy(&weights->lock);
}

static bool has(const struct weights *weights, const char *name)
{
    size_t seen = 0;
    for (int32_t place; (place = index_next(&weights->index, hash_string(HASH_START, name), &seen)) >= 0;)
        if (strcmp(weights->names.data[place], name) == 0)
            return true;
    return false;
}

static graphi_status remember(struct weights *weights, const char *name)
{
    char *copy = mem_string(name);
    if (copy && array_push(&weights->names, copy)) {
        if (index_add(&weights->index, hash_string(HASH_START, name), (int32_t)weights->names.count - 1))
            return GRAPHI_OK;
        weights->names.count--;
    }
    mem_free(copy);
    return fail_memory("session", strlen(name));
}

/* The content in the order that is asked for; the caller's. */
static graphi_status ordered(const struct weight *weight, graphi_tensor **out)
{
    if (!weight->moved) {
        *out = value_keep(weight->from);
        return GRAPHI_OK;
    }
    struct attribute order = {.name = "perm",
                              .kind = ATTRIBUTE_INTS,
                              .count = (size_t)weight->from->rank,
                              .ints = (int64_t *)(uintptr_t)weight->perm};
    graphi_tensor *const in = weight->from;
    *out = NULL;
    struct op_call call = {.op = host_op_find("Transpose"),
                           .where = "session",
                           .ins = 1,
                           .outs = 1,
                           .in = &in,
                           .out = out,
                           .attributes = &order,
                           .attribute_count = 1};
    return host_op_run(&call);
}

static graphi_status put(struct weights *weights, const struct weight *weight)
{
    graphi_tensor *content;
    TRY(ordered(weight, &content));
    graphi_status status = graphi_state_set(weights->state, weight->name, content->data, content->bytes);
    value_drop(content);
    return status == GRAPHI_OK ? remember(weights, weight->name) : status;
}

static graphi_status add(struct weights *weights, const graphi_graph *graph, const struct weights_wanted *wanted)
{
    if (weights->state)
        TRY(graphi_state_extend(weights->state, graph));
    else
        TRY(graphi_state_create(graph, 0, &weights->state));
    for (size_t i = 0; i < wanted->list.count; i++)
        if (!has(weights, wanted->list.data[i].name))
            TRY(put(weights, &wanted->list.data[i]));
    return GRAPHI_OK;
}

graphi_status weights_add(struct weights *weights, const graphi_graph *graph, const struct weights_wanted *wanted)
{
    pthread_rwlock_rdlock(&weights->lock);
    bool lacks = !weights->state;
    for (size_t i = 0; i < wanted->list.count && !lacks; i++)
        lacks = !has(weights, wanted->list.data[i].name);
    pthread_rwlock_unlock(&weights->lock);
    if (!lacks)
        return GRAPHI_OK;
    pthread_rwlock_wrlock(&weights->lock);
    const graphi_status status = add(weights, graph, wanted);
    pthread_rwlock_unlock(&weights->lock);
    return status;
}

bool element_dtype(graphi_element element, graphi_dtype *dtype)
{
    static const struct {
        graphi_element element;
        graphi_dtype dtype;
    } types[] = {{T_F32, GRAPHI_F32},   {T_I64, GRAPHI_I64}, {T_I32, GRAPHI_I32}, {T_BOOL, GRAPHI_BOOL},
                 {T_F16, GRAPHI_F16},   {T_F64, GRAPHI_F64}, {T_U8, GRAPHI_U8},   {T_I8, GRAPHI_I8},
                 {T_BF16, GRAPHI_BF16}, {T_I16, GRAPHI_I16}, {T_U16, GRAPHI_U16}, {T_U32, GRAPHI_U32},
                 {T_U64, GRAPHI_U64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].element == element) {
            *dtype = types[i].dtype;
            return true;
        }
    return false;
}

graphi_status element_as_carried(const graphi_tensor *from, graphi_tensor **out)
{
    if (from->type == T_F32 || !element_is_carried(from->type)) {
        *out = value_keep(from);
        return GRAPHI_OK;
    }
    TRY(value_new("session", T_F32, from->rank, from->dims, out));
    for (int64_t i = 0; i < from->count; i++)
        ((float *)(*out)->data)[i] = (float)value_double(from, i);
    return GRAPHI_OK;
}

static graphi_value declare(graphi_graph *graph, const struct weight *weight, graphi_dtype dtype)
{
    int64_t dims[VALUE_RANK];
    for (int i = 0; i < weight->from->rank; i++)
        dims[i] = weight->from->dims[weight->moved ? weight->perm[i] : i];
    return graphi_parameter(graph, weight->name, dtype, weight->from->rank, dims, NULL);
}

graphi_value weights_parameter(struct weights_wanted *wanted, graphi_graph *graph, const char *name,
                               graphi_tensor *from, const int64_t *perm)
{
    struct weight weight = {.moved = perm != NULL};
    size_t at = (size_t)snprintf(weight.name, sizeof weight.name - 2 * VALUE_RANK, "%s", name);
    graphi_dtype dtype;
    if (perm)
        weight.name[at++] = '/';
    for (int i = 0; perm && i < from->rank; i++) {
        weight.perm[i] = perm[i];
        weight.name[at++] = (char)('0' + perm[i]);
    }
    weight.name[at] = 0;
    const graphi_value there = graphi_find(graph, weight.name);
    if (there != GRAPHI_NONE)
        return there;
    if (element_as_carried(from, &weight.from) != GRAPHI_OK)
        return GRAPHI_NONE;
    if (!element_dtype(weight.from->type, &dtype) || !array_push(&wanted->list, weight)) {
        value_drop(weight.from);
        return GRAPHI_NONE;
    }
    return declare(graph, &weight, dtype);
}

void weights_wanted_free(struct weights_wanted *wanted)
{
    for (size_t i = 0; i < wanted->list.count; i++)
        value_drop(wanted->list.data[i].from);
    array_free(&wanted->list);
}
