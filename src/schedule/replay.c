/* SPDX-License-Identifier: Apache-2.0 */
/* Recording what the scheduling step was told, and telling it again. The step sees no clock and no thread, so the same
 * completions in the same order give the same decisions, on the real machine, in virtual time and here.
 *
 * The log: for every completion its slot, task, end, the tasks that it made ready, -1; for every dispatch -2 and the
 * slot of the worker that ran it; for a message that made its task ready -3 and the task. */
#include "schedule/scheduler.h"

#include "base/status.h"

graphi_status schedule_log_enable(struct schedule *s)
{
    struct event_log *log = schedule_alloc(s, 1, sizeof *log);
    size_t capacity = 8 * (size_t)s->tasks->count + 64;
    if (!log || !(log->entries = schedule_alloc(s, capacity, sizeof *log->entries)))
        return fail_memory("log of the scheduler", capacity * sizeof(int64_t));
    log->capacity = capacity;
    s->log = log;
    return GRAPHI_OK;
}

static void send_nowhere(struct schedule *s, int slot, struct assignment assignment)
{
    (void)s;
    (void)slot;
    (void)assignment;
}

static size_t replay_completion(struct schedule *s, const int64_t *entries, size_t at)
{
    struct completion done = {.task = (int32_t)entries[at + 1], .first = -1, .ran = 1, .end_ns = entries[at + 2]};
    int slot = (int)entries[at];
    for (at += 3; entries[at] >= 0; at++) {
        int32_t task = (int32_t)entries[at];
        if (done.first < 0)
            done.first = task;
        else
            s->next[done.last] = task;
        done.last = task;
    }
    step_complete(s, slot, &done);
    return at + 1;
}

graphi_status schedule_replay(struct schedule *s, uint64_t *decisions)
{
    struct event_log *log = s->log;
    if (!log || log->count == log->capacity)
        return fail(GRAPHI_INVALID, "replay", "found no whole log, expected one of an execution");
    s->log = NULL;
    s->replaying = true;
    size_t count = log->count;
    step_reset(s);
    s->hashing = true;
    s->send = send_nowhere;
    step_roots(s);
    for (size_t at = 0; at < count;) {
        if (log->entries[at] == -3) {
            step_ready(s, (int32_t)log->entries[at + 1]);
            at += 2;
            continue;
        }
        if (log->entries[at] != -2) {
            at = replay_completion(s, log->entries, at);
            continue;
        }
        s->self = (int)log->entries[at + 1];
        step_dispatch(s);
        at += 2;
    }
    s->log = log;
    s->replaying = false;
    *decisions = s->decisions;
    return GRAPHI_OK;
}
