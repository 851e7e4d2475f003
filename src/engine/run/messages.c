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
    struct message_source source;
    graphi_event **event; /* as compiled.messages */
    atomic_bool *sent;    /* in this execution; relaxed: read after all workers have returned */
};

static const struct plan_message *message_at(const graphi_run *run, size_t i)
{
    return &run->plan->compiled->messages.data[i];
}

static int look(void *context, int wait)
{
    const graphi_run *run = context;
    const enum event_state state = event_state(run->messages->event[run->plan->compiled->wait_message[wait]]);
    return state == EVENT_SENT ? 1 : state == EVENT_CANCELLED ? -1 : 0;
}

static graphi_status refuse(void *context, int wait, bool late)
{
    const graphi_run *run = context;
    const graphi_event *event = run->messages->event[run->plan->compiled->wait_message[wait]];
    if (!late)
        return event_refuse(event);
    return fail(GRAPHI_IO, event_name(event), "found no message for %g s with nothing else to do, expected its sender "
                                              "to send one", (double)run->messages->source.patience_ns * 1e-9);
}

graphi_status messages_create(graphi_run *run)
{
    const size_t count = run->plan->compiled->messages.count;
    if (!count)
        return GRAPHI_OK;
    struct run_messages *m = mem_zalloc(sizeof *m);
    run->messages = m;
    if (m) {
        m->source = (struct message_source){look, refuse, (int64_t)(PATIENCE_S * 1e9)};
        m->event = mem_zalloc_array(count, sizeof *m->event);
        m->sent = mem_zalloc_array(count, sizeof *m->sent);
    }
    if (!m || !m->event || !m->sent)
        return fail_memory("run", count * sizeof *m->event);
    if (run->schedule)
        schedule_listen(run->schedule, &m->source);
    return GRAPHI_OK;
}

void messages_destroy(graphi_run *run)
{
    if (!run->messages)
        return;
    mem_free(run->messages->event);
    mem_free(run->messages->sent);
    mem_free(run->messages);
}

graphi_status messages_check(graphi_run *run)
{
    for (size_t i = 0; run->messages && i < run->plan->compiled->messages.count; i++) {
        const struct plan_message *message = message_at(run, i);
        atomic_store_explicit(&run->messages->sent[i], false, memory_order_relaxed);
        if (!run->messages->event[i])
            return fail(GRAPHI_INVALID, "run", "found no event for number %d that it %s, expected graphi_run_%s before",
                        message->number, message->sends ? "signals" : "waits for",
                        message->sends ? "send" : "receive");
    }
    return GRAPHI_OK;
}

graphi_status messages_task(graphi_run *run, int32_t task)
{
    const int32_t i = run->plan->compiled->message_of[task];
    if (i < 0)
        return GRAPHI_OK;
    if (!message_at(run, (size_t)i)->sends) {
        event_take(run->messages->event[i]);
        return GRAPHI_OK;
    }
    TRY(graphi_event_send(run->messages->event[i]));
    atomic_store_explicit(&run->messages->sent[i], true, memory_order_relaxed);
    return GRAPHI_OK;
}

void messages_cancel(graphi_run *run)
{
    for (size_t i = 0; run->messages && i < run->plan->compiled->messages.count; i++)
        if (message_at(run, i)->sends && !atomic_load_explicit(&run->messages->sent[i], memory_order_relaxed))
            graphi_event_cancel(run->messages->event[i]);
}

static graphi_status set(graphi_run *run, int number, graphi_event *event, bool sends)
{
    for (size_t i = 0; i < run->plan->compiled->messages.count; i++)
        if (message_at(run, i)->number == number && message_at(run, i)->sends == sends) {
            run->messages->event[i] = event;
            return GRAPHI_OK;
        }
    return fail(GRAPHI_INVALID, "run", "found event %d, expected a number that the graph %s", number,
                sends ? "signals (graphi_signal_event)" : "waits for (graphi_wait_event)");
}

graphi_status graphi_run_receive(graphi_run *run, int number, graphi_event *event)
{
    GIVEN(run);
    return set(run, number, event, false);
}

graphi_status graphi_run_send(graphi_run *run, int number, graphi_event *event)
{
    GIVEN(run);
    return set(run, number, event, true);
}

graphi_status graphi_run_set_patience(graphi_run *run, double seconds)
{
    GIVEN(run);
    if (!(seconds >= 0 && seconds <= MOST_PATIENCE_S))
        return fail(GRAPHI_INVALID, "run", "found a patience of %g s, expected 0 (without end) to %g", seconds,
                    MOST_PATIENCE_S);
    if (run->messages)
        run->messages->source.patience_ns = (int64_t)(seconds * 1e9);
    return GRAPHI_OK;
}
