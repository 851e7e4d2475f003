/* SPDX-License-Identifier: Apache-2.0 */
/* One execution in virtual time: resets the schedule and plays the driver. One thread. */
#include "schedule/scheduler.h"

#include "base/status.h"
#include "schedule/simulated_play.h"

graphi_status schedule_simulate(struct schedule *s, task_duration duration, void *context, struct task_record *records,
                                struct simulation *out)
{
    struct simulation result = {0};
    TRY(schedule_decide(s));
    s->records = records;
    s->timed = s->hashing = true;
    step_reset(s);
    if (records)
        for (int i = 0; i < s->roots_count; i++)
            records[s->roots[i]].ready_ns = 0;
    graphi_status (*const loops[])(struct schedule *, task_duration, void *, struct simulation *) = {
        [LOOP_SCHEDULED] = simulate_steps, [LOOP_NAIVE] = simulate_naive, [LOOP_SEQUENTIAL] = simulate_sequential};
    TRY((s->setting.driver == GRAPHI_DRIVER_STATIC ? simulate_static : loops[s->policy->loop])(s, duration, context,
                                                                                              &result));
    result.decisions = s->decisions;
    *out = result;
    return GRAPHI_OK;
}
