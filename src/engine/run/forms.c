/* SPDX-License-Identifier: Apache-2.0 */
/* See engine/run/forms.h. Usual number: 10 to 400 forms of 1 KB to 10 MB. */
#include "engine/run/forms.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/status.h"
#include "engine/run/parameter.h"

#include <string.h>

static void block_leave(struct form_block *block)
{
    if (!block || --block->forms)
        return;
    mem_unmap(block->data, block->bytes);
    mem_free(block);
}

static void form_free(struct packed_form *form)
{
    if (!form)
        return;
    kernel_fini(&form->undo);
    block_leave(form->block);
    mem_free(form);
}

void state_free_forms(graphi_state *state)
{
    for (size_t i = 0; i < state->packed.count; i++)
        form_free(state->packed.data[i]);
    array_free(&state->packed);
    index_free(&state->packed_keys);
}

/* --- finding --- */

static struct packed_form *find(const graphi_state *state, const struct form_wanted *wanted)
{
    size_t seen = 0;
    for (int32_t i; (i = index_next(&state->packed_keys, wanted->key, &seen)) >= 0;) {
        struct packed_form *form = state->packed.data[i];
        if (form->source[0] == wanted->source[0] && form->bytes == wanted->bytes)
            return form;
    }
    return NULL;
}

static void use(struct packed_form *form, bool passing, int by)
{
    form->users += by;
    form->keepers += passing ? 0 : by;
}

/* Parameters whose only content is in the form come back. */
static void leave_home(struct packed_form *form)
{
    for (int i = 0; i < form->sources; i++) {
        struct parameter *source = form->source[i];
        if (source->home != form)
            continue;
        if (source->away)
            parameter_bring_back(source);
        source->home = NULL;
    }
}

/* Those that no run reads go; the index is of those that stay, in the room that it has. */
static void drop_unread(graphi_state *state)
{
    size_t kept = 0;
    for (size_t i = 0; i < state->packed.count; i++)
        kept += state->packed.data[i]->users > 0;
    if (kept == state->packed.count)
        return;
    index_clear(&state->packed_keys);
    kept = 0;
    for (size_t i = 0; i < state->packed.count; i++) {
        struct packed_form *form = state->packed.data[i];
        if (!form->users) {
            leave_home(form);
            form_free(form);
            continue;
        }
        index_add(&state->packed_keys, form->key, (int32_t)kept);
        state->packed.data[kept++] = form;
    }
    state->packed.count = kept;
}

/* --- making --- */

/* Form, sources and arguments in one block of memory, its content in another. */
static struct packed_form *form_new(const struct form_wanted *wanted, struct form_block *block, size_t at)
{
    const size_t sources = (size_t)wanted->sources;
    struct packed_form *form = mem_zalloc(sizeof *form + sources * (sizeof *form->in + sizeof *form->source));
    if (!form)
        return NULL;
    *form = (struct packed_form){.key = wanted->key, .sources = wanted->sources, .bytes = wanted->bytes,
                                 .block = block, .data = (unsigned char *)block->data + at};
    form->in = (struct kernel_array *)(form + 1);
    form->source = (struct parameter **)(form->in + sources);
    memcpy(form->source, wanted->source, sources * sizeof *form->source);
    block->forms++;
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

static graphi_status make(graphi_state *state, const struct form_wanted *wanted, struct form_block *block, size_t at)
{
    struct packed_form *form = form_new(wanted, block, at);
    graphi_status status = form ? form_undo(form, wanted->kernel) : fail_memory("form", sizeof *form);
    if (!status && (!array_reserve(&state->packed, state->packed.count + 1) ||
                    !index_add(&state->packed_keys, form->key, (int32_t)state->packed.count)))
        status = fail_memory("form", sizeof *form);
    if (status) {
        form_free(form);
        return status;
    }
    state->packed.data[state->packed.count++] = form;
    return GRAPHI_OK;
}

static size_t missing_bytes(const graphi_state *state, const struct form_wanted *wanted, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += find(state, &wanted[i]) ? 0 : (size_t)whole_lines((int64_t)wanted[i].bytes);
    return bytes;
}

static struct form_block *block_new(size_t bytes)
{
    struct form_block *block = mem_zalloc(sizeof *block);
    if (!block)
        return NULL;
    *block = (struct form_block){.data = mem_map(bytes), .bytes = bytes, .forms = 1}; /* one: who makes them */
    if (block->data)
        return block;
    mem_free(block);
    return NULL;
}

static graphi_status make_missing(graphi_state *state, const struct form_wanted *wanted, size_t count)
{
    const size_t bytes = missing_bytes(state, wanted, count);
    if (!bytes)
        return GRAPHI_OK;
    struct form_block *block = block_new(bytes);
    graphi_status status = block ? GRAPHI_OK : fail_memory("forms of parameters", bytes);
    size_t at = 0;
    for (size_t i = 0; i < count && !status; i++) {
        if (find(state, &wanted[i]))
            continue;
        status = make(state, &wanted[i], block, at);
        at += (size_t)whole_lines((int64_t)wanted[i].bytes);
    }
    block_leave(block);
    return status;
}

graphi_status state_take_forms(graphi_state *state, const struct form_wanted *wanted, size_t count,
                               struct packed_form **out)
{
    graphi_status status = GRAPHI_OK;
    bool complete = true;
    state_lock(state);
    for (size_t i = 0; i < count; i++) {
        out[i] = find(state, &wanted[i]);
        complete = complete && out[i];
        if (out[i])
            use(out[i], wanted[i].passing, 1);
    }
    if (!complete) {
        drop_unread(state);
        status = make_missing(state, wanted, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (!status && !out[i])
            use(out[i] = find(state, &wanted[i]), wanted[i].passing, 1);
        else if (status && out[i])
            use(out[i], wanted[i].passing, -1);
    }
    state_unlock(state);
    return status;
}

void state_give_form(graphi_state *state, struct packed_form *form, bool passing)
{
    if (!form)
        return;
    state_lock(state);
    use(form, passing, -1);
    state_unlock(state);
}

/* --- while it is made --- */

void form_renew(struct packed_form *form)
{
    if (form->gone)
        mem_renew(form->data, form->bytes);
    form->gone = false;
}

void form_made(struct packed_form *form)
{
    form->version = form_sources_version(form);
    for (int i = 0; i < form->sources && form->undo.run; i++)
        form->source[i]->home = form;
}

void form_pass(struct packed_form *form)
{
    if (form->keepers || form->gone || form->undo.run)
        return;
    form->gone = memory_give_back(form->data, form->bytes);
    form->version = form->gone ? 0 : form->version;
}
