/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in virtual time: on its own machine for predictions, on a described one for studies. Curves are extended to that
 * machine: estimates are made anew with its rates; measured ones are scaled by how far they were off the estimate here. */
#include "base/clock.h"
#include "base/status.h"
#include "engine/plan.h"
#include "engine/timeline.h"
#include "graphi/simulate.h"
#include "machine/machine.h"

#include <string.h>

graphi_status plan_simulate(graphi_plan *plan, struct task_record *records, struct simulation *out)
{
    struct schedule *schedule;
    TRY(schedule_create(&plan->tasks, &plan->setting, plan->machine, &schedule));
    graphi_status status = schedule_simulate(schedule, NULL, NULL, records, out);
    schedule_destroy(schedule);
    return status;
}

static void scale_curves(const graphi_plan *plan, const struct cost_curve *here, struct cost_curve *curves)
{
    for (int32_t i = 0; i < plan->compiled->curves; i++) {
        double factor = plan->curves[i].ns[0] / here[i].ns[0];
        for (int k = 0; k < curves[i].samples; k++)
            curves[i].ns[k] *= factor;
        curves[i].measured = plan->curves[i].measured;
    }
}

/* The plan's curves for another machine; the caller's. */
static graphi_status curves_for(const graphi_plan *plan, const graphi_machine *machine, struct cost_curve **out)
{
    const struct compiled *c = plan->compiled;
    size_t count = (size_t)c->curves + 1;
    struct cost_curve *curves = mem_zalloc_array(count, sizeof *curves), *here = mem_zalloc_array(count, sizeof *here);
    if (!curves || !here) {
        mem_free(curves);
        mem_free(here);
        return fail_memory("simulation", count * sizeof *curves);
    }
    if (machine == plan->machine) {
        memcpy(curves, plan->curves, (size_t)c->curves * sizeof *curves);
    } else {
        cost_curves(c, machine, curves);
        cost_curves(c, plan->machine, here);
        if (plan->measured)
            scale_curves(plan, here, curves);
    }
    mem_free(here);
    *out = curves;
    return GRAPHI_OK;
}

static bool unset(const graphi_setting *setting)
{
    return setting->executors == 0 && setting->width == 0 && setting->policy == GRAPHI_POLICY_CRITICAL_PATH;
}

static graphi_status write_timeline(const graphi_plan *plan, const struct task_record *records, const char *prefix)
{
    struct timeline timeline;
    if (!prefix)
        return GRAPHI_OK;
    TRY(trace_timeline(plan, records, NULL, true, &timeline));
    graphi_status status = trace_write(&timeline, prefix);
    trace_timeline_free(&timeline);
    return status;
}

static void fill(const graphi_plan *plan, const struct simulation *simulation, int64_t host_ns, graphi_simulation *out)
{
    double cores = plan->setting.executors * plan->setting.width;
    *out = (graphi_simulation){
        .makespan_ms = simulation->makespan_ns / 1e6,
        .critical_path_ms = plan->critical_path_ns / 1e6,
        .work_ms = plan->work_ns / 1e6,
        .lower_bound_ms = plan->lower_bound_ns / 1e6,
        .utilization = simulation->makespan_ns > 0 ? simulation->busy_ns / (cores * simulation->makespan_ns) : 0,
        .scheduling_ms = simulation->scheduling_ns / 1e6,
        .operations = plan->compiled->tasks,
        .mean_corunning = simulation->mean_corunning,
        .host_ns_per_op = plan->compiled->tasks ? (double)host_ns / plan->compiled->tasks : 0,
        .decisions = simulation->decisions,
    };
}

graphi_status graphi_plan_simulate(const graphi_plan *plan, const graphi_machine *machine, const graphi_setting *setting,
                                   const char *timeline_prefix, graphi_simulation *out)
{
    struct cost_curve *curves = NULL;
    graphi_plan *there = NULL;
    machine = machine ? machine : plan->machine;
    setting = setting && (machine != plan->machine || !unset(setting)) ? setting : &plan->setting;
    TRY(curves_for(plan, machine, &curves));
    graphi_status status = plan_over(plan->compiled, machine, curves, plan->measured, setting, &there);
    mem_free(curves);
    TRY(status);
    struct task_record *records = mem_zalloc_array((size_t)plan->compiled->tasks + 1, sizeof *records);
    struct simulation simulation;
    int64_t begin = clock_ns();
    status = records ? plan_simulate(there, records, &simulation)
                     : fail_memory("simulation", (size_t)plan->compiled->tasks * sizeof *records);
    int64_t host_ns = clock_ns() - begin;
    if (!status)
        status = write_timeline(there, records, timeline_prefix);
    if (!status)
        fill(there, &simulation, host_ns, out);
    mem_free(records);
    graphi_plan_destroy(there);
    return status;
}
