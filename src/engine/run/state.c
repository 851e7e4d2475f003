/* SPDX-License-Identifier: Apache-2.0 */
/* States: see include/graphi/state.h and engine/run/state.h. Usual size: 4 to 300 parameters, up to 100 MB. */
#include "engine/run/state.h"

#include "base/float_mode.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/status.h"
#include "engine/run/forms.h"
#include "engine/run/initialize.h"
#include "engine/run/parameter.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parameter_free(struct parameter *parameter)
{
    if (!parameter)
        return;
    mem_free(parameter->name);
    mem_free(parameter);
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

/* Room for arrays of so many bytes in one block, which is large enough for huge pages though each array may not be. */
static graphi_status state_reserve(graphi_state *state, size_t bytes)
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
    state_free_forms(state);
    arena_free(&state->arrays);
    array_free(&state->parameters);
    for (size_t i = 0; i < state->fed.count; i++) {
        mem_free(state->fed.data[i].name);
        mem_free(state->fed.data[i].data);
    }
    array_free(&state->fed);
    index_free(&state->fed_names);
    pthread_mutex_destroy(&state->mutex);
    mem_free(state);
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

graphi_status state_settable(const graphi_state *state, const struct parameter *parameter)
{
    if (!parameter->adopted || !state->runs)
        return GRAPHI_OK;
    char where[200];
    snprintf(where, sizeof where, "parameter '%s'", parameter->name);
    return fail(GRAPHI_INVALID, where, "found it to be changed in memory that was adopted, while %d runs read it, "
                                       "expected none", state->runs);
}

/* Its own memory again, under the mutex; `data` is of the size of all of it. */
static void leave_adopted(struct parameter *parameter)
{
    if (!parameter->adopted)
        return;
    mem_renew(parameter->own, parameter->bytes);
    parameter->data = parameter->own;
    parameter->adopted = false;
}

graphi_status graphi_state_set(graphi_state *state, const char *name, const void *data, size_t bytes)
{
    GIVEN(state);
    struct parameter *parameter;
    TRY(find_parameter(state, name, data, bytes, &parameter));
    state_lock(state);
    graphi_status status = state_settable(state, parameter);
    if (!status) {
        leave_adopted(parameter);
        if (parameter->away)
            mem_renew(parameter->data, bytes);
        parameter->away = false; /* all of it is written */
        memcpy(parameter->data, data, bytes);
        parameter->version++;
        state_changed(state);
    }
    state_unlock(state);
    return status;
}

graphi_status state_own(graphi_state *state, struct parameter *parameter)
{
    state_lock(state);
    const void *data = parameter->data;
    graphi_status status = state_settable(state, parameter);
    if (!status && parameter->adopted) {
        leave_adopted(parameter);
        memcpy(parameter->data, data, parameter->bytes);
    }
    state_unlock(state);
    return status;
}

static graphi_status check_adoptable(const graphi_state *state, const struct parameter *parameter, const void *data)
{
    char where[200];
    snprintf(where, sizeof where, "parameter '%s'", parameter->name);
    const size_t element = graphi_dtype_size(parameter->type.dtype);
    if ((uintptr_t)data % element)
        return fail(GRAPHI_INVALID, where, "found memory %zu bytes behind a multiple of %zu, expected it aligned",
                    (size_t)((uintptr_t)data % element), element);
    if (state->runs)
        return fail(GRAPHI_INVALID, where, "found %d runs of the state, expected it to be adopted before they are made",
                    state->runs);
    return GRAPHI_OK;
}

graphi_status graphi_state_adopt(graphi_state *state, const char *name, const void *data, size_t bytes)
{
    GIVEN(state);
    struct parameter *parameter;
    TRY(find_parameter(state, name, data, bytes, &parameter));
    state_lock(state);
    graphi_status status = check_adoptable(state, parameter, data);
    if (!status) {
        if (!parameter->adopted) {
            parameter->own = parameter->data;
            memory_give_back(parameter->own, bytes);
        }
        parameter->data = (void *)(uintptr_t)data;
        parameter->adopted = true;
        parameter->away = false;
        parameter->version++;
        state_changed(state);
    }
    state_unlock(state);
    return status;
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
