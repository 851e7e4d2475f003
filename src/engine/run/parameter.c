/* SPDX-License-Identifier: Apache-2.0 */
/* Where a parameter's content is, and the mutex under which it may move: see engine/run/parameter.h. */
#include "engine/run/parameter.h"

#include "base/memory.h"

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

/* --- under the mutex --- */

/* Smaller ones stay: giving their pages back would cut the block into more mappings than it saves pages. */
enum { LEAST_RELEASED = 64 << 10 };

bool memory_give_back(void *data, size_t bytes) { return bytes >= LEAST_RELEASED && mem_release(data, bytes); }

uint64_t form_sources_version(const struct packed_form *form)
{
    uint64_t version = 0;
    for (int i = 0; i < form->sources; i++)
        version += form->source[i]->version;
    return version;
}

bool form_is_stale(const struct packed_form *form) { return form->version != form_sources_version(form); }

void parameter_bring_back(struct parameter *parameter)
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

void parameter_hold(struct parameter *parameter)
{
    if (parameter->away)
        parameter_bring_back(parameter);
    parameter->holders++;
}

void parameter_drop(struct parameter *parameter)
{
    if (--parameter->holders || parameter->adopted || !parameter->home || form_is_stale(parameter->home))
        return;
    parameter->away = memory_give_back(parameter->data, parameter->bytes);
}

void state_hold(const graphi_state *state, struct parameter *parameter)
{
    state_lock(state);
    parameter_hold(parameter);
    state_unlock(state);
}

void state_drop(const graphi_state *state, struct parameter *parameter)
{
    state_lock(state);
    parameter_drop(parameter);
    state_unlock(state);
}

void state_count_runs(graphi_state *state, int by)
{
    state_lock(state);
    state->runs += by;
    state_unlock(state);
}
