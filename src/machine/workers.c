/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: which cores a run gets, and where its threads are pinned. The registry below is the only state of the process
 * that does not hang off a context.
 *
 * Invariants: a core of the captured machine is in `held` while one lease of this process has it; whoever needs more
 * cores than are free waits for its turn, first come, first served; a thread that holds a lease never waits (it would
 * wait for itself), and is not cancelled (pthread_cancel), nor is one that waits: it would take its cores and its turn
 * with it. Everything happens under the mutex except pinning the caller. Usual size: 1 to 4 leases, 2 to 256
 * cores, a lease taken per run of milliseconds to hours; taking one whose threads exist costs microseconds.
 *
 * fork(): the forking thread takes the mutex first, so the child never sees it held; in the child the registry starts
 * empty and the thread has its affinity from before its lease back. */
#include "machine/workers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "machine/pool.h"
#include "machine/private.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct lease_state {
    size_t bytes;               /* of the whole block */
    bool kept;                  /* by whoever took the lease */
    uint64_t generation;
    bool captured, pin;
    int cancel;                 /* whether the thread could be cancelled before */
    int spin_us;
    int available;              /* candidates: cores, and siblings if asked for */
    int caller_core;            /* index of the core the caller is pinned to, or -1 */
    struct lease_state *outer;  /* of the same thread */
    bool saved, moved;          /* `mask` is known; the caller was pinned */
    struct cpu_mask mask;       /* of the caller, before */
    struct worker **worker;     /* [count] */
    int *core;                  /* [count] candidates, in the end cores of the machine */
    int *seat;                  /* [available] that core of each candidate, */
    int *os;                    /* [available] and its hardware thread */
    uint8_t *use;               /* [available] */
};
enum { FREE, LOCKED, UNLOCKED, TAKEN_PINNED, TAKEN }; /* of a candidate: our lock on it, or not; with a worker */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;       /* `held` or `serving` */
    unsigned next, serving;       /* turns */
    struct cpu_mask held;
    uint64_t generation;          /* counts forks; written by a child while it has one thread */
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static atomic_uint_least64_t taken_leases;

uint64_t lease_count(void) { return atomic_load_explicit(&taken_leases, memory_order_relaxed); }

static _Thread_local struct lease_state *innermost; /* leases of this thread, by `outer` */

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

static void before_fork(void) { pthread_mutex_lock(&registry.mutex); }

static void after_fork_parent(void) { pthread_mutex_unlock(&registry.mutex); }

static void after_fork_child(void)
{
    pthread_mutex_init(&registry.mutex, NULL); /* the thread that owns it may be one that the child does not have */
    pthread_cond_init(&registry.changed, NULL);
    registry.next = registry.serving = 0;
    registry.held = (struct cpu_mask){{0}};
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

static bool held(const struct lease_state *state, int candidate)
{
    return state->captured && mask_has(&registry.held, state->os[candidate]);
}

static int free_cores(const struct lease_state *state)
{
    int count = 0;
    for (int i = 0; i < state->available; i++)
        count += !held(state, i);
    return count;
}

static bool may_go(const struct lease_state *state, unsigned turn, int workers)
{
    return turn == registry.serving && free_cores(state) >= workers;
}

static graphi_status wait_for_turn(struct lease_state *state, struct lease *lease)
{
    if ((innermost || pool_is_worker()) && !may_go(state, registry.next, lease->count))
        return fail(GRAPHI_INVALID, "lease", "found %d free cores while this thread is part of a lease, expected %d",
                    free_cores(state), lease->count);
    unsigned turn = registry.next++;
    if (may_go(state, turn, lease->count))
        return GRAPHI_OK;
    int64_t begin = clock_ns();
    while (!may_go(state, turn, lease->count))
        pthread_cond_wait(&registry.changed, &registry.mutex);
    lease->waited_ns = clock_ns() - begin;
    return GRAPHI_OK;
}

static void end_turn(void)
{
    registry.serving++;
    pthread_cond_broadcast(&registry.changed);
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
        mask_add(&registry.held, state->os[i]);
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
        mask_remove(&registry.held, state->os[i]);
    }
    pthread_cond_broadcast(&registry.changed);
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
    machine_seats(machine, options->groups, options->width, state->seat);
    for (int i = machine->cores; i < available; i++)
        state->seat[i] = i;
    for (int i = 0; i < available; i++)
        state->os[i] = machine->core[state->seat[i]].os_index;
    state->captured = machine->captured;
    state->pin = options->pin && machine->captured;
    state->spin_us = options->spin_us > 0 ? options->spin_us : 50;
    state->generation = registry.generation;
    return state;
}

static graphi_status take(struct lease_state *state, const struct lease_options *options, struct lease *lease)
{
    if (state->captured)
        TRY(wait_for_turn(state, lease));
    reserve(state, lease, options->caller_extra);
    graphi_status status = get_threads(state, lease, options->caller_extra ? 0 : 1);
    if (status != GRAPHI_OK) {
        return_threads(lease);
        unreserve(state);
    }
    if (state->captured)
        end_turn();
    return status;
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

graphi_status lease_take(const graphi_machine *machine, const struct lease_options *options, struct lease *lease)
{
    int available = machine->cores + (options->siblings ? machine->siblings : 0);
    if (options->workers < 1 || options->workers > available)
        return fail(GRAPHI_INVALID, "lease", "found %d workers, expected 1 to %d (the cores of the machine)",
                    options->workers, available);
    struct lease_state *state = state_create(machine, options, available);
    if (!state)
        return fail_memory("lease", sizeof *state);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state->cancel);
    struct lease taken = {.count = options->workers, .worker = state->worker, .core = state->core, .state = state};
    state->saved = sched_getaffinity(0, sizeof state->mask, mask_set(&state->mask)) == 0;
    lease_saved_mask(&state->mask);
    atomic_fetch_add_explicit(&taken_leases, 1, memory_order_relaxed); /* a count, of nothing else */
    state->outer = innermost;
    pthread_mutex_lock(&registry.mutex);
    graphi_status status = take(state, options, &taken);
    if (status == GRAPHI_OK)
        innermost = state; /* under the mutex: a fork comes before, or after all of it */
    pthread_mutex_unlock(&registry.mutex);
    if (status != GRAPHI_OK) {
        state_end(state);
        return status;
    }
    pin_caller(state, &taken);
    for (int i = 0; i < taken.count; i++)
        state->core[i] = state->seat[state->core[i]];
    *lease = taken;
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

void lease_release(struct lease *lease)
{
    struct lease_state *state = lease->state;
    if (state && lease_valid(lease)) {
        unlink_state(state);
        restore_caller(state);
        pthread_mutex_lock(&registry.mutex);
        return_threads(lease);
        unreserve(state);
        pthread_mutex_unlock(&registry.mutex);
    }
    if (state)
        state_end(state);
    *lease = (struct lease){0};
}

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
    pthread_mutex_lock(&registry.mutex);
    core_lock_folder(path);
    pthread_mutex_unlock(&registry.mutex);
}
