/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue of virtual time: a binary min-heap by (time, order of insertion), so that runs repeat. Usual size:
 * one or two events a worker. */
#ifndef SCHEDULE_EVENTS_H
#define SCHEDULE_EVENTS_H

#include <stdint.h>

enum { EVENT_KIND_BITS = 3 };

struct event {
    double time;
    uint64_t order; /* insertion number << EVENT_KIND_BITS | kind: ties go to the earlier insertion */
    int32_t worker;
};

struct events {
    struct event *items;
    int count;
    uint64_t inserted;
};

static inline int event_before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static inline void event_rise(struct events *events, int hole, struct event item)
{
    while (hole > 0 && event_before(&item, &events->items[(hole - 1) >> 1])) {
        events->items[hole] = events->items[(hole - 1) >> 1];
        hole = (hole - 1) >> 1;
    }
    events->items[hole] = item;
}

static inline void event_add(struct events *events, double time, int kind, int worker)
{
    struct event item = {time, events->inserted++ << EVENT_KIND_BITS | (uint64_t)kind, worker};
    event_rise(events, events->count++, item);
}

/* The last one takes the place of the one that leaves, and goes down from there. */
static inline int event_fill(struct events *events, int hole)
{
    struct event last = events->items[--events->count];
    int count = events->count;
    for (int child = 2 * hole + 1; child < count; child = 2 * hole + 1) {
        child += child + 1 < count && event_before(&events->items[child + 1], &events->items[child]);
        if (!event_before(&events->items[child], &last))
            break;
        events->items[hole] = events->items[child];
        hole = child;
    }
    events->items[hole] = last;
    return hole;
}

static inline struct event event_take(struct events *events)
{
    struct event best = events->items[0];
    event_fill(events, 0);
    return best;
}

static inline int event_kind(const struct event *event)
{
    return (int)(event->order & ((1 << EVENT_KIND_BITS) - 1));
}

/* The event of this kind and worker, which is there, happens at another time. Goes through all of them. */
static inline void event_move(struct events *events, double time, int kind, int worker)
{
    int at = 0;
    while (events->items[at].worker != worker || event_kind(&events->items[at]) != kind)
        at++;
    int hole = event_fill(events, at);
    if (hole < events->count)
        event_rise(events, hole, events->items[hole]);
    event_add(events, time, kind, worker);
}

#endif
