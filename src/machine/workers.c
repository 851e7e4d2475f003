/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: which cores a run gets, and where its threads are pinned. The registry of cores (turns.c) and what is below
 * are the only state of the process that does not hang off a context.
 *
 * Invariants: a core of the captured machine is held while one lease of this process has it; whoever needs more cores
 * than are free waits for its turn (turns.h); a thread that has a part in a lease never waits (it would wait for
 * itself), and is not cancelled (pthread_cancel) while it executes, nor is one that waits: it would take its cores and
 * its turn with it. Everything happens under the mutex except pinning the caller. Usual size: 1 to 4 leases, 2 to 256
 * cores, a lease taken per run of milliseconds to hours; taking one whose threads exist costs microseconds.
 *
 * A lease is reserved (cores, threads) and entered (the calling thread becomes worker 0, and is pinned). One that
 * stands is entered by one thread after the other, or not at all.
 *
 * fork(): the forking thread takes the mutex first, so the child never sees it held; in the child the registry starts
 * empty and the thread has its affinity from before its lease back. */
#include "machine/workers.h"

#include "base/memory.h"
#include "base/status.h"
#include "machine/pool.h"
#include "machine/private.h"
#include "machine/turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct lease_state {
    size_t bytes;               /* of the whole block */
    bool kept;                  /* by whoever took the lease */
    uint64_t generation;
    bool captured, pin, standing;
    int cancel;                 /* whether the thread could be cancelled before */
    int spin_us;
    int available;              /* candidates: cores, and siblings if asked for */
    int caller_core;            /* index of the core the caller is pinned to, or -1 */
    struct turn turn;
    struct lease_state *outer;  /* of the same thread */
    struct lease_state *next;   /* that stands */
    _Atomic(const void *) user; /* of one that stands: who took it, or entered it last; relaxed: a thread looks for
                                   itself alone */
    bool saved, moved;          /* `mask` is known; the caller was pinned */
    struct cpu_mask mask;       /* of the caller, before */
    struct worker **worker;     /* [count] */
    int *core;                  /* [count] candidates, in the end cores of the machine */
    int *seat;                  /* [available] that core of each candidate, */
    int *os;                    /* [available] and its hardware thread */
    uint8_t *use;               /* [available] */
};
enum { SPIN_US = 50 };
enum { FREE, LOCKED, UNLOCKED, TAKEN_PINNED, TAKEN }; /* of a candidate: our lock on it, or not; with a worker */

static struct {
    struct lease_state *standing;
    uint64_t generation; /* counts forks; written by a child while it has one thread */
} registry;

static atomic_uint_least64_t taken_leases;

uint64_t lease_count(void) { return atomic_load_explicit(&taken_leases, memory_order_relaxed); }

static _Thread_local struct lease_state *innermost; /* leases that this thread has entered, by `outer` */
static _Thread_local char this_thread;              /* whose address no other has */

bool lease_saved_mask(struct cpu_mask *mask)
{
    const struct lease_state *first = NULL; /* that moved this thread */
    for (const struct lease_state *state = innermost; state; state = state->outer)
        if (state->moved)
            first = state;
    if (first)
        *mask = first->mask;
    return first;
}

/* --- fork --- */

static void before_fork(void) { turns_lock(); }

static void after_fork_parent(void) { turns_unlock(); }

static void after_fork_child(void)
{
    turns_forget();
    registry.standing = NULL;
    registry.generation++;
    pool_forget();
    core_lock_forget();
    struct cpu_mask mask;
    if (lease_saved_mask(&mask))
        sched_setaffinity(0, sizeof mask, mask_set(&mask));
    innermost = NULL;
}

/* Before main() or as the library is loaded: a fork of another thread that has begun does not run handlers that are
 * registered meanwhile, and its child would wait for cores of threads that it does not have. */
__attribute__((constructor)) static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* --- which cores --- */

/* By this or another lease, or kept for who came earlier. */
static bool held(const struct lease_state *state, int candidate)
{
    const int os = state->os[candidate];
    return state->captured && (turns_held(os) || mask_has(&state->turn.kept, os));
}

/* Does a lease that this thread has taken, and nobody entered since, hold one of the candidates? */
static bool waits_for_own(const struct lease_state *state)
{
    for (const struct lease_state *other = registry.standing; other; other = other->next)
        for (int i = 0; i < other->available; i++)
            if (atomic_load_explicit(&other->user, memory_order_relaxed) == &this_thread && other->use[i] != FREE)
                for (int j = 0; j < state->available; j++)
                    if (state->os[j] == other->os[i])
                        return true;
    return false;
}

static graphi_status wait_for_turn(struct lease_state *state, struct lease *lease)
{
    if (turns_may_go(&state->turn))
        return GRAPHI_OK;
    if (innermost || pool_is_worker())
        return fail(GRAPHI_INVALID, "lease", "found %d free cores while this thread is part of a lease, expected %d",
                    turns_free(&state->turn), lease->count);
    if (waits_for_own(state))
        return fail(GRAPHI_INVALID, "lease",
                    "found %d free cores beside the lease that this thread has taken, expected %d, or that it enters "
                    "it (graphi_lease_enter)",
                    turns_free(&state->turn), lease->count);
    lease->waited_ns = turns_wait(&state->turn);
    return GRAPHI_OK;
}

/* Tries for another process's lock on a candidate that is free in this one. */
static void try_lock(struct lease_state *state, int candidate, struct lease *lease, int *foreign)
{
    int holder = 0;
    switch (core_lock_take(state->os[candidate], &holder)) {
    case CORE_OURS:
        state->use[candidate] = LOCKED;
        return;
    case CORE_UNKNOWN:
        state->use[candidate] = LOCKED;
        snprintf(lease->note, sizeof lease->note, "no lock file: other processes may be pinned to the same cores");
        return;
    case CORE_FOREIGN:
        state->use[candidate] = UNLOCKED;
        if (++*foreign > 1)
            return;
        char who[32] = "another process"; /* of a container whose numbers this one is not told */
        if (holder > 0)
            snprintf(who, sizeof who, "process %d", holder);
        snprintf(lease->note, sizeof lease->note, "core %d is held by %s: not pinned", state->os[candidate], who);
    }
}

/* Returns how many candidates are locked, at most `wanted`; *foreign are not. */
static int try_candidates(struct lease_state *state, int wanted, struct lease *lease, int *foreign)
{
    int locked = 0;
    *foreign = 0;
    for (int i = 0; i < state->available && locked < wanted; i++) {
        if (held(state, i))
            continue;
        if (state->pin)
            try_lock(state, i, lease, foreign);
        else
            state->use[i] = UNLOCKED, ++*foreign;
        locked += state->use[i] == LOCKED;
        if (!state->pin && *foreign == wanted)
            break;
    }
    return locked;
}

static void release_candidates(struct lease_state *state, struct lease *lease)
{
    for (int i = 0; i < state->available; i++) {
        if (state->use[i] == LOCKED)
            core_lock_release(state->os[i]);
        state->use[i] = FREE;
    }
    lease->note[0] = 0;
}

/* Marks `wanted` candidates, those that no other process holds first; fewer where there are no more. */
static void choose(struct lease_state *state, int wanted, int workers, struct lease *lease)
{
    int foreign, locked = try_candidates(state, wanted, lease, &foreign);
    if (state->pin && core_lock_renew()) {
        release_candidates(state, lease);
        locked = try_candidates(state, wanted, lease, &foreign);
    }
    int unlocked = locked < workers ? workers - locked : 0;
    if (state->pin && unlocked == 0 && foreign)
        lease->note[0] = 0; /* others were in the way, but there were cores enough */
    if (state->pin && unlocked > 1)
        snprintf(lease->note + strlen(lease->note), sizeof lease->note - strlen(lease->note),
                 unlocked == 2 ? " (nor is another worker)" : " (nor are %d more workers)", unlocked - 1);
    if (!state->pin)
        unlocked = foreign;
    for (int i = 0; i < state->available; i++)
        if (state->use[i] == UNLOCKED)
            state->use[i] = unlocked-- > 0 ? UNLOCKED : FREE;
}

/* Gives workers their cores in order, and the caller's, where it is an extra one. */
static void assign(struct lease_state *state, struct lease *lease, bool extra)
{
    int count = 0;
    state->caller_core = -1;
    for (int i = 0; i < state->available; i++) {
        if (state->use[i] == FREE)
            continue;
        if (count < lease->count)
            state->core[count++] = i;
        else if (extra && state->caller_core < 0)
            state->caller_core = i;
        state->use[i] = state->use[i] == LOCKED ? TAKEN_PINNED : TAKEN;
        turns_hold(state->os[i], state->standing);
        lease->pinned = lease->pinned && state->use[i] == TAKEN_PINNED;
    }
    lease->shares_core = extra && state->caller_core < 0;
    if (!extra)
        state->caller_core = state->core[0];
    else if (lease->shares_core)
        state->caller_core = state->core[lease->count - 1];
}

static void reserve(struct lease_state *state, struct lease *lease, bool extra)
{
    lease->pinned = state->pin;
    if (state->captured) {
        choose(state, lease->count + extra, lease->count, lease);
        assign(state, lease, extra);
        return;
    }
    for (int i = 0; i < lease->count; i++)
        state->core[i] = i;
    state->caller_core = lease->count - !extra;
    lease->shares_core = extra && lease->count == state->available;
}

static void unreserve(struct lease_state *state)
{
    for (int i = 0; i < state->available; i++) {
        if (state->use[i] == FREE)
            continue;
        if (state->use[i] == TAKEN_PINNED)
            core_lock_release(state->os[i]);
        turns_drop(state->os[i]);
    }
    turns_changed();
}

/* --- taking and giving back --- */

static bool pinned(const struct lease_state *state, int candidate)
{
    return candidate >= 0 && candidate < state->available && state->use[candidate] == TAKEN_PINNED;
}

/* The allowed set was narrowed since the machine was looked at. */
static void note_refusal(struct lease *lease, int cpu, const char *whom, int error)
{
    lease->pinned = false;
    snprintf(lease->note, sizeof lease->note, "core %d refuses %s (%s): not pinned", cpu, whom, strerror(error));
}

static graphi_status get_threads(struct lease_state *state, struct lease *lease, int first)
{
    for (int i = first; i < lease->count; i++) {
        int core = state->core[i], refused;
        TRY(pool_take(pinned(state, core) ? state->os[core] : -1, &state->mask, &state->worker[i], &refused));
        if (refused)
            note_refusal(lease, state->os[core], "a worker", refused);
    }
    return GRAPHI_OK;
}

static void return_threads(const struct lease *lease)
{
    for (int i = 0; i < lease->count; i++)
        if (lease->worker[i])
            pool_return(lease->worker[i]);
}

/* In the caller's room, which grows to it, or else of this lease alone. */
static struct lease_state *state_alloc(struct lease_state **room, size_t bytes)
{
    struct lease_state *state = room ? *room : NULL;
    if (!state || state->bytes < bytes) {
        state = mem_alloc(bytes);
        if (!state)
            return NULL;
        state->bytes = bytes;
        if (room) {
            mem_free(*room);
            *room = state;
        }
    }
    bytes = state->bytes;
    memset(state, 0, bytes);
    state->bytes = bytes;
    state->kept = room;
    return state;
}

static void state_free(struct lease_state *state)
{
    if (!state->kept)
        mem_free(state);
}

/* When a lease ends, or could not be had. */
static void state_end(struct lease_state *state)
{
    int cancel = state->cancel;
    state_free(state);
    pthread_setcancelstate(cancel, NULL);
}

static struct lease_state *state_create(const graphi_machine *machine, const struct lease_options *options,
                                        int available)
{
    size_t workers = (size_t)options->workers, candidates = (size_t)available;
    struct lease_state *state =
        state_alloc(options->room, sizeof *state + candidates * (sizeof(struct worker *) + 3 * sizeof(int) + 1));
    if (!state)
        return NULL;
    state->worker = (struct worker **)(state + 1);
    state->core = (int *)(state->worker + workers);
    state->seat = state->core + workers;
    state->os = state->seat + candidates;
    state->use = (uint8_t *)(state->os + candidates);
    state->available = available;
    if (options->cores)
        memcpy(state->seat, options->cores, candidates * sizeof *state->seat);
    else
        machine_seats(machine, NULL, machine->cores, options->groups, options->width, state->seat);
    for (int i = machine->cores; i < available && !options->cores; i++)
        state->seat[i] = i;
    for (int i = 0; i < available; i++)
        state->os[i] = machine->core[state->seat[i]].os_index;
    state->captured = machine->captured && !machine->shared;
    state->pin = options->pin && state->captured;
    state->spin_us = options->spin_us > 0 ? options->spin_us : SPIN_US;
    state->generation = registry.generation;
    state->standing = options->standing;
    state->turn = (struct turn){.os = state->os, .available = available, .workers = options->workers};
    return state;
}

/* Cores and threads, under the mutex. */
static graphi_status reserve_all(struct lease_state *state, const struct lease_options *options, struct lease *lease)
{
    if (state->captured)
        TRY(wait_for_turn(state, lease));
    reserve(state, lease, options->caller_extra);
    graphi_status status = get_threads(state, lease, options->caller_extra ? 0 : 1);
    if (status != GRAPHI_OK) {
        return_threads(lease);
        unreserve(state);
        return status;
    }
    atomic_store_explicit(&state->user, &this_thread, memory_order_relaxed);
    if (state->standing) {
        state->next = registry.standing;
        registry.standing = state;
    }
    return GRAPHI_OK;
}

/* Pins the calling thread; a refusal leaves it where it is. */
static void pin_caller(struct lease_state *state, struct lease *lease)
{
    if (!state->saved || !pinned(state, state->caller_core))
        return;
    struct cpu_mask one = {{0}};
    int cpu = state->os[state->caller_core];
    mask_add(&one, cpu);
    state->moved = sched_setaffinity(0, sizeof one, mask_set(&one)) == 0;
    if (!state->moved)
        note_refusal(lease, cpu, "the calling thread", errno);
}

static graphi_status check_cores(const graphi_machine *machine, const struct lease_options *options)
{
    for (int i = 0; options->cores && i < options->workers; i++) {
        bool twice = false;
        for (int j = 0; j < i; j++)
            twice = twice || options->cores[j] == options->cores[i];
        if (options->cores[i] < 0 || options->cores[i] >= machine->cores || twice)
            return fail(GRAPHI_INVALID, "lease", "found core %d%s, expected different ones from 0 to %d",
                        options->cores[i], twice ? " twice" : "", machine->cores - 1);
    }
    return GRAPHI_OK;
}

static void own_mask(struct lease_state *state)
{
    state->saved = sched_getaffinity(0, sizeof state->mask, mask_set(&state->mask)) == 0;
    lease_saved_mask(&state->mask);
}

graphi_status lease_reserve(const graphi_machine *machine, const struct lease_options *options, struct lease *lease)
{
    int available = machine->cores + (options->siblings ? machine->siblings : 0);
    if (options->workers < 1 || options->workers > available)
        return fail(GRAPHI_INVALID, "lease", "found %d workers, expected 1 to %d (the cores of the machine)",
                    options->workers, available);
    TRY(check_cores(machine, options));
    struct lease_state *state = state_create(machine, options, options->cores ? options->workers : available);
    if (!state)
        return fail_memory("lease", sizeof *state);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state->cancel);
    struct lease taken = {.count = options->workers, .worker = state->worker, .core = state->core, .state = state};
    own_mask(state);
    atomic_fetch_add_explicit(&taken_leases, 1, memory_order_relaxed); /* a count, of nothing else */
    turns_lock();
    graphi_status status = reserve_all(state, options, &taken);
    turns_unlock();
    if (status != GRAPHI_OK) {
        state_end(state);
        return status;
    }
    for (int i = 0; i < taken.count; i++)
        state->core[i] = state->seat[state->core[i]];
    if (state->standing)
        pthread_setcancelstate(state->cancel, NULL);
    if (machine->shared)
        snprintf(taken.note, sizeof taken.note, "parts of the machine share cores: not pinned");
    *lease = taken;
    return GRAPHI_OK;
}

void lease_enter(struct lease *lease)
{
    struct lease_state *state = lease->state;
    if (state->standing)
        own_mask(state);
    atomic_store_explicit(&state->user, &this_thread, memory_order_relaxed);
    turns_lock(); /* a fork comes before, or after all of it */
    state->outer = innermost;
    innermost = state;
    turns_unlock();
    pin_caller(state, lease);
}

graphi_status lease_take(const graphi_machine *machine, const struct lease_options *options, struct lease *lease)
{
    TRY(lease_reserve(machine, options, lease));
    lease_enter(lease);
    return GRAPHI_OK;
}

static void unlink_state(struct lease_state *state)
{
    struct lease_state **link = &innermost;
    while (*link && *link != state)
        link = &(*link)->outer;
    if (*link)
        *link = state->outer;
}

/* Where the lease had left the thread alone, it is where others want it. */
static void restore_caller(const struct lease_state *state)
{
    if (!state->moved)
        return;
    struct cpu_mask mask = state->mask;
    const struct lease_state *around = innermost;
    while (around && !around->moved)
        around = around->outer;
    if (around) { /* back to the core of the lease around this one */
        mask = (struct cpu_mask){{0}};
        mask_add(&mask, around->os[around->caller_core]);
    }
    sched_setaffinity(0, sizeof mask, mask_set(&mask));
}

void lease_leave(struct lease *lease)
{
    struct lease_state *state = lease->state;
    if (!lease_valid(lease))
        return;
    unlink_state(state);
    restore_caller(state);
    state->moved = false;
}

static void unlink_standing(struct lease_state *state)
{
    struct lease_state **link = &registry.standing;
    while (*link && *link != state)
        link = &(*link)->next;
    if (*link)
        *link = state->next;
}

void lease_give_back(struct lease *lease)
{
    struct lease_state *state = lease->state;
    if (state && lease_valid(lease)) {
        turns_lock();
        unlink_standing(state);
        return_threads(lease);
        unreserve(state);
        turns_unlock();
    }
    if (state && state->standing)
        state_free(state);
    else if (state)
        state_end(state);
    *lease = (struct lease){0};
}

void lease_release(struct lease *lease)
{
    if (lease->state)
        lease_leave(lease);
    lease_give_back(lease);
}

graphi_status lease_first_thread(struct lease *lease)
{
    struct lease_state *state = lease->state;
    int refused = 0;
    if (lease->worker[0])
        return GRAPHI_OK;
    turns_lock();
    const int first = state->caller_core;
    graphi_status status = pool_take(pinned(state, first) ? state->os[first] : -1, &state->mask, &state->worker[0],
                                     &refused);
    turns_unlock();
    if (!status && refused)
        note_refusal(lease, state->os[first], "a worker", refused);
    return status;
}

void lease_spin(struct lease *lease, int spin_us) { lease->state->spin_us = spin_us > 0 ? spin_us : SPIN_US; }

bool lease_valid(const struct lease *lease) { return lease->state && lease->state->generation == registry.generation; }

/* --- work --- */

void lease_start(struct lease *lease, worker_body body, void *context)
{
    if (!lease_valid(lease))
        return;
    for (int i = 0; i < lease->count; i++)
        if (lease->worker[i])
            pool_send(lease->worker[i], body, context, i, lease->state->spin_us);
}

void lease_wait(struct lease *lease)
{
    if (!lease_valid(lease))
        return;
    for (int i = 0; i < lease->count; i++)
        if (lease->worker[i])
            pool_wait(lease->worker[i], lease->state->spin_us);
}

void workers_lock_folder(const char *path)
{
    turns_lock();
    core_lock_folder(path);
    turns_unlock();
}
