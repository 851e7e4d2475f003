/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue of virtual time: a binary min-heap by (time, order of insertion), so that runs repeat. Usual size:
 * one or two events a worker. */
#ifndef ENGINE_EVENTS_H
#define ENGINE_EVENTS_H

#include <stdint.h>

struct event {
    double time;
    uint64_t order; /* insertion number << 2 | kind: ties go to the earlier insertion */
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

static inline void event_add(struct events *events, double time, int kind, int worker)
{
    struct event item = {time, events->inserted++ << 2 | (uint64_t)kind, worker};
    int hole = events->count++;
    while (hole > 0 && event_before(&item, &events->items[(hole - 1) >> 1])) {
        events->items[hole] = events->items[(hole - 1) >> 1];
        hole = (hole - 1) >> 1;
    }
    events->items[hole] = item;
}

static inline struct event event_take(struct events *events)
{
    struct event best = events->items[0], last = events->items[--events->count];
    int hole = 0, count = events->count;
    for (int child = 1; child < count; child = 2 * hole + 1) {
        child += child + 1 < count && event_before(&events->items[child + 1], &events->items[child]);
        if (!event_before(&events->items[child], &last))
            break;
        events->items[hole] = events->items[child];
        hole = child;
    }
    events->items[hole] = last;
    return best;
}

static inline int event_kind(const struct event *event)
{
    return (int)(event->order & 3);
}

#endif
