/* SPDX-License-Identifier: Apache-2.0 */
/* A plan, or the draft of one, in virtual time on its machine. One thread. */
#include "engine/choose/simulator.h"

#include "base/status.h"

graphi_status simulator_open(const struct simulated *what, struct plan_simulator *out)
{
    *out = (struct plan_simulator){0};
    TRY(schedule_create(what->tasks, what->decided, &out->schedule));
    graphi_status status = traffic_open(what, &out->traffic);
    if (status)
        simulator_close(out);
    return status;
}

graphi_status simulator_run(struct plan_simulator *s, struct task_record *records, struct simulation *out)
{
    return schedule_simulate(s->schedule, s->traffic.shared ? traffic_duration : NULL, &s->traffic, records, out);
}

void simulator_close(struct plan_simulator *s)
{
    traffic_close(&s->traffic);
    schedule_destroy(s->schedule);
    *s = (struct plan_simulator){0};
}

graphi_status simulator_once(const struct simulated *what, struct task_record *records, struct simulation *out)
{
    struct plan_simulator simulator;
    TRY(simulator_open(what, &simulator));
    graphi_status status = simulator_run(&simulator, records, out);
    simulator_close(&simulator);
    return status;
}

struct simulated simulated_plan(const graphi_plan *plan, const graphi_plan *truth)
{
    return (struct simulated){.compiled = plan->compiled,
                              .machine = plan->machine,
                              .tasks = &plan->tasks,
                              .decided = plan->decided,
                              .truth = truth->curves};
}
