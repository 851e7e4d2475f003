/* SPDX-License-Identifier: Apache-2.0 */
/* States: see include/graphi/state.h and engine/run/state.h. Usual size: 4 to 300 parameters, up to 100 MB. */
#include "engine/run/state.h"

#include "base/float_mode.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/status.h"
#include "engine/run/initialize.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* glibc lets readers in before a writer who waits: threads that keep a state busy would put off a fork for ever. No
 * thread reads twice, which this kind of lock forbids. */
#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#define FORKING_INITIALIZER PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#else
#define FORKING_INITIALIZER PTHREAD_RWLOCK_INITIALIZER
#endif

/* Whoever has the mutex of a state reads this too, and fork() writes it: so a child finds every state whole and free,
 * also those that other threads of its parent were using. Readers do not keep each other out. */
static pthread_rwlock_t forking = FORKING_INITIALIZER;

static void before_fork(void) { pthread_rwlock_wrlock(&forking); }

static void after_fork_parent(void) { pthread_rwlock_unlock(&forking); }

/* The writer is a thread of the parent, which a child cannot unlock for. */
static void after_fork_child(void) { forking = (pthread_rwlock_t)FORKING_INITIALIZER; }

/* Before main() or as the library is loaded, as those of workers.c. */
__attribute__((constructor)) static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* The mutex of a state that is otherwise only read. */
static pthread_mutex_t *mutex_of(const graphi_state *state) { return (pthread_mutex_t *)(uintptr_t)&state->mutex; }

void state_lock(const graphi_state *state)
{
    pthread_rwlock_rdlock(&forking);
    pthread_mutex_lock(mutex_of(state));
}

void state_unlock(const graphi_state *state)
{
    pthread_mutex_unlock(mutex_of(state));
    pthread_rwlock_unlock(&forking);
}

void state_changed(graphi_state *state)
{
    /* release: pairs with the acquire in prepare_forms() (execute.c) */
    atomic_fetch_add_explicit(&state->epoch, 1, memory_order_release);
}

static void parameter_free(struct parameter *parameter)
{
    if (!parameter)
        return;
    mem_free(parameter->name);
    mem_free(parameter);
}

static void form_free(struct packed_form *form)
{
    if (!form)
        return;
    kernel_fini(&form->undo);
    mem_free(form);
}

struct parameter *state_parameter(const graphi_state *state, const char *name)
{
    size_t low = 0, high = state->parameters.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(state->parameters.data[middle]->name, name);
        if (order == 0)
            return state->parameters.data[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void *new_array(graphi_state *state, size_t bytes)
{
    state_lock(state);
    void *data = arena_array(&state->arrays, bytes);
    state_unlock(state);
    return data;
}

graphi_status state_reserve(graphi_state *state, size_t bytes)
{
    state_lock(state);
    bool enough = arena_reserve(&state->arrays, bytes);
    state_unlock(state);
    return enough ? GRAPHI_OK : fail_memory("state", bytes);
}

static struct parameter *parameter_create(graphi_state *state, const struct value *value)
{
    struct parameter *parameter = mem_zalloc(sizeof *parameter);
    if (!parameter)
        return NULL;
    parameter->name = mem_string(value->name);
    parameter->type = value->type;
    parameter->bytes = (size_t)type_bytes(&value->type);
    parameter->data = new_array(state, parameter->bytes);
    parameter->version = 1;
    if (!parameter->name || !parameter->data) {
        parameter_free(parameter);
        return NULL;
    }
    struct float_mode mode = float_mode_enter();
    initialize_parameter(state->seed, value, parameter->data);
    float_mode_leave(mode);
    return parameter;
}

/* Is it one that the state has? Then its type must be the same. */
static graphi_status check_known(const struct parameter *old, const struct value *value)
{
    char has[96], wants[96], where[200];
    if (!old || type_equal(&old->type, &value->type))
        return GRAPHI_OK;
    type_text(&old->type, has, sizeof has);
    type_text(&value->type, wants, sizeof wants);
    snprintf(where, sizeof where, "parameter '%s'", value->name);
    return fail(GRAPHI_INVALID, where, "found %s in the state, expected %s", has, wants);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct parameter *const *)a)->name, (*(struct parameter *const *)b)->name);
}

/* Those that the state has not, with room for `fresh` of them; the list is sorted when all are there, as names of a
 * graph are unique. */
static graphi_status add_parameters(graphi_state *state, const graphi_graph *graph, size_t fresh)
{
    graphi_status status = GRAPHI_OK;
    size_t count = state->parameters.count;
    if (!array_reserve(&state->parameters, count + fresh))
        return fail_memory("state", fresh * sizeof *state->parameters.data);
    for (size_t i = 0; i < graph->values.count && !status; i++) {
        const struct value *value = &graph->values.data[i];
        if (value->kind != VALUE_PARAMETER || state_parameter(state, value->name))
            continue;
        struct parameter *parameter = parameter_create(state, value);
        if (parameter)
            state->parameters.data[count++] = parameter;
        else
            status = fail_memory(value->name, (size_t)type_bytes(&value->type));
    }
    state->parameters.count = count;
    qsort(state->parameters.data, count, sizeof *state->parameters.data, by_name);
    return status;
}

graphi_status graphi_state_extend(graphi_state *state, const graphi_graph *graph)
{
    GIVEN(state);
    GIVEN(graph);
    size_t bytes = 0, fresh = 0;
    TRY(graphi_graph_status(graph));
    for (size_t i = 0; i < graph->values.count; i++) {
        const struct value *value = &graph->values.data[i];
        if (value->kind != VALUE_PARAMETER)
            continue;
        const struct parameter *old = state_parameter(state, value->name);
        TRY(check_known(old, value)); /* all of them before the first is added */
        fresh += !old;
        bytes += old ? 0 : (size_t)whole_lines(type_bytes(&value->type));
    }
    TRY(state_reserve(state, bytes));
    return fresh ? add_parameters(state, graph, fresh) : GRAPHI_OK;
}

graphi_status graphi_state_create(const graphi_graph *graph, uint64_t seed, graphi_state **out)
{
    GIVEN(graph);
    GIVEN(out);
    graphi_state *state = mem_zalloc(sizeof *state);
    if (!state)
        return fail_memory("state", sizeof *state);
    state->seed = seed;
    atomic_init(&state->epoch, 1);
    pthread_mutex_init(&state->mutex, NULL);
    graphi_status status = graphi_state_extend(state, graph);
    if (status) {
        graphi_state_destroy(state);
        return status;
    }
    *out = state;
    return GRAPHI_OK;
}

void graphi_state_destroy(graphi_state *state)
{
    if (!state)
        return;
    for (size_t i = 0; i < state->parameters.count; i++)
        parameter_free(state->parameters.data[i]);
    for (size_t i = 0; i < state->packed.count; i++)
        form_free(state->packed.data[i]);
    arena_free(&state->arrays);
    array_free(&state->parameters);
    for (size_t i = 0; i < state->fed.count; i++) {
        mem_free(state->fed.data[i].name);
        mem_free(state->fed.data[i].data);
    }
    array_free(&state->fed);
    array_free(&state->packed);
    index_free(&state->packed_keys);
    index_free(&state->fed_names);
    pthread_mutex_destroy(&state->mutex);
    mem_free(state);
}

/* --- where a parameter's content is: under the mutex --- */

/* Smaller ones stay: giving their pages back would cut the block into more mappings than it saves pages. */
enum { LEAST_RELEASED = 64 << 10 };

static uint64_t version_of(const struct packed_form *form)
{
    uint64_t version = 0;
    for (int i = 0; i < form->sources; i++)
        version += form->source[i]->version;
    return version;
}

static void bring_back(struct parameter *parameter)
{
    const struct packed_form *form = parameter->home;
    struct kernel_array out = {.data = form->data};
    struct kernel_call call = {.in = form->in, .out = &out, .params = form->undo.params};
    mem_renew(parameter->data, parameter->bytes);
    for (int i = 0; i < form->sources; i++)
        form->in[i].data = form->source[i] == parameter ? parameter->data : NULL;
    kernel_run_serial(&form->undo, &call); /* copies: it cannot fail */
    parameter->away = false;
}

static void hold(struct parameter *parameter)
{
    if (parameter->away)
        bring_back(parameter);
    parameter->holders++;
}

static void drop(struct parameter *parameter)
{
    if (--parameter->holders || !parameter->home || form_is_stale(parameter->home))
        return;
    parameter->away = parameter->bytes >= LEAST_RELEASED && mem_release(parameter->data, parameter->bytes);
}

void state_hold(const graphi_state *state, struct parameter *parameter)
{
    state_lock(state);
    hold(parameter);
    state_unlock(state);
}

void state_drop(const graphi_state *state, struct parameter *parameter)
{
    state_lock(state);
    drop(parameter);
    state_unlock(state);
}

bool form_is_stale(const struct packed_form *form) { return form->version != version_of(form); }

void form_begin(struct packed_form *form)
{
    for (int i = 0; i < form->sources; i++)
        hold(form->source[i]);
}

void form_end(struct packed_form *form, bool packed)
{
    if (packed)
        form->version = version_of(form);
    for (int i = 0; i < form->sources; i++) {
        if (packed && form->undo.run)
            form->source[i]->home = form;
        drop(form->source[i]);
    }
}

/* --- content --- */

static graphi_status find_parameter(const graphi_state *state, const char *name, const void *data, size_t bytes,
                                    struct parameter **out)
{
    char where[200];
    name = name ? name : "";
    snprintf(where, sizeof where, "parameter '%s'", name);
    struct parameter *parameter = state_parameter(state, name);
    if (!parameter) {
        struct expected_names names = {0};
        for (size_t i = 0; i < state->parameters.count; i++)
            expect_name(&names, state->parameters.data[i]->name);
        return fail(GRAPHI_INVALID, where, "found no such parameter in the state, expected %s", expected_text(&names));
    }
    if (bytes && !data)
        return fail(GRAPHI_INVALID, where, "found NULL as data, expected %zu bytes", parameter->bytes);
    if (parameter->bytes != bytes)
        return fail(GRAPHI_INVALID, where, "found %zu bytes, expected %zu", bytes, parameter->bytes);
    *out = parameter;
    return GRAPHI_OK;
}

graphi_status graphi_state_get(const graphi_state *state, const char *name, void *data, size_t bytes)
{
    GIVEN(state);
    struct parameter *parameter;
    TRY(find_parameter(state, name, data, bytes, &parameter));
    state_hold(state, parameter);
    memcpy(data, parameter->data, bytes);
    state_drop(state, parameter);
    return GRAPHI_OK;
}

graphi_status graphi_state_set(graphi_state *state, const char *name, const void *data, size_t bytes)
{
    GIVEN(state);
    struct parameter *parameter;
    TRY(find_parameter(state, name, data, bytes, &parameter));
    state_lock(state);
    if (parameter->away)
        mem_renew(parameter->data, bytes);
    parameter->away = false; /* all of it is written */
    memcpy(parameter->data, data, bytes);
    parameter->version++;
    state_changed(state);
    state_unlock(state);
    return GRAPHI_OK;
}

graphi_status graphi_state_zero(graphi_state *state, const char *prefix)
{
    GIVEN(state);
    GIVEN(prefix);
    for (size_t i = 0; i < state->parameters.count; i++) {
        const struct parameter *p = state->parameters.data[i];
        if (strncmp(p->name, prefix, strlen(prefix)) != 0)
            continue;
        void *zeros = mem_zalloc(p->bytes);
        if (!zeros)
            return fail_memory(p->name, p->bytes);
        graphi_status status = graphi_state_set(state, p->name, zeros, p->bytes);
        mem_free(zeros);
        TRY(status);
    }
    return GRAPHI_OK;
}

bool graphi_state_at(const graphi_state *state, int i, const char **name, graphi_dtype *dtype, int *rank, int64_t *dims)
{
    if (!state || !name || !dtype || !rank || !dims)
        return false;
    if (i < 0 || (size_t)i >= state->parameters.count)
        return false;
    const struct parameter *parameter = state->parameters.data[i];
    *name = parameter->name;
    *dtype = parameter->type.dtype;
    *rank = parameter->type.rank;
    for (int d = 0; d < parameter->type.rank; d++)
        dims[d] = parameter->type.dims[d];
    return true;
}

void graphi_state_sha256(const graphi_state *state, char hex[65])
{
    if (!hex)
        return;
    hex[0] = 0;
    if (!state)
        return;
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&hash);
    for (size_t i = 0; i < state->parameters.count; i++) {
        struct parameter *parameter = state->parameters.data[i];
        state_hold(state, parameter);
        sha256_update(&hash, strlen(parameter->name) + 1, (const uint8_t *)parameter->name);
        sha256_update(&hash, parameter->bytes, parameter->data);
        state_drop(state, parameter);
    }
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

uint64_t graphi_state_step(const graphi_state *state) { return state ? state->step : 0; }

void graphi_state_set_step(graphi_state *state, uint64_t step)
{
    if (state)
        state->step = step;
}

/* --- packed forms --- */

/* Form, sources and arguments in one block. */
static struct packed_form *form_new(const struct form_wanted *wanted)
{
    size_t sources = (size_t)wanted->sources;
    struct packed_form *form = mem_zalloc(sizeof *form + sources * (sizeof *form->in + sizeof *form->source));
    if (!form)
        return NULL;
    *form = (struct packed_form){.key = wanted->key, .sources = wanted->sources, .bytes = wanted->bytes};
    form->in = (struct kernel_array *)(form + 1);
    form->source = (struct parameter **)(form->in + sources);
    memcpy(form->source, wanted->source, sources * sizeof *form->source);
    return form;
}

static graphi_status form_undo(struct packed_form *form, const struct kernel *kernel)
{
    if (!kernel || !kernel->undo)
        return GRAPHI_OK;
    struct kernel undo = *kernel;
    undo.run = kernel->undo;
    return kernel_make(undo, kernel->params, kernel->params_bytes, &form->undo);
}

static graphi_status packed_create(graphi_state *state, const struct form_wanted *wanted, struct packed_form **out)
{
    struct packed_form *form = form_new(wanted);
    graphi_status status = form ? form_undo(form, wanted->kernel) : fail_memory("packed parameter", sizeof *form);
    if (!status) {
        form->data = arena_array(&state->arrays, wanted->bytes);
        if (!form->data || !array_reserve(&state->packed, state->packed.count + 1) ||
            !index_add(&state->packed_keys, form->key, (int32_t)state->packed.count))
            status = fail_memory("packed parameter", wanted->bytes);
    }
    if (status) {
        form_free(form);
        return status;
    }
    state->packed.data[state->packed.count++] = form;
    *out = form;
    return GRAPHI_OK;
}

static struct packed_form *find_packed(const graphi_state *state, const struct form_wanted *wanted)
{
    size_t seen = 0;
    for (int32_t i; (i = index_next(&state->packed_keys, wanted->key, &seen)) >= 0;) {
        struct packed_form *form = state->packed.data[i];
        if (form->source[0] == wanted->source[0] && form->bytes == wanted->bytes)
            return form;
    }
    return NULL;
}

size_t state_packed_missing(graphi_state *state, const struct form_wanted *wanted)
{
    state_lock(state);
    bool there = find_packed(state, wanted) != NULL;
    state_unlock(state);
    return there ? 0 : (size_t)whole_lines(wanted->bytes);
}

graphi_status state_packed(graphi_state *state, const struct form_wanted *wanted, struct packed_form **out)
{
    graphi_status status = GRAPHI_OK;
    state_lock(state);
    struct packed_form *form = find_packed(state, wanted);
    if (!form)
        status = packed_create(state, wanted, &form);
    state_unlock(state);
    if (!status)
        *out = form;
    return status;
}

/* --- inputs --- */

/* Under the mutex; NULL: none. */
static struct fed_input *find_fed(const graphi_state *state, const char *name)
{
    size_t seen = 0;
    for (int32_t i; (i = index_next(&state->fed_names, hash_string(HASH_START, name), &seen)) >= 0;)
        if (strcmp(state->fed.data[i].name, name) == 0)
            return &state->fed.data[i];
    return NULL;
}

static struct fed_input *new_fed(graphi_state *state, const char *name)
{
    struct fed_input fresh = {.name = mem_string(name)};
    if (fresh.name && array_reserve(&state->fed, state->fed.count + 1) &&
        index_add(&state->fed_names, hash_string(HASH_START, name), (int32_t)state->fed.count)) {
        state->fed.data[state->fed.count] = fresh;
        return &state->fed.data[state->fed.count++];
    }
    mem_free(fresh.name);
    return NULL;
}

bool state_take_fed(const graphi_state *state, const char *name, void *data, size_t bytes)
{
    state_lock(state);
    const struct fed_input *fed = find_fed(state, name);
    bool taken = fed && fed->bytes == bytes;
    if (taken)
        memcpy(data, fed->data, bytes);
    state_unlock(state);
    return taken;
}

void state_keep_fed(graphi_state *state, const char *name, const void *data, size_t bytes)
{
    state_lock(state);
    struct fed_input *input = find_fed(state, name);
    input = input ? input : new_fed(state, name);
    if (input && input->bytes != bytes) {
        mem_free(input->data);
        input->data = mem_alloc(bytes);
        input->bytes = input->data ? bytes : 0;
    }
    if (input && input->data)
        memcpy(input->data, data, bytes);
    state_unlock(state);
}
