/* SPDX-License-Identifier: Apache-2.0 */
/* The static driver in virtual time: executors go through their lists, and what they wait for reaches them a message
 * after its end. An entry costs nothing beside its task. Whose list ends wakes those alone that wait for it. */
#include "schedule/simulated_play.h"

#include "base/memory.h"
#include "base/status.h"
#include "schedule/static_order.h"

#include <math.h>

/* Of an executor, which stands before the next task of its list. */
struct listener {
    int32_t next, ended; /* entry; so many have */
    bool heard;          /* what the task waits for has ended, and all of it is known here at `at` */
    double at;
    int waiting, other; /* the first that waits for this one; the next that waits for whom this one waits; < 0: none */
};

struct listeners {
    struct listener *slots;
    double *end; /* of an entry */
};

/* The first list that is not far enough for the slot's next task; NULL: there is none, and *at is when all is known. */
static const struct static_wait *unmet(const struct world *w, int slot, double *at)
{
    const struct listeners *own = w->own;
    const struct static_order *o = w->schedule->order;
    const struct static_entry *e = &o->entries[own->slots[slot].next];
    *at = w->now;
    if (w->schedule->tasks->wait_of && w->schedule->tasks->wait_of[e->task] >= 0)
        *at = fmax(*at, w->schedule->wake_ns); /* when messages come */
    for (const struct static_wait *wait = o->waits + e->waits; wait < o->waits + e[1].waits; wait++) {
        if (own->slots[wait->slot].ended < wait->ended)
            return wait;
        *at = fmax(*at, own->end[o->begin[wait->slot] + wait->ended - 1] + w->schedule->wake_ns);
    }
    return NULL;
}

/* What its next task waits for; starts it, where that is known already. */
static void listen(struct world *w, int slot)
{
    struct listeners *own = w->own;
    struct listener *x = &own->slots[slot];
    const struct static_order *o = w->schedule->order;
    const int worker = w->schedule->slots[slot].first;
    x->heard = false;
    if (x->next < o->begin[slot + 1] && o->entries[x->next].width) {
        const struct static_wait *wait = unmet(w, slot, &x->at);
        x->heard = !wait;
        if (wait) {
            x->other = own->slots[wait->slot].waiting;
            own->slots[wait->slot].waiting = slot;
        } else if (x->at > w->now) {
            w->scheduling += x->at - w->now;
            event_add(&w->events, x->at, EVENT_ARRIVES, worker);
        }
    }
    world_go_on(w, worker);
}

static bool start_own(struct world *w, int worker)
{
    struct schedule *s = w->schedule;
    struct listeners *own = w->own;
    struct listener *x = &own->slots[s->executors[worker].slot];
    if (!x->heard || x->at > w->now)
        return false;
    const struct static_entry *e = &s->order->entries[x->next];
    if (s->policy->free_width)
        s->executors[worker].members = s->order->workers + e->team;
    world_start(w, e->task, (struct seat){(uint16_t)worker, e->width, e->spread}, false);
    return true;
}

/* The slot's list is farther by one. */
static void tell(struct world *w, int slot)
{
    struct listeners *own = w->own;
    int waiting = own->slots[slot].waiting;
    own->slots[slot].waiting = -1;
    listen(w, slot);
    while (waiting >= 0) { /* who still waits for this one comes back to it */
        const int other = own->slots[waiting].other;
        listen(w, waiting);
        waiting = other;
    }
}

static void ended(struct world *w, int worker, int32_t task)
{
    (void)task;
    const struct schedule *s = w->schedule;
    struct listeners *own = w->own;
    const struct static_entry *e = &s->order->entries[own->slots[s->executors[worker].slot].next];
    const uint16_t *workers = s->order->workers + e->team;
    const int lists = lists_of(s, e->width);
    for (int i = 0; i < lists; i++) {
        struct listener *x = &own->slots[s->executors[workers[i]].slot];
        w->over = own->end[x->next++] = w->now;
        x->ended++;
    }
    for (int i = 0; i < lists; i++)
        tell(w, s->executors[workers[i]].slot);
}

static void begin(struct world *w)
{
    for (int i = 0; i < w->schedule->slots_count; i++)
        listen(w, i);
}

graphi_status simulate_static(struct schedule *s, task_duration duration, void *context, struct simulation *out)
{
    static const struct playing playing = {begin, start_own, ended, NULL};
    if (!s->order)
        return GRAPHI_OK; /* no tasks */
    const size_t slots = (size_t)s->slots_count;
    struct listeners own = {.slots = mem_zalloc_array(slots, sizeof *own.slots),
                          .end = mem_zalloc_array((size_t)s->order->begin[slots], sizeof *own.end)};
    graphi_status status = GRAPHI_OK;
    if (!own.slots || !own.end) {
        status = fail_memory("simulation", slots * sizeof *own.slots);
    } else {
        for (size_t i = 0; i < slots; i++)
            own.slots[i] = (struct listener){.next = s->order->begin[i], .waiting = -1, .other = -1};
        status = world_play(s, duration, context, &playing, &own, 0, out);
        if (!status)
            static_note(s);
    }
    mem_free(own.slots);
    mem_free(own.end);
    return status;
}
