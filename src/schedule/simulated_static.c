/* SPDX-License-Identifier: Apache-2.0 */
/* The static driver in virtual time: executors go through their lists, and what they wait for reaches them a message
 * after its end. An entry costs nothing beside its task. */
#include "base/memory.h"
#include "base/status.h"
#include "schedule/events.h"
#include "schedule/scheduler.h"
#include "schedule/static_order.h"

#include <math.h>

enum { EVENT_ENDS, EVENT_STARTS };
enum waiting { NOT, WAITS, HEARD }; /* heard: what it waited for is under way to it */

struct listed {
    int32_t next, ended; /* entry; so many have */
    enum waiting waiting;
    int position; /* in running[] */
};

struct static_world {
    struct schedule *schedule;
    task_duration duration;
    void *context;
    struct events events;
    struct listed *slots;
    int32_t *running, *running_slot;
    int running_count;
    double *end; /* of an entry */
    double now, busy, scheduling, corunning, changes;
};

static void changed(struct static_world *w)
{
    w->changes++;
    w->corunning += w->running_count;
}

static void start(struct static_world *w, int slot)
{
    struct schedule *s = w->schedule;
    const struct static_entry *e = &s->order->entries[w->slots[slot].next];
    const struct seat seat = {.leader = s->slots[slot].first, .width = (uint16_t)e->width};
    const double ns = w->duration ? w->duration(w->context, e->task, seat, w->running, w->running_count)
                                  : curve_ns(&s->tasks->curves[s->tasks->curve_of[e->task]], e->width);
    w->slots[slot].waiting = NOT;
    w->slots[slot].position = w->running_count;
    w->running_slot[w->running_count] = slot;
    w->running[w->running_count++] = e->task;
    changed(w);
    w->busy += ns * e->width;
    if (s->records) {
        s->records[e->task] = (struct task_record){.start_ns = whole_ns(w->now),
                                                   .end_ns = whole_ns(w->now + ns),
                                                   .leader = seat.leader,
                                                   .width = seat.width};
        executor_note_team(s, &s->executors[seat.leader], e->task, e->width);
    }
    w->end[w->slots[slot].next] = w->now + ns;
    event_add(&w->events, w->now + ns, EVENT_ENDS, slot);
}

/* When what the next entry waits for has reached the slot; < 0: not all of it has ended. */
static double heard_at(const struct static_world *w, int slot)
{
    const struct static_order *o = w->schedule->order;
    const struct static_entry *e = &o->entries[w->slots[slot].next];
    double at = w->now;
    for (int32_t i = e->waits; i < e[1].waits; i++) {
        const struct static_wait *wait = &o->waits[i];
        if (w->slots[wait->slot].ended < wait->ended)
            return -1;
        at = fmax(at, w->end[o->begin[wait->slot] + wait->ended - 1] + w->schedule->wake_ns);
    }
    return at;
}

/* The next of its list, where there is one. */
static void go_on(struct static_world *w, int slot)
{
    struct listed *x = &w->slots[slot];
    x->waiting = NOT;
    if (x->next == w->schedule->order->begin[slot + 1])
        return;
    const double at = heard_at(w, slot);
    x->waiting = at < 0 ? WAITS : HEARD;
    if (at < 0)
        return;
    w->scheduling += at - w->now;
    event_add(&w->events, at, EVENT_STARTS, slot);
}

static void ends(struct static_world *w, int slot)
{
    struct listed *x = &w->slots[slot];
    changed(w); /* it counts among those side by side until now */
    const int last = --w->running_count, position = x->position;
    w->running[position] = w->running[last];
    w->running_slot[position] = w->running_slot[last];
    w->slots[w->running_slot[position]].position = position;
    x->next++;
    x->ended++;
    go_on(w, slot);
    for (int i = 0; i < w->schedule->slots_count; i++)
        if (w->slots[i].waiting == WAITS)
            go_on(w, i);
}

static void play(struct static_world *w)
{
    for (int i = 0; i < w->schedule->slots_count; i++) {
        w->slots[i].next = w->schedule->order->begin[i];
        go_on(w, i);
    }
    while (w->events.count) {
        const struct event event = event_take(&w->events);
        w->now = event.time;
        (event_kind(&event) == EVENT_ENDS ? ends : start)(w, event.worker);
    }
}

graphi_status simulate_static(struct schedule *s, task_duration duration, void *context, struct simulation *out)
{
    *out = (struct simulation){0};
    TRY(schedule_decide(s));
    if (!s->order)
        return GRAPHI_OK; /* no tasks */
    const size_t slots = (size_t)s->slots_count;
    struct static_world w = {.schedule = s, .duration = duration, .context = context};
    w.slots = mem_zalloc_array(slots, sizeof *w.slots);
    w.running = mem_zalloc_array(2 * slots, sizeof *w.running);
    w.events.items = mem_zalloc_array(slots + 1, sizeof *w.events.items);
    w.end = mem_zalloc_array((size_t)s->tasks->count, sizeof *w.end);
    graphi_status status = GRAPHI_OK;
    if (!w.slots || !w.running || !w.events.items || !w.end) {
        status = fail_memory("simulation", slots * sizeof *w.slots);
    } else {
        w.running_slot = w.running + slots;
        play(&w);
        static_note(s);
        *out = (struct simulation){.makespan_ns = w.now,
                                   .busy_ns = w.busy,
                                   .scheduling_ns = w.scheduling,
                                   .mean_corunning = w.changes > 0 ? w.corunning / w.changes : 0};
    }
    mem_free(w.slots);
    mem_free(w.running);
    mem_free(w.events.items);
    mem_free(w.end);
    return status;
}
