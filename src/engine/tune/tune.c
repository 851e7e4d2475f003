/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler: where rounding may change, forms of the graph are compared first (rounding_search.c); operations are
 * measured, settings are simulated over the measured curves (candidates.c), and the promising ones run for real, in
 * alternation (race.c), until the choice is certain or the budget is spent; if it is uncertain then, for as long as the
 * race has had once more. Where the budget does not allow two rounds of two settings, the plan's own, inferred setting
 * stays. Parameters and the step counter are saved before and
 * restored after. One thread, the caller's. */
#include "engine/tune/tune.h"

#include "base/clock.h"
#include "base/number.h"
#include "base/status.h"
#include "engine/choose/planning.h"
#include "engine/choose/setting.h"
#include "engine/run/execute.h"
#include "engine/tune/candidates.h"
#include "engine/tune/measure.h"
#include "engine/tune/race.h"
#include "engine/tune/rounding_search.h"
#include "engine/tune/trial.h"
#include "machine/others.h"
#include "schedule/setting_canonical.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct tuner {
    const graphi_plan *plan;
    graphi_plan *formed;      /* NULL, or `plan`: in forms that round otherwise */
    struct text forms_tried;
    graphi_state *state;
    const graphi_tune_options *options;
    struct trial trial;
    struct measurement measured;
    struct candidates candidates;
    int field[RACE_FIELD]; /* of the candidates */
    struct schedule *schedule[RACE_FIELD];
    struct race race;
    struct patience patience;
};

static void tell(const struct tuner *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(const struct tuner *t, const char *format, ...)
{
    char text[256];
    if (!t->options->progress)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    t->options->progress(t->options->context, text);
}

/* A uniform setting against a schedule that was asked for: the difference counts from the noise on. */
static const double CONFIRMED = 0.005;

static bool confirms(const struct tuner *t)
{
    return t->options->setting && candidates_confirm(t->options->setting);
}

/* --- the race --- */

static graphi_status run_once(void *context, int racer, double *ns)
{
    struct tuner *t = context;
    TRY(patience_stopped(&t->patience));
    run_adopt(t->trial.run, t->candidates.list.data[t->field[racer]].plan, t->schedule[racer]);
    TRY(graphi_run_execute(t->trial.run));
    *ns = run_own_ns(t->trial.run);
    return GRAPHI_OK;
}

static double left_ns(void *context)
{
    const struct tuner *t = context;
    return (double)(t->patience.deadline - clock_ns());
}

static void rested(void *context, const struct race *race)
{
    struct tuner *t = context;
    const graphi_decision *best = &t->candidates.list.data[t->field[race->winner]].plan->setting;
    trial_restore(&t->trial);
    tell(t, "tuning: round %d, %d settings left, best %d x %d %s at %.3f ms", race->rounds, race_left(race),
         best->executors, best->width, graphi_policy_name(best->policy), race_median(race, race->winner) / 1e6);
}

/* Who is simpler than how many others. */
static int order_of(const struct tuner *t, int racer)
{
    int order = 0;
    for (int i = 0; i < t->race.count; i++)
        order += i != racer && candidates_simpler(&t->candidates, t->field[i], t->field[racer]);
    return order;
}

static graphi_status alternate(struct tuner *t)
{
    struct race *race = &t->race;
    race->run = run_once;
    race->left_ns = left_ns;
    race->rested = rested;
    race->context = t;
    race->margin = confirms(t) ? CONFIRMED : 0;
    race->longer = 1;
    race->count = candidates_field(&t->candidates, t->field, RACE_FIELD);
    for (int i = 0; i < race->count; i++) {
        const graphi_plan *plan = t->candidates.list.data[t->field[i]].plan;
        race->racer[i].order = order_of(t, i);
        race->racer[i].predicted_ns = plan->predicted_ns;
        if (!run_is_serial(&plan->setting)) /* measured as it will run */
            TRY(plan_schedule(plan, &t->schedule[i]));
    }
    TRY(race_run(race));
    for (int i = 0; i < race->count; i++) {
        struct candidate *c = &t->candidates.list.data[t->field[i]];
        c->runs = race->racer[i].rounds;
        c->ns = race->racer[i].ns;
        c->median_ns = c->runs ? race_median(race, i) : 0;
        const struct race_ratio to_chosen = race_compare(race, i, race->winner);
        c->ratio = to_chosen.median;
        c->doubt = to_chosen.doubt;
    }
    return GRAPHI_OK;
}

/* --- all of it --- */

static int by_prediction(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->plan->predicted_ns > y->plan->predicted_ns) - (x->plan->predicted_ns < y->plan->predicted_ns);
}

static void report_operations(const struct tuner *t, graphi_plan *plan)
{
    int classes = (int)plan->compiled->curves, known = (int)t->measured.known;
    if (t->measured.missing_ns > 0) {
        text_add(&plan->why,
                 "operations not measured, but %s: a round takes about %.2g s, a third of %.3g s is theirs; %d of %d "
                 "classes known before\n",
                 t->plan->measured ? "as they were" : "estimated", t->measured.missing_ns / 1e9, t->options->seconds,
                 known, classes);
        return;
    }
    text_add(
        &plan->why,
        "operations measured: %d of %d classes at up to %d threads, %d executions, spread %.1f %%; %d known before\n",
        classes - known, classes, plan->machine->cores, t->measured.executions, 100 * t->measured.spread, known);
    text_add(&plan->why, "widths climbed by %d, on neighbours%s\n", t->measured.interval,
             t->measured.both_modes ? " and one a shared level-2 cache"
                                    : " only: no two cores share a level-2 cache, where one a cache would differ");
}

static void report_race(const struct race *race, struct text *why)
{
    const double gain = race_may_gain(race);
    text_add(why, "chosen in %d alternating rounds", race->rounds);
    if (race->beyond)
        text_add(why, ", %d of them after the time, which had not told", race->beyond);
    text_add(why, "; a tie goes to fewer executors\n");
    if (gain <= RACE_MARGIN)
        text_add(why, "nobody who was left is likely to be faster by more than %.2g %%\n", 100 * RACE_MARGIN);
    else
        text_add(why, "not certain: one that was left may be faster by %.1f %%, more seconds tell\n", 100 * gain);
}

static void report_candidate(const struct candidate *c, bool chosen, struct text *why)
{
    const graphi_decision *s = &c->plan->setting;
    text_add(why, "  %3d x %-3d %-13s %-9s %10.3f", s->executors, s->width, graphi_policy_name(s->policy),
             graphi_driver_name(s->driver), c->plan->predicted_ns / 1e6);
    if (c->runs)
        text_add(why, " %10.3f (%d runs)", c->median_ns / 1e6, c->runs);
    else
        text_add(why, "          -");
    if (c->runs && !chosen)
        text_add(why, " %.3f +- %.3f of the chosen one", c->ratio, c->doubt);
    text_add(why, "%s%s", s->uniform ? ", teams of one width" : "", s->joins ? ", joining" : "");
    text_add(why, s->depth > 1 ? ", %d ahead\n" : "\n", s->depth);
}

static void report(struct tuner *t, graphi_plan *plan)
{
    text_add(&plan->why, "%s", t->forms_tried.data ? t->forms_tried.data : "");
    report_operations(t, plan);
    if (t->options->setting && !confirms(t))
        text_add(&plan->why, "the setting was asked for, no others were tried\n");
    else if (t->race.decided)
        report_race(&t->race, &plan->why);
    else
        text_add(&plan->why, "inferred statically: %.3g s did not allow %d rounds of two settings\n",
                 t->options->seconds, RACE_FEWEST);
    text_add(&plan->why, "settings tried (predicted, measured median ms; medians of the same rounds' ratios):\n");
    qsort(t->candidates.list.data, t->candidates.list.count, sizeof *t->candidates.list.data, by_prediction);
    for (size_t i = 0; i < t->candidates.list.count; i++) {
        const struct candidate *c = &t->candidates.list.data[i];
        report_candidate(c, c->plan == plan, &plan->why);
    }
}

/* Of every candidate, in their order. */
static graphi_status keep_tried(const struct tuner *t, graphi_plan *plan)
{
    double ms[RACE_ROUNDS];
    for (size_t i = 0; i < t->candidates.list.count; i++) {
        const struct candidate *c = &t->candidates.list.data[i];
        for (int k = 0; k < c->runs; k++)
            ms[k] = c->ns[k] / 1e6;
        TRY(tried_add(plan, &(struct tried){.setting = c->plan->setting, .predicted_ns = c->plan->predicted_ns,
                                            .ms = ms, .rounds = c->runs, .chosen = c->plan == plan}));
    }
    return GRAPHI_OK;
}

/* Half of the time for forms, at most CALIBRATED_NS of it where lowerings of sequences are all there is: the setting is
 * that of the best of them. */
static const int64_t CALIBRATED_NS = 1900000000;

static graphi_status choose_forms(struct tuner *t, const graphi_setting *open)
{
    struct patience half = t->patience;
    const int64_t now = clock_ns(), most_ns = t->plan->compiled->options.allow_rounding ? INT64_MAX : CALIBRATED_NS;
    half.deadline = now + least((half.deadline - now) / 2, most_ns);
    TRY(rounding_search(t->plan, t->state, t->options->setting ? t->options->setting : open, &half,
                        t->options->progress, &t->formed, &t->forms_tried));
    t->plan = t->formed ? t->formed : t->plan;
    return GRAPHI_OK;
}

static const double SHORT_NS = 2e9; /* of a round that measures operations */

/* A third of the time for the operations, a sixth at most for simulations, the rest for the race. An asked setting that
 * has nothing to beat runs alone, a few times, and its operations are measured whatever the time; otherwise the third
 * has to allow a round of them. */
static graphi_status search(struct tuner *t, graphi_plan **out)
{
    int64_t begin = clock_ns(), budget = t->patience.deadline - begin;
    struct patience first = t->patience;
    first.deadline = begin + (t->options->setting && !confirms(t) ? budget / 10 * 9 : budget / 3);
    tell(t, "tuning: measuring operations");
    const struct climb_options how = {
        .interval = t->options->interval, .short_ns = t->options->setting ? 0 : SHORT_NS, .known = t->options->curves};
    TRY(measure_curves(t->trial.run, &first, &how, &t->measured));
    trial_restore(&t->trial);
    tell(t, "tuning: simulating settings");
    t->candidates.base = t->plan;
    t->candidates.curves = t->measured.curves;
    t->candidates.measured = t->measured.missing_ns <= 0 || t->plan->measured;
    t->candidates.deadline = clock_ns() + budget / 6;
    if (t->options->setting)
        TRY(candidates_add_asked(&t->candidates, t->options->setting));
    else
        TRY(candidates_add(&t->candidates, t->options->policies));
    TRY(alternate(t));
    const struct candidate *best = &t->candidates.list.data[t->field[t->race.winner]];
    graphi_plan *plan = best->plan;
    plan->measured_ns = best->median_ns;
    report(t, plan);
    TRY(keep_tried(t, plan));
    *out = plan;
    for (size_t i = 0; i < t->candidates.list.count; i++) /* the caller's now */
        if (t->candidates.list.data[i].plan == *out)
            t->candidates.list.data[i].plan = NULL;
    return GRAPHI_OK;
}

void tune_mark(graphi_plan *plan, const graphi_plan *base, double share, bool left)
{
    plan->others = left ? fmax(share, base->others) : share;
    plan->disturbed = plan->others > 0 ? base->disturbed + (base->disturbed < INT_MAX) : 0;
}

static void tuner_close(struct tuner *t)
{
    trial_close(&t->trial);
    for (int i = 0; i < RACE_FIELD; i++)
        schedule_destroy(t->schedule[i]);
    candidates_free(&t->candidates);
    graphi_plan_destroy(t->formed);
    text_free(&t->forms_tried);
    mem_free(t->measured.curves);
}

graphi_status graphi_plan_tune(const graphi_plan *plan, graphi_state *state, const graphi_tune_options *options,
                               graphi_plan **out)
{
    GIVEN(plan);
    GIVEN(state);
    GIVEN(out);
    static const graphi_tune_options defaults;
    options = options ? options : &defaults;
    graphi_setting open = {0};
    setting_place(&open, &plan->setting);
    if (options->setting)
        TRY(setting_check(options->setting));
    if (!(options->seconds > 0))
        return graphi_plan_with(plan, &(graphi_plan_change){.setting = options->setting ? options->setting : &open},
                                out);
    struct tuner *t = mem_zalloc(sizeof *t);
    if (!t)
        return fail_memory("tuning", sizeof *t);
    t->plan = plan;
    t->state = state;
    t->options = options;
    t->patience = (struct patience){.deadline = clock_after(options->seconds),
                                   .stop = options->stop,
                                   .context = options->context};
    const struct others before = others_read("/proc/stat");
    graphi_status status = rounding_searched(plan->compiled) ? choose_forms(t, &open) : GRAPHI_OK;
    if (!status)
        status = trial_open(t->plan, state, state, &t->trial);
    if (!status)
        status = search(t, out);
    if (!status) {
        const struct others after = others_read("/proc/stat");
        tune_mark(*out, plan, others_share(&before, &after), t->measured.left > 0);
    }
    tuner_close(t);
    mem_free(t);
    return status;
}
