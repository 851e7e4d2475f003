/* SPDX-License-Identifier: Apache-2.0 */
/* What messages of an execution come down to: a look at an event by any worker, taking and sending by the worker that
 * runs the task. Each event has one receiver and one sender, so nothing here needs a lock. */
#include "engine/run/messages.h"

#include "base/memory.h"
#include "base/status.h"
#include "machine/event.h"

#include <math.h>
#include <stdio.h>

static const double PATIENCE_S = 60, MOST_PATIENCE_S = 1e8;

struct run_messages {
    struct message_source source; /* first: what the schedule hands back */
    const struct compiled *compiled;
    graphi_event **event; /* as compiled.messages */
    atomic_bool *sent;    /* in this execution; relaxed: read after all workers have returned */
};

static const graphi_event *awaited(const struct message_source *source, int wait)
{
    const struct run_messages *m = (const struct run_messages *)source;
    return m->event[m->compiled->wait_message[wait]];
}

static int look(const struct message_source *source, int wait)
{
    const enum event_state state = event_state(awaited(source, wait));
    return state == EVENT_SENT ? 1 : state == EVENT_CANCELLED ? -1 : 0;
}

static graphi_status refuse(const struct message_source *source, int wait, bool late)
{
    const graphi_event *event = awaited(source, wait);
    if (!late)
        return event_refuse(event);
    return fail(GRAPHI_IO, event_name(event), "found no message for %g s with nothing else to do, expected its sender "
                                              "to send one", (double)source->patience_ns * 1e-9);
}

graphi_status messages_create(const struct compiled *compiled, struct schedule *schedule, struct run_messages **out)
{
    const size_t count = compiled->messages.count;
    *out = NULL;
    if (!count)
        return GRAPHI_OK;
    struct run_messages *m = mem_zalloc(sizeof *m);
    *out = m;
    if (m) {
        m->source = (struct message_source){look, refuse, (int64_t)(PATIENCE_S * 1e9)};
        m->compiled = compiled;
        m->event = mem_zalloc_array(count, sizeof *m->event);
        m->sent = mem_zalloc_array(count, sizeof *m->sent);
    }
    if (!m || !m->event || !m->sent)
        return fail_memory("run", count * sizeof *m->event);
    if (schedule)
        schedule_listen(schedule, &m->source);
    return GRAPHI_OK;
}

void messages_destroy(struct run_messages *m)
{
    if (!m)
        return;
    mem_free(m->event);
    mem_free(m->sent);
    mem_free(m);
}

graphi_status messages_check(struct run_messages *m)
{
    for (size_t i = 0; m && i < m->compiled->messages.count; i++) {
        const struct plan_message *message = &m->compiled->messages.data[i];
        atomic_store_explicit(&m->sent[i], false, memory_order_relaxed);
        if (!m->event[i])
            return fail(GRAPHI_INVALID, "run", "found no event for number %d that it %s, expected graphi_run_%s before",
                        message->number, message->sends ? "signals" : "waits for",
                        message->sends ? "send" : "receive");
    }
    return GRAPHI_OK;
}

graphi_status messages_task(struct run_messages *m, int32_t task)
{
    const int32_t i = m ? m->compiled->message_of[task] : -1;
    if (i < 0)
        return GRAPHI_OK;
    if (!m->compiled->messages.data[i].sends) {
        event_take(m->event[i]);
        return GRAPHI_OK;
    }
    TRY(graphi_event_send(m->event[i]));
    atomic_store_explicit(&m->sent[i], true, memory_order_relaxed);
    return GRAPHI_OK;
}

void messages_cancel(struct run_messages *m)
{
    for (size_t i = 0; m && i < m->compiled->messages.count; i++)
        if (m->compiled->messages.data[i].sends && !atomic_load_explicit(&m->sent[i], memory_order_relaxed))
            graphi_event_cancel(m->event[i]);
}

graphi_status messages_set(struct run_messages *m, int number, graphi_event *event, bool sends)
{
    for (size_t i = 0; m && i < m->compiled->messages.count; i++)
        if (m->compiled->messages.data[i].number == number && m->compiled->messages.data[i].sends == sends) {
            m->event[i] = event;
            return GRAPHI_OK;
        }
    return fail(GRAPHI_INVALID, "run", "found event %d, expected a number that the graph %s", number,
                sends ? "signals (graphi_signal_event)" : "waits for (graphi_wait_event)");
}

graphi_status messages_set_patience(struct run_messages *m, double seconds)
{
    if (!(seconds >= 0 && seconds <= MOST_PATIENCE_S))
        return fail(GRAPHI_INVALID, "run", "found a patience of %g s, expected 0 (without end) to %g", seconds,
                    MOST_PATIENCE_S);
    if (m)
        m->source.patience_ns = (int64_t)(seconds * 1e9);
    return GRAPHI_OK;
}
