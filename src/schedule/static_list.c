/* SPDX-License-Identifier: Apache-2.0 */
/* List scheduling in virtual time over predicted durations, for policies whose executors are all alike. Whenever an
 * executor is free it gets, of the tasks whose predecessors have ended, the first by the policy's order
 *  - among those whose predecessors on other executors ended a while ago: a wait of theirs is over even if some of the
 *    tasks take longer than predicted, and the other one's results have arrived;
 *  - else among those of which it knows by now that they have ended, which takes a message.
 * Where all of it takes no longer on one executor, since messages cost more than is shared out, that one gets all.
 * Time in proportion to tasks and edges, times the executors that idle; once a run. */
#include "schedule/static_order.h"

#include "base/memory.h"
#include "base/status.h"
#include "schedule/edges.h"
#include "schedule/events.h"
#include "schedule/scheduler.h"

#include <math.h>

enum { LIST_ENDS, LIST_ARRIVES };
enum { LOOKS = 16 }; /* ready tasks that are weighed for an executor, at most */

static const double ENTRY_NS = 30; /* what an entry costs beside its task */
/* "A while ago", in mean tasks: found on two cores by graphi bench scheduling-cost. */
static const double WHILE_TASKS = 12, MOST_WHILE_NS = 50000;

struct listing {
    struct schedule *s;
    struct placement *placement;
    int32_t *from_begin, *from; /* predecessors */
    struct events events;
    int slots; /* that get tasks */
    double now, while_ns;
    int32_t *pending, *slot, *running; /* of a task; of a task; of a slot, < 0: idle */
    double *end;                       /* of a task */
    int heard;                         /* so many messages have come */
};

static uint16_t width_of(const struct schedule *s, int slot, int32_t task)
{
    return s->inlining && (s->tasks->flags[task] & TASK_INLINE) ? 1 : s->slots[slot].width;
}

static void make_ready(struct listing *l, int32_t task)
{
    struct schedule *s = l->s;
    const struct ready item = {s->policy->key(s, task), task};
    s->arrivals++;
    heap_push(&s->fixed.heap, item);
}

/* When the last of its predecessors on other executors ended; < 0: there is none. *none: of those here. */
static double last_elsewhere(const struct listing *l, int slot, int32_t task, bool *none)
{
    double last = -1;
    for (int32_t e = l->from_begin[task]; e < l->from_begin[task + 1]; e++)
        if (l->slot[l->from[e]] != slot)
            last = fmax(last, l->end[l->from[e]]);
        else
            *none = false;
    return last;
}

/* A ready task for the slot, taken out; -1: none, and *next is when there will be. With `stranger` it has run nothing
 * before any of those looked at. */
static int32_t take(struct listing *l, int slot, double *next, bool *stranger)
{
    struct heap *heap = &l->s->fixed.heap;
    struct ready looked[LOOKS];
    int count = 0, known = -1, best = -1;
    *next = INFINITY;
    *stranger = true;
    while (heap->count && count < LOOKS && best < 0) {
        looked[count] = heap_pop(heap);
        const double last = last_elsewhere(l, slot, looked[count].task, stranger),
                     there = last < 0 ? l->now : last + l->s->wake_ns;
        if (last < 0 || there + l->while_ns <= l->now)
            best = count;
        else if (there > l->now)
            *next = fmin(*next, there);
        else if (known < 0)
            known = count;
        count++;
    }
    best = best < 0 ? known : best;
    for (int i = 0; i < count; i++)
        if (i != best)
            heap_push(heap, looked[i]);
    return best < 0 ? -1 : looked[best].task;
}

static void start(struct listing *l, int slot, int32_t task)
{
    bool none = true;
    const double message = last_elsewhere(l, slot, task, &none) < 0 ? 0 : l->s->wake_ns;
    placement_add(l->placement, task, (struct seat){l->s->slots[slot].first, width_of(l->s, slot, task), false},
                  &l->s->slots[slot].first, 1);
    l->slot[task] = slot;
    l->running[slot] = task;
    l->end[task] = l->now + ENTRY_NS + message + l->s->cost[task];
    event_add(&l->events, l->end[task], LIST_ENDS, slot);
}

/* Who has just ended something comes first: its results are there. What a stranger cannot have another one cannot have,
 * of dozens that idle. */
static void start_idle(struct listing *l, int first)
{
    double soonest = INFINITY;
    int who = -1;
    bool stranger = false;
    for (int i = 0; i < l->slots && l->s->fixed.heap.count && !stranger; i++) {
        const int slot = (first + i) % l->slots;
        double next;
        if (l->running[slot] >= 0)
            continue;
        const int32_t task = take(l, slot, &next, &stranger);
        if (task >= 0) {
            start(l, slot, task);
            stranger = false;
        } else if (next < soonest) {
            soonest = next, who = slot;
        }
    }
    if (who >= 0)
        event_add(&l->events, soonest, LIST_ARRIVES, who);
}

static void ends(struct listing *l, int slot)
{
    const struct tasks *t = l->s->tasks;
    const int32_t task = l->running[slot];
    l->running[slot] = -1;
    for (int32_t e = t->edges_begin[task]; e < t->edges_begin[task + 1]; e++)
        if (--l->pending[t->edges[e]] == 0)
            make_ready(l, t->edges[e]);
}

/* Nothing is left but what waits for messages: the next one comes, in array order. So no list holds up, by a message
 * that it waits for, what the sender may wait for, if peers have their messages in one order. False: there is none. */
static bool hear_message(struct listing *l)
{
    const struct tasks *t = l->s->tasks;
    while (l->heard < t->waits_count) {
        const int32_t task = t->waits[l->heard++];
        if (--l->pending[task] == 0) {
            make_ready(l, task);
            return true;
        }
    }
    return false;
}

/* The makespan of so many slots. */
static double list(struct listing *l, int slots)
{
    struct schedule *s = l->s;
    heap_clear(&s->fixed.heap);
    s->arrivals = 0;
    l->slots = slots;
    l->now = 0;
    placement_clear(l->placement);
    l->events.count = 0;
    for (int32_t i = 0; i < s->tasks->count; i++) {
        l->pending[i] = s->tasks->pending[i];
        l->slot[i] = -1;
    }
    l->heard = 0;
    for (int i = 0; i < s->tasks->waits_count; i++)
        l->pending[s->tasks->waits[i]]++;
    for (int i = 0; i < slots; i++)
        l->running[i] = -1;
    for (int i = 0; i < s->roots_count; i++)
        make_ready(l, s->roots[i]);
    start_idle(l, 0);
    while (l->events.count || (hear_message(l) && (start_idle(l, 0), l->events.count))) {
        const struct event event = event_take(&l->events);
        l->now = event.time;
        if (event_kind(&event) == LIST_ENDS)
            ends(l, event.worker);
        start_idle(l, event.worker);
    }
    return l->now;
}

static void list_all(struct listing *l)
{
    const struct schedule *s = l->s;
    double alone = 0;
    for (int32_t i = 0; i < s->tasks->count; i++)
        alone += ENTRY_NS + s->cost[i];
    l->while_ns = fmin(WHILE_TASKS * alone / s->tasks->count, MOST_WHILE_NS);
    if (s->slots_count > 1 && list(l, s->slots_count) < alone)
        return;
    list(l, 1);
}

graphi_status place_by_list(struct schedule *s, struct placement *placement)
{
    const size_t count = (size_t)s->tasks->count, slots = (size_t)s->slots_count;
    struct listing l = {.s = s, .placement = placement};
    int32_t *integers = mem_zalloc_array(2 * count + slots, sizeof *integers);
    l.end = mem_zalloc_array(count, sizeof *l.end);
    l.events.items = mem_zalloc_array(count + 2 * slots + 2, sizeof *l.events.items);
    graphi_status status =
        integers && l.end && l.events.items
            ? edges_predecessors(s->tasks->count, s->tasks->edges_begin, s->tasks->edges, &l.from_begin, &l.from)
            : fail_memory("static order", count * sizeof *l.end);
    if (!status) {
        l.pending = integers;
        l.slot = l.pending + count;
        l.running = l.slot + count;
        list_all(&l);
        mem_free(l.from_begin);
        mem_free(l.from);
    }
    mem_free(integers);
    mem_free(l.end);
    mem_free(l.events.items);
    return status;
}
