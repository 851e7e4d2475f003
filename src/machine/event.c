/* SPDX-License-Identifier: Apache-2.0 */
/* A message is a generation: the sender counts up `sent`, the receiver `taken`, each on lines of its own, so that who
 * waits reads its own cache until the message comes. No pointers lie in the memory that is shared. A message costs one
 * line to travel there, and one back before the next. */
#include "machine/event.h"

#include "base/memory.h"
#include "base/status.h"
#include "graphi/run.h"

#include <stdatomic.h>
#include <stdio.h>

#define CANCELLED ((uint64_t)1 << 63)

/* Two lines apart, as processors fetch lines in pairs, and aligned no more than the heap and shared memory are. */
struct event_lines {
    _Alignas(GRAPHI_ALIGNMENT) atomic_uint_least64_t sent; /* by the sender; with CANCELLED by anybody */
    char apart[120];
    atomic_uint_least64_t taken; /* by the receiver */
    char rest[120];
};
_Static_assert(sizeof(struct event_lines) == GRAPHI_EVENT_BYTES, "what the header promises");

struct graphi_event {
    struct event_lines own;
    struct event_lines *lines;
    char name[96];
};

const char *event_name(const graphi_event *event) { return event->name; }

graphi_status graphi_event_create(const char *name, void *memory, graphi_event **out)
{
    GIVEN(name);
    GIVEN(out);
    if ((uintptr_t)memory % GRAPHI_ALIGNMENT)
        return fail(GRAPHI_INVALID, name, "found memory at %p, expected it aligned to %d bytes", memory,
                    (int)GRAPHI_ALIGNMENT);
    graphi_event *event = mem_zalloc(sizeof *event);
    if (!event)
        return fail_memory("event", sizeof *event);
    event->lines = memory ? memory : &event->own;
    snprintf(event->name, sizeof event->name, "%s", name);
    *out = event;
    return GRAPHI_OK;
}

void graphi_event_destroy(graphi_event *event) { mem_free(event); }

static graphi_status cancelled(const graphi_event *event)
{
    return fail(GRAPHI_INVALID, event->name, "found that its messages are cancelled, as the other side has failed, "
                                             "expected one (graphi_event_reset begins anew)");
}

graphi_status graphi_event_send(graphi_event *event)
{
    GIVEN(event);
    struct event_lines *lines = event->lines;
    uint64_t sent = atomic_load_explicit(&lines->sent, memory_order_relaxed); /* nobody else counts */
    /* pairs with the release in event_take(): the receiver has read what the message before was about */
    const uint64_t taken = atomic_load_explicit(&lines->taken, memory_order_acquire);
    if (sent & CANCELLED)
        return cancelled(event);
    if (sent != taken)
        return fail(GRAPHI_INVALID, event->name, "found a message that nobody has taken yet, expected one at a time");
    /* release: pairs with the acquire in event_state(). Fails where it is cancelled meanwhile. */
    if (!atomic_compare_exchange_strong_explicit(&lines->sent, &sent, sent + 1, memory_order_release,
                                                 memory_order_relaxed))
        return cancelled(event);
    return GRAPHI_OK;
}

enum event_state event_state(const graphi_event *event)
{
    /* acquire: pairs with the release in graphi_event_send() */
    const uint64_t sent = atomic_load_explicit(&event->lines->sent, memory_order_acquire);
    if ((sent & ~CANCELLED) != atomic_load_explicit(&event->lines->taken, memory_order_relaxed)) /* this side's own */
        return EVENT_SENT;
    return sent & CANCELLED ? EVENT_CANCELLED : EVENT_OPEN;
}

graphi_status event_refuse(const graphi_event *event) { return cancelled(event); }

void event_take(graphi_event *event)
{
    /* release: pairs with the acquire in graphi_event_send() */
    atomic_fetch_add_explicit(&event->lines->taken, 1, memory_order_release);
}

graphi_status graphi_event_take(graphi_event *event, bool *taken)
{
    GIVEN(event);
    GIVEN(taken);
    const enum event_state state = event_state(event);
    if (state == EVENT_CANCELLED)
        return cancelled(event);
    if (state == EVENT_SENT)
        event_take(event);
    *taken = state == EVENT_SENT;
    return GRAPHI_OK;
}

void graphi_event_cancel(graphi_event *event)
{
    if (event) /* release: as a message */
        atomic_fetch_or_explicit(&event->lines->sent, CANCELLED, memory_order_release);
}

void graphi_event_reset(graphi_event *event)
{
    if (!event)
        return;
    atomic_store_explicit(&event->lines->sent, 0, memory_order_relaxed); /* nobody uses it */
    atomic_store_explicit(&event->lines->taken, 0, memory_order_release);
}
