/* SPDX-License-Identifier: Apache-2.0 */
/* Per-operation durations (G4): the graph runs in array order, one operation at a time, on 1, 2, 4, ... cores; every
 * operation's records are averaged over executions and then over its class. One width after the other within a round, so a
 * disturbance of the machine does not fall on one width alone. */
#include "base/clock.h"
#include "base/status.h"
#include "engine/tune.h"
#include "machine/machine.h"

#include <math.h>
#include <string.h>

enum { MOST_WIDTHS = 24, MOST_ROUNDS = 8 };

struct width {
    graphi_plan *plan;
    struct schedule *schedule;
    double *sum, *sum2; /* per task */
    int width, executions;
};

static graphi_status width_open(const graphi_plan *base, int width, struct width *w)
{
    size_t tasks = (size_t)base->compiled->tasks + 1;
    graphi_setting setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = width, .no_inline = true,
                              .unpinned = base->setting.unpinned};
    w->width = width;
    w->sum = mem_zalloc_array(tasks, sizeof *w->sum);
    w->sum2 = mem_zalloc_array(tasks, sizeof *w->sum2);
    if (!w->sum || !w->sum2)
        return fail_memory("measurement", tasks * sizeof *w->sum);
    TRY(plan_over(base->compiled, base->machine, base->curves, base->measured, &setting, &w->plan));
    return schedule_create(&w->plan->tasks, &w->plan->setting, base->machine, &w->schedule);
}

static void width_close(struct width *w)
{
    schedule_destroy(w->schedule);
    graphi_plan_destroy(w->plan);
    mem_free(w->sum);
    mem_free(w->sum2);
}

/* One execution; the first of each width only warms caches and is not counted. */
static graphi_status width_run(graphi_run *run, struct width *w, bool counted)
{
    run_adopt(run, w->plan, w->schedule);
    TRY(graphi_run_execute(run));
    for (int32_t t = 0; counted && t < w->plan->compiled->tasks; t++) {
        double ns = (double)(run->records[t].end_ns - run->records[t].start_ns);
        w->sum[t] += ns;
        w->sum2[t] += ns * ns;
    }
    w->executions += counted;
    return GRAPHI_OK;
}

static void curve_add(struct cost_curve *curve, int width, double ns)
{
    int i = curve->samples++;
    curve->width[i] = width;
    curve->ns[i] = ns > 1 ? ns : 1;
    if (i == 0 || curve->ns[i] < curve_ns(curve, curve->best))
        curve->best = width;
    curve->measured = true;
}

/* Class means of one width into the curves. */
static graphi_status collect(const struct compiled *c, const struct width *w, struct cost_curve *curves)
{
    double *sum = mem_zalloc_array((size_t)c->curves + 1, sizeof *sum);
    int *count = mem_zalloc_array((size_t)c->curves + 1, sizeof *count);
    if (!sum || !count) {
        mem_free(sum);
        mem_free(count);
        return fail_memory("measurement", (size_t)c->curves * sizeof *sum);
    }
    for (int32_t t = 0; t < c->tasks; t++) {
        sum[c->curve_of[t]] += w->sum[t] / w->executions;
        count[c->curve_of[t]]++;
    }
    for (int32_t i = 0; i < c->curves; i++)
        curve_add(&curves[i], w->width, sum[i] / count[i]);
    mem_free(sum);
    mem_free(count);
    return GRAPHI_OK;
}

static double spread_of(const struct compiled *c, const struct width *w)
{
    double deviation = 0, total = 0;
    for (int32_t t = 0; t < c->tasks; t++) {
        double mean = w->sum[t] / w->executions;
        deviation += sqrt(fmax(0, w->sum2[t] / w->executions - mean * mean));
        total += mean;
    }
    return total > 0 ? deviation / total : 0;
}

static graphi_status measure_rounds(graphi_run *run, struct width *widths, int count, int64_t deadline)
{
    for (int round = 0; round <= MOST_ROUNDS; round++) {
        if (round > 1 && clock_ns() > deadline)
            break;
        for (int i = 0; i < count; i++)
            TRY(width_run(run, &widths[i], round > 0));
    }
    return GRAPHI_OK;
}

graphi_status measure_curves(graphi_run *run, int64_t deadline, struct measurement *out)
{
    const graphi_plan *base = run->plan;
    const struct compiled *c = base->compiled;
    struct width widths[MOST_WIDTHS] = {{0}};
    struct cost_curve *curves = mem_zalloc_array((size_t)c->curves + 1, sizeof *curves);
    graphi_status status = curves ? graphi_run_trace(run, true) : fail_memory("measurement", sizeof *curves);
    int count = 0, cores = base->machine->cores;
    for (int width = 1; !status && count < MOST_WIDTHS; width = width * 2 < cores ? width * 2 : cores) {
        status = width_open(base, width, &widths[count++]);
        if (width >= cores)
            break;
    }
    struct schedule *before = run->schedule;
    if (!status)
        status = measure_rounds(run, widths, count, deadline);
    run_adopt(run, base, before);
    graphi_run_trace(run, false);
    for (int i = 0; i < count && !status; i++)
        status = collect(c, &widths[i], curves);
    if (!status)
        *out = (struct measurement){curves, spread_of(c, &widths[0]), widths[0].executions};
    for (int i = 0; i < count; i++)
        width_close(&widths[i]);
    if (status)
        mem_free(curves);
    return status;
}
