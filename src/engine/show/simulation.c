/* SPDX-License-Identifier: Apache-2.0 */
/* One execution of a plan in virtual time, with its timeline (graphi/simulate.h): on its own machine for predictions,
 * on a described one for studies (change.c). One thread. */
#include "base/clock.h"
#include "base/status.h"
#include "engine/choose/simulator.h"
#include "engine/show/trace.h"
#include "graphi/simulate.h"
#include "machine/machine.h"

static graphi_status write_timeline(const graphi_plan *plan, const graphi_plan *truth, const struct schedule *schedule,
                                    const struct task_record *records, const char *prefix)
{
    struct timeline timeline;
    TRY(trace_timeline(plan, records, schedule, NULL, &timeline));
    timeline.lower_bound_ns = (int64_t)truth->lower_bound_ns;
    timeline.critical_path_ns = (int64_t)truth->critical_path_ns;
    graphi_status status = trace_write(&timeline, prefix);
    trace_timeline_free(&timeline);
    return status;
}

static void fill(const graphi_plan *plan, const graphi_plan *truth, const struct simulation *simulation,
                 int64_t host_ns, graphi_simulation *out)
{
    double cores = plan->machine->cores;
    *out = (graphi_simulation){
        .makespan_ms = simulation->makespan_ns / 1e6,
        .critical_path_ms = truth->critical_path_ns / 1e6,
        .work_ms = truth->work_ns / 1e6,
        .lower_bound_ms = truth->lower_bound_ns / 1e6,
        .utilization = simulation->makespan_ns > 0 ? simulation->busy_ns / (cores * simulation->makespan_ns) : 0,
        .scheduling_ms = simulation->scheduling_ns / 1e6,
        .operations = plan->compiled->tasks,
        .mean_corunning = simulation->mean_corunning,
        .host_ns_per_op = plan->compiled->tasks ? (double)host_ns / plan->compiled->tasks : 0,
        .decisions = simulation->decisions,
        .deciding_ms = simulation->deciding_ns / 1e6,
        .widths_bound_ms = truth->widths_bound_ns / 1e6,
        .searched = plan->searched,
        .setting = plan->setting,
    };
}

/* timeline NULL: none. */
static graphi_status simulate_once(const graphi_plan *plan, const graphi_plan *truth, const char *timeline,
                                   graphi_simulation *out)
{
    struct task_record *records = mem_zalloc_array((size_t)plan->compiled->tasks + 1, sizeof *records);
    struct plan_simulator simulator = {0};
    struct simulation simulation;
    int64_t begin = clock_thread_ns();
    const struct simulated what = simulated_plan(plan, truth);
    graphi_status status = records ? simulator_open(&what, &simulator)
                                   : fail_memory("simulation", (size_t)plan->compiled->tasks * sizeof *records);
    if (!status && timeline)
        status = schedule_trace_teams(simulator.schedule);
    if (!status)
        status = simulator_run(&simulator, records, &simulation);
    int64_t host_ns = clock_thread_ns() - begin;
    if (!status && timeline)
        status = write_timeline(plan, truth, simulator.schedule, records, timeline);
    if (!status)
        fill(plan, truth, &simulation, host_ns, out);
    simulator_close(&simulator);
    mem_free(records);
    return status;
}

graphi_status graphi_plan_simulate(const graphi_plan *plan, const graphi_simulate_options *options,
                                   graphi_simulation *out)
{
    GIVEN(plan);
    GIVEN(out);
    static const graphi_simulate_options defaults;
    graphi_plan *changed = NULL;
    options = options ? options : &defaults;
    if (options->setting || (options->machine && options->machine != plan->machine)) {
        const graphi_plan_change change = {.setting = options->setting, .machine = options->machine};
        TRY(graphi_plan_with(plan, &change, &changed));
        plan = changed;
    }
    const graphi_plan *truth = options->truth ? options->truth : plan;
    graphi_status status = plan->compiled == truth->compiled && plan->machine == truth->machine
                               ? simulate_once(plan, truth, options->timeline, out)
                               : fail(GRAPHI_INVALID, "simulation",
                                      "found plans of two graphs or machines, expected those of one");
    graphi_plan_destroy(changed);
    return status;
}
