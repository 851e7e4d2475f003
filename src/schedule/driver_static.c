/* SPDX-License-Identifier: Apache-2.0 */
/* The static driver: no step is taken during an execution. Each executor runs its list (static_order.h), waits where a
 * predecessor is in another one until that list is far enough, and tells how far its own is: one store a task, and a
 * line of memory travels where somebody looks at what has ended since. For short operations, whose steps would cost as
 * much as they do. Where a policy forms teams a task is in the lists of all of its team's. Who waits takes part in what
 * others run (joining); nobody takes over from an executor that is late. */
#include "schedule/scheduler.h"

#include "machine/parking.h"
#include "schedule/static_order.h"

/* False: a task has failed. */
static bool await(struct schedule *s, struct executor *x, const struct static_wait *wait, int32_t *seen)
{
    const atomic_int *ended = &s->executors[s->slots[wait->slot].first].ended;
    unsigned spins = 0;
    while (*seen < wait->ended) {
        *seen = atomic_load_explicit(ended, memory_order_acquire); /* pairs with the store in run_list() */
        if (*seen >= wait->ended)
            return true;
        if (atomic_load_explicit(&s->failed, memory_order_relaxed)) /* as in run_list() */
            return false;
        if (executor_help(s, x))
            spins = 0;
        else
            spin_turn(&spins);
    }
    return true;
}

static bool await_all(struct schedule *s, struct executor *x, const struct static_entry *entry, int32_t *seen)
{
    for (int32_t i = entry->waits; i < entry[1].waits; i++)
        if (!await(s, x, &s->order->waits[i], &seen[s->order->waits[i].slot]))
            return false;
    return true;
}

/* Until the leader of its team has asked for it. False: a task has failed; the driver still serves who asks later. */
static bool serve(struct schedule *s, struct executor *x)
{
    for (unsigned spins = 0; !team_poll(&s->boxes[x->index]); spin_turn(&spins))
        if (atomic_load_explicit(&s->failed, memory_order_relaxed)) /* as in run_list() */
            return false;
    return true;
}

static void lead(struct schedule *s, struct executor *x, const struct static_entry *e)
{
    if (s->policy->free_width)
        x->members = s->order->workers + e->team;
    executor_one(s, x, e->task, e->width, false);
}

static void run_list(struct schedule *s, struct executor *x)
{
    const struct static_order *o = s->order;
    const struct static_entry *begin = o->entries + o->begin[x->slot], *end = o->entries + o->begin[x->slot + 1];
    int32_t *seen = o->seen + (size_t)x->slot * (size_t)o->row;
    for (int i = 0; i < s->slots_count; i++)
        seen[i] = 0;
    for (const struct static_entry *e = begin; e < end; e++) {
        /* relaxed: a failure seen late only starts a task whose result nobody will use */
        if (!await_all(s, x, e, seen) || atomic_load_explicit(&s->failed, memory_order_relaxed))
            break;
        if (e + 1 < end)
            executor_fetch(s, e[1].task);
        if (e->width && !message_await(s, x, e->task))
            break;
        if (e->width)
            lead(s, x, e);
        else if (!serve(s, x))
            break;
        /* release: results are there for whoever awaits() this */
        atomic_store_explicit(&x->ended, (int)(e - begin) + 1, memory_order_release);
    }
}

/* Members of teams, and who has come to the end of its list, leave when all lists have ended. */
void static_worker(void *context, int worker)
{
    struct schedule *s = context;
    struct executor *x = &s->executors[worker];
    if (s->slots[x->slot].first == worker) {
        run_list(s, x);
        if (atomic_fetch_add_explicit(&s->completions, 1, memory_order_relaxed) + 1 == (unsigned)s->slots_count)
            atomic_store_explicit(&s->finished, 1, memory_order_release); /* pairs with executor_follow() */
    }
    executor_follow(s, x);
}

void static_note(struct schedule *s)
{
    const struct tasks *t = s->tasks;
    s->decisions = s->order->decisions;
    for (int32_t i = 0; s->records && i < t->count; i++)
        s->records[i].ready_ns = 0;
    for (int32_t i = 0; s->records && i < t->count; i++)
        for (int32_t e = t->edges_begin[i]; e < t->edges_begin[i + 1]; e++)
            if (s->records[t->edges[e]].ready_ns < s->records[i].end_ns)
                s->records[t->edges[e]].ready_ns = s->records[i].end_ns;
}
