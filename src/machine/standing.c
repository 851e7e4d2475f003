/* SPDX-License-Identifier: Apache-2.0 */
/* A lease that outlives executions. Its threads stay its own, asleep between executions; who of them is which worker of
 * an execution depends on the setting of the run, whose executors want tiles of their own. That is arranged once and
 * kept until another setting comes.
 *
 * `owner` is the one word that threads share: the thread that has claimed the lease. All else is the owner's, handed on
 * by the release store of who drops it and the acquire of who claims it next. Usual size: one a NUMA node, solver or
 * lane of a server. */
#include "machine/standing.h"

#include "base/memory.h"
#include "base/place.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct arranged {
    int workers, groups, width;
    bool extra;
};

struct graphi_lease {
    const graphi_machine *machine;
    struct lease held;
    struct place_on place;       /* of memory; zeroed: wherever it is first written */
    char note[160];              /* of that */
    const struct place_on *placed; /* what the owner had before it entered */
    _Atomic(const void *) owner; /* NULL: nobody */
    int claims;                  /* of the owner, nested */
    bool entered;                /* the owner is pinned */
    graphi_lease *around;        /* that the owner has entered before */
    struct arranged arranged;    /* zeroed: not yet */
    struct worker **worker;      /* [count], as arranged */
    int *core, *order;           /* [count] each */
};

static _Thread_local graphi_lease *entered; /* by `around` */
static _Thread_local char this_thread;      /* whose address no other has */

/* A child of fork() has the variable of the thread that forked, and none of its leases. */
graphi_lease *standing_entered(void)
{
    while (entered && !lease_valid(&entered->held))
        entered = entered->around;
    return entered;
}

static bool is_mine(const graphi_lease *lease)
{
    /* relaxed: only this thread stores that address */
    return atomic_load_explicit(&lease->owner, memory_order_relaxed) == &this_thread;
}

graphi_status standing_claim(graphi_lease *lease)
{
    if (!lease_valid(&lease->held))
        return fail(GRAPHI_INVALID, "lease", "found one that was taken before fork(), expected one of this process");
    const void *nobody = NULL;
    /* pairs with the release in standing_drop() */
    if (!atomic_compare_exchange_strong_explicit(&lease->owner, &nobody, &this_thread, memory_order_acquire,
                                                 memory_order_relaxed) &&
        nobody != &this_thread)
        return fail(GRAPHI_INVALID, "lease", "found that another thread has entered it, expected one thread at a time");
    lease->claims++;
    return GRAPHI_OK;
}

static void enter(graphi_lease *lease)
{
    if (lease->entered)
        return;
    lease_enter(&lease->held);
    lease->entered = true;
    lease->placed = place_set(&lease->place);
    lease->around = entered;
    entered = lease;
}

static void leave(graphi_lease *lease)
{
    graphi_lease **link = &entered;
    while (*link && *link != lease)
        link = &(*link)->around;
    if (*link)
        *link = lease->around;
    lease_leave(&lease->held);
    place_set(lease->placed);
    lease->entered = false;
}

void standing_drop(graphi_lease *lease)
{
    if (--lease->claims)
        return;
    if (lease->entered)
        leave(lease);
    atomic_store_explicit(&lease->owner, NULL, memory_order_release); /* pairs with the acquire in standing_claim() */
}

graphi_status graphi_lease_enter(graphi_lease *lease)
{
    GIVEN(lease);
    TRY(standing_claim(lease));
    enter(lease);
    return GRAPHI_OK;
}

graphi_status graphi_lease_leave(graphi_lease *lease)
{
    GIVEN(lease);
    if (!is_mine(lease))
        return fail(GRAPHI_INVALID, "lease", "found a thread that has not entered it, expected the one that has");
    standing_drop(lease);
    return GRAPHI_OK;
}

/* --- what an execution gets --- */

/* The thread that has entered is worker 0, on the first core. */
static void arrange_with_caller(graphi_lease *lease, const struct arranged *wanted)
{
    machine_seats(lease->machine, lease->held.core, lease->held.count, wanted->groups, wanted->width, lease->order);
}

/* The thread that has entered is the dedicated driver: on a core of its own, where the lease has one more than workers,
 * else on that of the last worker. */
static graphi_status arrange_beside_caller(graphi_lease *lease, const struct arranged *wanted)
{
    const int count = lease->held.count, *core = lease->held.core;
    if (count > wanted->workers) {
        machine_seats(lease->machine, core + 1, count - 1, wanted->groups, wanted->width, lease->order);
        for (int i = 0; i < count - 1; i++)
            lease->order[i]++;
        return GRAPHI_OK;
    }
    TRY(lease_first_thread(&lease->held));
    machine_seats(lease->machine, core, count, wanted->groups, wanted->width, lease->order);
    for (int i = 0, j = count - 1; i < j; i++, j--) { /* executors are neighbours still */
        const int seat = lease->order[i];
        lease->order[i] = lease->order[j];
        lease->order[j] = seat;
    }
    return GRAPHI_OK;
}

static graphi_status arrange(graphi_lease *lease, const struct arranged *wanted)
{
    if (memcmp(&lease->arranged, wanted, sizeof *wanted) == 0)
        return GRAPHI_OK;
    lease->arranged = (struct arranged){0};
    if (wanted->extra)
        TRY(arrange_beside_caller(lease, wanted));
    else
        arrange_with_caller(lease, wanted);
    for (int i = 0; i < wanted->workers; i++) {
        const int seat = lease->order[i];
        lease->core[i] = lease->held.core[seat];
        lease->worker[i] = i == 0 && !wanted->extra ? NULL : lease->held.worker[seat];
    }
    memcpy(&lease->arranged, wanted, sizeof *wanted);
    return GRAPHI_OK;
}

graphi_status standing_use(graphi_lease *lease, const graphi_machine *machine, const struct lease_options *options,
                           int workers, struct lease *view)
{
    struct arranged wanted;
    memset(&wanted, 0, sizeof wanted); /* compared as bytes */
    wanted.workers = workers;
    wanted.groups = options->groups;
    wanted.width = options->width;
    wanted.extra = options->caller_extra;
    if (machine->captured != lease->machine->captured)
        return fail(GRAPHI_INVALID, "lease", "found one of %s, expected one of a machine %s", lease->machine->name,
                    machine->captured ? "at hand" : "that is described");
    if (workers > lease->held.count)
        return fail(GRAPHI_INVALID, "lease", "found one of %d thread%s, expected %d or more, as the run's setting has",
                    lease->held.count, lease->held.count == 1 ? "" : "s", workers);
    enter(lease);
    TRY(arrange(lease, &wanted));
    lease_spin(&lease->held, options->spin_us);
    *view = lease->held;
    view->count = workers;
    view->worker = lease->worker;
    view->core = lease->core;
    view->waited_ns = 0;
    view->shares_core = wanted.extra && workers == lease->held.count;
    return GRAPHI_OK;
}

/* --- taking and giving back --- */

static void destroy(graphi_lease *lease)
{
    lease_give_back(&lease->held);
    mem_free(lease->worker);
    mem_free(lease->core);
    mem_free(lease);
}

/* The nodes near the cores of the lease, of the kind that is wanted; false: there is none. */
static bool near_nodes(const graphi_lease *lease, bool high_bandwidth, struct place_on *place)
{
    const graphi_machine *m = lease->machine;
    bool found = false;
    for (int n = 0; m->node && n < m->memory_nodes; n++)
        for (int i = 0; i < lease->held.count; i++)
            if (m->node[n].near == m->core[lease->held.core[i]].numa &&
                (high_bandwidth ? m->node[n].high_bandwidth : n < m->numa_nodes)) {
                place_add(place, m->node[n].os_index);
                found = true;
            }
    return found;
}

static void note(graphi_lease *lease, const char *what, int error)
{
    const size_t used = strlen(lease->note);
    snprintf(lease->note + used, sizeof lease->note - used, "%s%s (%s)", used ? "; " : "", what, strerror(error));
}

/* Where memory of who enters will lie. */
static graphi_status place(graphi_lease *lease, const graphi_lease_options *asked)
{
    struct place_on *to = &lease->place;
    const bool wanted = asked->bind == GRAPHI_ON || asked->high_bandwidth ||
                        (asked->bind == GRAPHI_DEFAULT && lease->machine->system_nodes > 1);
    to->only = asked->bind == GRAPHI_ON;
    to->bind = wanted && asked->bind != GRAPHI_OFF && lease->machine->captured &&
               ((asked->high_bandwidth && near_nodes(lease, true, to)) || near_nodes(lease, false, to));
    const int error = to->bind ? place_try_bind(to) : 0;
    if (error) {
        to->bind = false;
        note(lease, "memory is not bound to its node", error);
    }
    if (asked->bind == GRAPHI_ON && !to->bind)
        return fail(GRAPHI_UNSUPPORTED, "binding", "found that %s, expected memory to be bound",
                    error ? lease->note : "the nodes of the machine are not known");
    const int refused = asked->huge_pages ? place_try_huge() : 0;
    to->huge = asked->huge_pages && !refused;
    if (refused)
        note(lease, "no huge pages are reserved", refused);
    return GRAPHI_OK;
}

static graphi_status take(graphi_lease *lease, const graphi_lease_options *asked)
{
    const int threads = asked->threads ? asked->threads : lease->machine->cores;
    const struct lease_options options = {
        .workers = threads, .cores = asked->cores, .standing = true, .pin = asked->pin != GRAPHI_OFF};
    TRY(lease_reserve(lease->machine, &options, &lease->held));
    const size_t count = (size_t)threads;
    lease->worker = mem_zalloc_array(count, sizeof *lease->worker);
    lease->core = mem_zalloc_array(2 * count, sizeof *lease->core);
    lease->order = lease->core + count;
    if (!lease->worker || !lease->core)
        return fail_memory("lease", 4 * count * sizeof *lease->core);
    if (asked->pin == GRAPHI_ON && !lease->held.pinned)
        return fail(GRAPHI_UNSUPPORTED, "pinning", "found that %s, expected a core for each thread",
                    lease->held.note[0] ? lease->held.note : "the machine is described");
    return place(lease, asked);
}

graphi_status graphi_lease_take(const graphi_machine *machine, const graphi_lease_options *options, graphi_lease **out)
{
    GIVEN(machine);
    GIVEN(out);
    const graphi_lease_options none = {0}, *asked = options ? options : &none;
    if (asked->cores && asked->threads < 1)
        return fail(GRAPHI_INVALID, "lease", "found a list of cores and %d threads, expected how many cores it names",
                    asked->threads);
    graphi_lease *lease = mem_zalloc(sizeof *lease);
    if (!lease)
        return fail_memory("lease", sizeof *lease);
    lease->machine = machine;
    graphi_status status = take(lease, asked);
    if (status)
        destroy(lease);
    else
        *out = lease;
    return status;
}

graphi_status graphi_lease_release(graphi_lease *lease)
{
    if (!lease)
        return GRAPHI_OK;
    if (lease_valid(&lease->held)) {
        if (!is_mine(lease))
            TRY(standing_claim(lease)); /* refused where another thread is in it */
        lease->claims = 1;
        standing_drop(lease);
    }
    destroy(lease);
    return GRAPHI_OK;
}

void graphi_lease_get_info(const graphi_lease *lease, graphi_lease_info *info)
{
    if (!info)
        return;
    *info = (graphi_lease_info){0};
    if (!lease)
        return;
    *info = (graphi_lease_info){.threads = lease->held.count,
                                .cores = lease->held.core,
                                .pinned = lease->held.pinned,
                                .bound = lease->place.bind,
                                .waited_ms = (double)lease->held.waited_ns / 1e6};
    const char *between = lease->held.note[0] && lease->note[0] ? "; " : "";
    snprintf(info->note, sizeof info->note, "%s%s%s", lease->held.note, between, lease->note);
}
