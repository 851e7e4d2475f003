/* SPDX-License-Identifier: Apache-2.0 */
/* The public face of cost curves: classes and their times, hill climbing over anything that can be timed, measured
 * profiles of a plan, hardware counters. Called by studies and by whoever wants to see what a plan assumes; never
 * during a run. */
#include "graphi/profile.h"

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/status.h"
#include "engine/choose/planning.h"
#include "engine/compile/classes.h"
#include "engine/compile/compile.h"
#include "engine/cost/climb.h"
#include "engine/cost/cost.h"
#include "engine/tune/counters.h"
#include "engine/cost/curve_extend.h"
#include "engine/cost/curve_set.h"
#include "engine/run/execute.h"
#include "engine/tune/measure.h"
#include "engine/tune/shares.h"
#include "engine/tune/trial.h"
#include "graph/op.h"
#include "machine/machine.h"
#include "machine/others.h"

#include <stdio.h>

/* --- classes --- */

static void shapes_of(const struct compiled *c, const struct bound *bound, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < bound->inputs + bound->outputs && used < size; i++) {
        char type[96];
        type_text(&graph_value(c->graph, c->arguments.data[bound->argument + i].value)->type, type, sizeof type);
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0               ? ""
                                 : i == bound->inputs ? " -> "
                                                      : " ",
                                 type);
    }
}

static void best_of(const struct cost_curve *curve, graphi_class *out)
{
    double least = curve->ns[0];
    out->best_width = 1;
    for (int i = 0; i < curve->samples; i++) {
        if (curve->ns[i] < least) {
            least = curve->ns[i];
            out->best_width = curve->width[i];
            out->best_spread = false;
        }
        if (curve->spread_ns[i] > 0 && curve->spread_ns[i] < least) {
            least = curve->spread_ns[i];
            out->best_width = curve->width[i];
            out->best_spread = true;
        }
    }
}

bool graphi_plan_class_at(const graphi_plan *plan, int i, graphi_class *out)
{
    if (!plan || !out)
        return false;
    const struct compiled *c = plan->compiled;
    if (i < 0 || i >= c->curves)
        return false;
    const struct bound *bound = &c->task[c->class_task[i]];
    const struct cost_curve *curve = &plan->curves[i];
    *out = (graphi_class){.flops = bound->kernel.flops,
                          .bytes = bound->kernel.bytes,
                          .phases = bound->kernel.phases,
                          .shares = 1,
                          .serial_ns = curve->ns[0],
                          .source = curve->source,
                          .key = class_key_at(plan_class_keys(plan), i)};
    snprintf(out->kind, sizeof out->kind, "%s", graph_node(c->graph, bound->node)->kind->name);
    snprintf(out->kernel, sizeof out->kernel, "%s", bound->kernel.name);
    shapes_of(c, bound, out->shapes, sizeof out->shapes);
    for (int p = 0; p < bound->kernel.phases; p++)
        out->shares = bound->kernel.shares[p] > out->shares ? bound->kernel.shares[p] : out->shares;
    out->operations = c->class_tasks[i];
    best_of(curve, out);
    return true;
}

double graphi_plan_class_ns(const graphi_plan *plan, int i, const graphi_machine *machine, int width, bool spread,
                            bool *extrapolated)
{
    if (!plan)
        return -1;
    const struct compiled *c = plan->compiled;
    if (i < 0 || i >= c->curves || width < 1)
        return -1;
    const struct cost_curve *curve = &plan->curves[i];
    bool own = !machine || machine == plan->machine;
    if (extrapolated)
        *extrapolated = own && curve_extrapolates(curve, width, spread);
    if (own && (curve->source || plan->machine->captured))
        return curve_mode_ns(curve, width, spread);
    machine = own ? plan->machine : machine;
    struct class_model model = class_model_of(c, i, curve->ns[0], plan->machine, machine);
    return curves_at(&model, machine, width, spread);
}

/* --- climbing --- */

static void best_sample(const struct climb *climb, graphi_climb *out)
{
    out->best_ns = climb->mode[0].ns[0];
    out->best_width = 1;
    for (int spread = 0; spread < 2; spread++)
        for (int i = 0; i < climb->mode[spread].samples; i++)
            if (climb->mode[spread].ns[i] < out->best_ns) {
                out->best_ns = climb->mode[spread].ns[i];
                out->best_width = climb->mode[spread].width[i];
                out->best_spread = spread;
            }
}

void graphi_climb_search(int cores, int tiles, int interval, bool exhaustive,
                         double (*measure)(void *context, int width, bool spread), void *context, graphi_climb *out)
{
    if (!out || !measure)
        return;
    struct climb_limits limits = climb_limits(cores, tiles, interval, exhaustive);
    struct climb climb = {0};
    *out = (graphi_climb){.interval = limits.interval};
    for (int spread = 0; spread < 2; spread++)
        for (int width; (width = climb_next(&limits, &climb, spread)) != 0; out->measurements++)
            climb_add(&limits, &climb, spread, width, measure(context, width, spread));
    const struct climb_mode *compact = &climb.mode[0], *apart = &climb.mode[1];
    for (int i = 0, k = 0; (i < compact->samples || k < apart->samples) && out->samples < GRAPHI_CLIMB_SAMPLES;) {
        int at = out->samples++;
        bool first = i < compact->samples && (k == apart->samples || compact->width[i] <= apart->width[k]);
        bool second = k < apart->samples && (i == compact->samples || apart->width[k] <= compact->width[i]);
        out->width[at] = first ? compact->width[i] : apart->width[k];
        out->compact_ns[at] = first ? compact->ns[i++] : 0;
        out->spread_ns[at] = second ? apart->ns[k++] : 0;
    }
    best_sample(&climb, out);
}

/* --- measured profiles --- */

struct class_on {
    const struct class_model *model;
    const graphi_machine *machine;
};

static double timed_by_model(const struct class_on *on, int width, bool spread)
{
    return curves_at(on->model, on->machine, width, spread);
}

static void climb_model(const struct class_on *on, const struct climb_limits *limits, struct cost_curve *curve)
{
    struct climb climb = {0};
    for (int spread = 0; spread < 2; spread++)
        for (int width; (width = climb_next(limits, &climb, spread)) != 0;)
            climb_add(limits, &climb, spread, width, timed_by_model(on, width, spread));
    climb_curve(&climb, curve);
}

/* Curves of another machine from shares timed here. */
static graphi_status profile_elsewhere(graphi_run *run, const graphi_profile_options *options,
                                       const struct patience *patience, struct cost_curve *curves)
{
    const struct compiled *c = run->plan->compiled;
    const struct class_keys classes = plan_class_keys(run->plan);
    const graphi_machine *machine = options->machine;
    struct climb_limits limits = climb_limits(machine->cores, machine->tiles, options->interval, options->exhaustive);
    int interval = options->exhaustive ? 0 : limits.interval;
    struct share_times times;
    TRY(curve_set_fits(options->curves, machine));
    if (curve_set_take(options->curves, classes, interval, curves) == c->curves)
        return GRAPHI_OK;
    const struct others began = others_read("/proc/stat");
    TRY(measure_shares(run, patience, &times));
    const bool disturbed = others_were_there(&began);
    for (int32_t k = 0; k < c->curves; k++) {
        if (curves[k].samples && !curves[k].disturbed)
            continue;
        const struct kernel *kernel = &c->task[times.task[k]].kernel;
        double ratio = cost_estimate(machine, kernel) / cost_estimate(run->plan->machine, kernel);
        double *share = times.share_ns + times.first[k];
        for (int p = 0, i = 0; p < kernel->phases; p++)
            for (int s = 0; s < kernel->shares[p]; s++)
                share[i++] *= ratio;
        struct class_model model =
            curves_model(machine, kernel, c->scalability[times.task[k]], times.serial_ns[k] * ratio);
        model.share_ns = share;
        model.phase_shares = kernel->shares;
        climb_model(&(struct class_on){&model, machine}, &limits, &curves[k]);
        curves[k].interval = interval;
    }
    share_times_free(&times);
    return options->curves ? curve_set_learn(options->curves, classes, curves, disturbed) : GRAPHI_OK;
}

/* The curves of the same classes, numbered as in another compiled form; false: it has others. */
static bool renumber(const struct compiled *from, const struct cost_curve *curves, const struct compiled *to,
                     struct cost_curve *out)
{
    bool all = true;
    for (int32_t k = 0; k < to->curves && all; k++) {
        int32_t i = 0;
        while (i < from->curves && from->class_key[i] != to->class_key[k])
            i++;
        if ((all = i < from->curves))
            out[k] = curves[i];
    }
    return all;
}

/* Compiled for that machine, so that memory orders what its cores would: as a plan with estimated times is. What was
 * added to the graph since is not in it: then the compiled form stays. */
static graphi_status plan_elsewhere(const graphi_plan *plan, const graphi_machine *machine,
                                    const struct cost_curve *curves, graphi_plan **out)
{
    struct compiled *c = plan->compiled, *there;
    const graphi_setting any = {.policy = plan->setting.policy};
    struct plan_parts parts = {.machine = machine, .curves = curves, .measured = true, .setting = &any};
    graphi_plan_options options = c->options;
    if (!compiled_source_unchanged(c))
        return plan_make(c, &parts, out);
    options.setting = (graphi_setting){0};
    options.isa = isa_name(c->isa);
    graphi_status status = compiled_create(c->source, machine, &options, c->rounding, &there);
    if (status != GRAPHI_OK) /* kernels that it has not, or no memory */
        return status == GRAPHI_UNSUPPORTED ? plan_make(c, &parts, out) : status;
    size_t classes = (size_t)there->curves + 1;
    struct cost_curve *own = mem_zalloc_array(classes, sizeof *own);
    status = own ? GRAPHI_OK : fail_memory("profile", classes * sizeof *own);
    snprintf(there->timed_on, sizeof there->timed_on, "%s", plan->machine->cpu);
    const bool same = !status && renumber(c, curves, there, own);
    parts.curves = same ? own : curves;
    if (!status)
        status = plan_make(same ? there : c, &parts, out);
    mem_free(own);
    compiled_release(there);
    return status;
}

static graphi_status measured_curves(graphi_run *run, const graphi_profile_options *options, struct cost_curve **out)
{
    const struct patience patience = {.deadline = clock_after(options->seconds),
                                      .stop = options->stop,
                                      .between = options->between,
                                      .context = options->context};
    if (!options->machine || options->machine == run->plan->machine) {
        const struct climb_options how = {
            .interval = options->interval, .exhaustive = options->exhaustive, .known = options->curves};
        struct measurement measured;
        TRY(measure_curves(run, &patience, &how, &measured));
        *out = measured.curves;
        return GRAPHI_OK;
    }
    size_t classes = (size_t)run->plan->compiled->curves + 1;
    struct cost_curve *curves = mem_zalloc_array(classes, sizeof *curves);
    if (!curves)
        return fail_memory("profile", classes * sizeof *curves);
    graphi_status status = profile_elsewhere(run, options, &patience, curves);
    if (status)
        mem_free(curves);
    else
        *out = curves;
    return status;
}

graphi_status graphi_plan_profile(const graphi_plan *plan, graphi_state *state, const graphi_profile_options *options,
                                  graphi_plan **out)
{
    GIVEN(plan);
    GIVEN(state);
    GIVEN(out);
    static const graphi_profile_options defaults;
    struct trial trial;
    struct cost_curve *curves = NULL;
    options = options ? options : &defaults;
    if (!plan->machine->captured)
        return fail(GRAPHI_UNSUPPORTED, plan->machine->name,
                    "found a described machine, expected a plan for the machine at hand");
    const graphi_machine *machine = options->machine ? options->machine : plan->machine;
    const graphi_setting own = graphi_decision_setting(&plan->setting);
    graphi_status status = trial_open(plan, state, state, &trial);
    if (!status)
        status = measured_curves(trial.run, options, &curves);
    trial_close(&trial);
    if (!status)
        status = machine == plan->machine ? plan_make(plan->compiled,
                                                      &(struct plan_parts){.machine = machine,
                                                                           .curves = curves,
                                                                           .measured = true,
                                                                           .setting = &own},
                                                      out)
                                          : plan_elsewhere(plan, machine, curves, out);
    mem_free(curves);
    return status;
}

/* --- counters --- */

static graphi_status count_all(graphi_run *run, const struct counters *counters, int classes, double *counts)
{
    const struct compiled *c = run->plan->compiled;
    TRY(graphi_run_execute(run));
    for (int32_t t = 0; t < c->tasks; t++) {
        int32_t k = c->curve_of[t];
        bool counted = k < classes && c->class_task[k] == t;
        if (counted)
            counters_start(counters);
        TRY(run_task(run, t, NULL, 0, 1));
        if (counted)
            counters_stop(counters, counts + (size_t)k * GRAPHI_COUNTERS);
    }
    return GRAPHI_OK;
}

graphi_status graphi_plan_count(const graphi_plan *plan, graphi_state *state, int classes, double *counts)
{
    GIVEN(plan);
    GIVEN(state);
    GIVEN(counts);
    struct counters counters;
    struct trial trial;
    if (!plan->machine->captured)
        return fail(GRAPHI_UNSUPPORTED, plan->machine->name,
                    "found a described machine, expected a plan for the machine at hand");
    TRY(counters_open(&counters));
    for (int i = 0; i < classes * GRAPHI_COUNTERS; i++)
        counts[i] = -1;
    struct float_mode mode = float_mode_enter();
    graphi_status status = trial_open(plan, state, state, &trial);
    if (!status)
        status = count_all(trial.run, &counters, classes, counts);
    trial_close(&trial);
    float_mode_leave(mode);
    counters_close(&counters);
    return status;
}
