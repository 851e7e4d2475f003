/* SPDX-License-Identifier: Apache-2.0 */
/* One execution on the leased workers: resets the schedule, starts the driver's loop on every worker and collects the
 * outcome. No allocation. Called by the client thread, which is worker 0, or the scheduler where the driver is the
 * dedicated one. */
#include "schedule/scheduler.h"

#include "base/clock.h"
#include "base/status.h"

/* To another worker's ring; a worker that runs the step itself keeps its own next task in hand. */
static void send_real(struct schedule *s, int slot, struct assignment assignment)
{
    struct executor *x = &s->executors[s->slots[slot].first];
    if (slot == s->self && s->slots[slot].outstanding == 1)
        x->direct = assignment;
    else
        RING_PUSH(&x->inbox, assignment);
}

static worker_body body_of(const struct schedule *s)
{
    if (s->policy->loop == LOOP_NAIVE)
        return naive_worker;
    if (s->policy->loop == LOOP_SEQUENTIAL)
        return sequential_worker;
    static const worker_body drivers[] = {[GRAPHI_DRIVER_DEDICATED] = dedicated_worker,
                                          [GRAPHI_DRIVER_COMBINING] = combining_worker,
                                          [GRAPHI_DRIVER_STATIC] = static_worker};
    return drivers[s->setting.driver];
}

/* A lease may hold more workers than this setting needs. */
static void enter(void *context, int worker)
{
    struct schedule *s = context;
    if (worker < s->workers + s->siblings)
        body_of(s)(s, worker);
}

static graphi_status outcome(struct schedule *s)
{
    int failed =
        atomic_load_explicit(&s->failed, memory_order_relaxed); /* after lease_wait: all workers have returned */
    if (failed)
        message_set(s->message);
    return (graphi_status)failed;
}

graphi_status schedule_run(struct schedule *s, struct lease *lease, task_function function, void *context,
                           struct task_record *records)
{
    if (lease->count < s->workers)
        return fail(GRAPHI_INVALID, "lease", "found %d workers, expected %d", lease->count, s->workers);
    if (s->tasks->count == 0)
        return GRAPHI_OK;
    if (body_of(s) == static_worker && !s->order)
        return fail(GRAPHI_INVALID, "static driver", "found no order, expected schedule_decide() before");
    if (s->tasks->waits_count && !s->waits.source)
        return fail(GRAPHI_INVALID, "schedule", "found tasks that wait for messages, expected where these come from");
    int siblings = s->siblings;
    s->siblings = lease->count - s->workers < siblings ? lease->count - s->workers : siblings;
    s->lease = lease;
    s->function = function;
    s->context = context;
    s->records = records;
    s->timed = records || (s->policy->timed && body_of(s) != static_worker); /* lists ask no policy */
    s->hashing = records != NULL || s->log;
    s->send = send_real;
    s->began = s->timed ? clock_ns() : 0;
    step_reset(s);
    if (records)
        for (int i = 0; i < s->roots_count; i++)
            records[s->roots[i]].ready_ns = 0;
    if (s->policy->loop == LOOP_NAIVE)
        naive_begin(s);
    if (body_of(s) == combining_worker)
        combining_begin(s);
    lease_start(lease, enter, s);
    if (body_of(s) == dedicated_worker)
        dedicated_client(s);
    else
        enter(s, 0);
    lease_wait(lease);
    const graphi_status status = outcome(s);
    if (body_of(s) == static_worker && !status)
        static_note(s);
    s->siblings = siblings;
    s->lease = NULL;
    return status;
}
