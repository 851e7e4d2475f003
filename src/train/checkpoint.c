/* SPDX-License-Identifier: Apache-2.0 */
/* A state as a safetensors file and back: every parameter, the step, the seed, and strings of the caller (where the
 * data stand). A load is checked whole before the first parameter changes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/status.h"
#include "engine/run/parameter.h"
#include "engine/run/state.h"
#include "train/safetensors.h"

/* A checkpoint may be this large. */
#define CHECKPOINT_MOST ((size_t)1 << 40)

enum { OWN_PAIRS = 3, MOST_PAIRS = 64 };

graphi_status graphi_state_save(const graphi_state *state, const char *path, int count, const char *const *keys,
                                const char *const *values)
{
    GIVEN(state);
    char step[24], seed[24];
    struct tensor_pair pairs[OWN_PAIRS + MOST_PAIRS] = {
        {"graphi.version", graphi_version()}, {"graphi.step", step}, {"graphi.seed", seed}};
    if (count < 0 || count > MOST_PAIRS)
        return fail(GRAPHI_INVALID, path, "found %d further strings, expected 0 to %d", count, MOST_PAIRS);
    snprintf(step, sizeof step, "%" PRIu64, state->step);
    snprintf(seed, sizeof seed, "%" PRIu64, state->seed);
    for (int i = 0; i < count; i++) {
        if (!keys || !values || !keys[i] || !values[i])
            return fail(GRAPHI_INVALID, path, "found no text as string %d, expected a key and a value", i);
        pairs[OWN_PAIRS + i] = (struct tensor_pair){keys[i], values[i]};
    }
    size_t tensors = state->parameters.count;
    struct tensor_entry *entries = mem_zalloc_array(tensors, sizeof *entries);
    if (!entries)
        return fail_memory(path, tensors * sizeof *entries);
    for (size_t i = 0; i < tensors; i++) {
        struct parameter *p = state->parameters.data[i];
        state_hold(state, p);
        entries[i] = (struct tensor_entry){
            .name = p->name, .dtype = p->type.dtype, .rank = p->type.rank, .data = p->data, .bytes = p->bytes};
        memcpy(entries[i].dims, p->type.dims, sizeof entries[i].dims);
    }
    graphi_status status = safetensors_save(path, entries, tensors, pairs, (size_t)(OWN_PAIRS + count));
    for (size_t i = 0; i < tensors; i++)
        state_drop(state, state->parameters.data[i]);
    mem_free(entries);
    return status;
}

static bool same_shape(const struct parameter *p, const struct tensor_entry *entry)
{
    const size_t dims = sizeof *entry->dims * (size_t)entry->rank;
    return !entry->unsupported && entry->dtype == p->type.dtype && entry->rank == p->type.rank &&
           entry->bytes == p->bytes && memcmp(entry->dims, p->type.dims, dims) == 0;
}

/* What is carried from batch to batch of evaluation ("eval/...") is never kept: it need not be there, and is of another
 * shape where training evaluated in batches of another size. */
static bool optional(const struct parameter *p) { return strncmp(p->name, "eval/", 5) == 0; }

static graphi_status check(const graphi_state *state, const char *path, const struct tensor_file *file)
{
    for (size_t i = 0; i < state->parameters.count; i++) {
        const struct parameter *p = state->parameters.data[i];
        const struct tensor_entry *entry = safetensors_find(file, p->name);
        char expected[96];
        type_text(&p->type, expected, sizeof expected);
        TRY(state_settable(state, p));
        if (optional(p))
            continue;
        if (!entry)
            return fail(GRAPHI_INVALID, path, "found no parameter '%s', expected %s", p->name, expected);
        if (entry->unsupported)
            return fail(GRAPHI_UNSUPPORTED, path, "found parameter '%s' of %s, expected %s", p->name,
                        entry->unsupported, expected);
        if (!same_shape(p, entry)) {
            struct value_type type = {.dtype = entry->dtype, .rank = entry->rank, .symbol = -1};
            char found[96];
            memcpy(type.dims, entry->dims, sizeof type.dims);
            type_text(&type, found, sizeof found);
            return fail(GRAPHI_INVALID, path, "found parameter '%s' as %s, expected %s", p->name, found, expected);
        }
    }
    return GRAPHI_OK;
}

/* *out stays when the key is missing: files of other programs have no step. */
static graphi_status read_number(const struct tensor_file *file, const char *path, const char *key, uint64_t *out)
{
    const char *text = safetensors_metadata(file, key);
    char *end;
    if (!text)
        return GRAPHI_OK;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno) /* strtoull takes blanks and signs too */
        return fail(GRAPHI_INVALID, path, "found %s = '%s', expected a whole number", key, text);
    *out = value;
    return GRAPHI_OK;
}

static graphi_status take(graphi_state *state, const char *path, const struct tensor_file *file)
{
    uint64_t step = state->step, seed = state->seed;
    TRY(check(state, path, file));
    TRY(read_number(file, path, "graphi.step", &step));
    TRY(read_number(file, path, "graphi.seed", &seed));
    for (size_t i = 0; i < state->parameters.count; i++) {
        struct parameter *p = state->parameters.data[i];
        const struct tensor_entry *entry = safetensors_find(file, p->name);
        if (entry && same_shape(p, entry))
            TRY(graphi_state_set(state, p->name, entry->data, entry->bytes));
    }
    state->seed = seed;
    graphi_state_set_step(state, step);
    return GRAPHI_OK;
}

graphi_status graphi_state_load(graphi_state *state, const char *path,
                                void (*extra)(void *context, const char *key, const char *value), void *context)
{
    struct tensor_file file;
    TRY(safetensors_load(path, CHECKPOINT_MOST, &file));
    graphi_status status = state ? take(state, path, &file) : GRAPHI_OK;
    for (size_t i = 0; i < file.pair_count && status == GRAPHI_OK && extra; i++)
        extra(context, file.pairs[i].key, file.pairs[i].value);
    safetensors_free(&file);
    return status;
}
