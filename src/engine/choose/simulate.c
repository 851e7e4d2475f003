/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in virtual time: on its own machine for predictions, on a described one for studies (change.c). */
#include "base/clock.h"
#include "base/status.h"
#include "engine/choose/allot.h"
#include "engine/cost/curve_extend.h"
#include "engine/compile/plan.h"
#include "engine/show/timeline.h"
#include "graphi/simulate.h"
#include "machine/machine.h"

#include <math.h>
#include <string.h>

graphi_status simulator_open_against(const graphi_plan *plan, const graphi_plan *truth, struct plan_simulator *out)
{
    *out = (struct plan_simulator){0};
    TRY(schedule_create(&plan->tasks, &plan->setting, plan->machine, &out->schedule));
    graphi_status status = traffic_open(truth, &plan->setting, &out->traffic);
    out->traffic.shared = out->traffic.shared || truth != plan;
    if (status)
        simulator_close(out);
    return status;
}

graphi_status simulator_open(const graphi_plan *plan, struct plan_simulator *out)
{
    return simulator_open_against(plan, plan, out);
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

graphi_status plan_simulate(const graphi_plan *plan, struct task_record *records, struct simulation *out)
{
    struct plan_simulator simulator;
    TRY(simulator_open(plan, &simulator));
    graphi_status status = simulator_run(&simulator, records, out);
    simulator_close(&simulator);
    return status;
}

graphi_status plan_schedule(const graphi_plan *plan, struct schedule **out)
{
    struct schedule *schedule;
    TRY(schedule_create(&plan->tasks, &plan->setting, plan->compiled->machine, &schedule));
    graphi_status status = schedule_decide(schedule);
    if (status)
        schedule_destroy(schedule);
    else
        *out = schedule;
    return status;
}

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
    graphi_status status = records ? simulator_open_against(plan, truth, &simulator)
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

/* --- widths and order that the caller gives --- */

static const double MOST_PRIORITY_MS = 1e9; /* 12 days: with a level it stays within 63 bits */

struct graphi_simulator {
    graphi_plan *plan;
    struct allotment *allotment;
    struct plan_simulator simulator;
    uint16_t *narrowest; /* per class and width: the least width that takes as long; times are staircases */
    int workers;
};

static graphi_status prepare(graphi_simulator *s, const graphi_plan *plan, const graphi_machine *machine)
{
    /* a policy without a search of its own until the plan is made, and a driver that decides each time anew */
    graphi_setting setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH,
                              .driver = GRAPHI_DRIVER_COMBINING,
                              .executors = machine->cores,
                              .width = 1,
                              .light = -1};
    size_t classes = (size_t)plan->compiled->curves + 1;
    struct cost_curve *curves = mem_zalloc_array(classes, sizeof *curves);
    if (!curves)
        return fail_memory("simulator", classes * sizeof *curves);
    curves_for_machine(plan, machine, curves);
    graphi_status status = plan_over(plan->compiled, machine, curves, plan->measured, &setting, &s->plan);
    mem_free(curves);
    TRY(status);
    s->workers = machine->cores;
    s->allotment = allotment_create((size_t)plan->compiled->tasks + 1);
    s->narrowest = mem_zalloc_array(classes * ((size_t)s->workers + 1), sizeof *s->narrowest);
    if (!s->allotment || !s->narrowest)
        return fail_memory("simulator", classes * (size_t)s->workers * sizeof *s->narrowest);
    for (int32_t c = 0; c < plan->compiled->curves; c++) {
        uint16_t *row = &s->narrowest[(size_t)c * ((size_t)s->workers + 1)];
        for (int w = 1; w <= s->workers; w++)
            row[w] = w > 1 && curve_ns(&s->plan->curves[c], w) >= curve_ns(&s->plan->curves[c], row[w - 1])
                         ? row[w - 1]
                         : (uint16_t)w;
    }
    s->plan->setting.policy = GRAPHI_POLICY_MALLEABLE;
    s->plan->tasks.allotment = s->allotment;
    return simulator_open(s->plan, &s->simulator);
}

graphi_status graphi_simulator_create(const graphi_plan *plan, const graphi_machine *machine, graphi_simulator **out)
{
    machine = machine ? machine : plan->machine;
    if (machine->cores > UINT16_MAX)
        return fail(GRAPHI_UNSUPPORTED, "simulator", "found %d cores, expected at most %d", machine->cores, UINT16_MAX);
    graphi_simulator *s = mem_zalloc(sizeof *s);
    if (!s)
        return fail_memory("simulator", sizeof *s);
    graphi_status status = prepare(s, plan, machine);
    if (status)
        graphi_simulator_destroy(s);
    else
        *out = s;
    return status;
}

graphi_status graphi_simulator_run(graphi_simulator *s, const int *width, const double *priority_ms, int rules,
                                   double *makespan_ms)
{
    const struct tasks *t = &s->plan->tasks;
    struct simulation simulation;
    for (int32_t c = 0; c < t->curves_count; c++)
        if (width[c] < 1 || width[c] > s->workers)
            return fail(GRAPHI_USAGE, "simulator", "found width %d of class %d, expected 1 to %d", width[c], c,
                        s->workers);
    for (int32_t c = 0; c < t->curves_count; c++)
        if (!(fabs(priority_ms[c]) <= MOST_PRIORITY_MS))
            return fail(GRAPHI_USAGE, "simulator", "found priority %g of class %d, expected -1e9 to 1e9 ms",
                        priority_ms[c], c);
    if (rules < 0 || rules > 11)
        return fail(GRAPHI_USAGE, "simulator", "found rules %d, expected 0 to 11", rules);
    for (int32_t v = t->count - 1; v >= 0; v--) { /* array order is topological */
        int32_t c = t->curve_of[v];
        s->allotment->width[v] = s->narrowest[(size_t)c * ((size_t)s->workers + 1) + (size_t)width[c]];
        s->plan->level[v] = edges_most_after(t->edges_begin, t->edges, s->plan->level, v) +
                            (int64_t)curve_ns(&t->curves[c], s->allotment->width[v]);
        s->allotment->key[v] = s->plan->level[v] + (int64_t)(1e6 * priority_ms[c]);
    }
    s->allotment->fill = (enum fill)(rules / 4);
    s->allotment->narrower = rules & 1;
    s->allotment->wider = rules & 2;
    TRY(simulator_run(&s->simulator, NULL, &simulation));
    *makespan_ms = simulation.makespan_ns / 1e6;
    return GRAPHI_OK;
}

void graphi_simulator_destroy(graphi_simulator *s)
{
    if (!s)
        return;
    simulator_close(&s->simulator);
    allotment_destroy(s->allotment);
    graphi_plan_destroy(s->plan);
    mem_free(s->narrowest);
    mem_free(s);
}
