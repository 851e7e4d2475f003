/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler (G3): operations are measured, settings are simulated over the measured curves, and the promising ones run for
 * real, in alternation, so that drift of the machine falls on all of them alike. A setting that is clearly slower leaves; the
 * search ends when one is left, the ranking has been stable, or the budget is spent. Parameters and the step counter are
 * saved before and restored after.
 * Candidates: executors x width for powers of two and the widths of the graph, both drivers, and policies when asked. */
#include "engine/tune.h"

#include "base/clock.h"
#include "base/status.h"
#include "machine/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 96, FINALISTS = 10, MOST_ROUNDS = 60, STABLE_ROUNDS = 6 };

struct candidate {
    graphi_setting setting;
    graphi_plan *plan;
    struct schedule *schedule;
    double predicted_ns;
    double ns[MOST_ROUNDS];
    int rounds;
    double median, least;
    bool out;
};

struct tuner {
    const graphi_plan *plan;
    const graphi_tune_options *options;
    struct trial trial;
    struct measurement measured;
    struct candidate candidate[MOST_CANDIDATES];
    int candidates;
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

/* --- candidates ---------------------------------------------------------------------------------------------------------- */

static bool same(const graphi_setting *a, const graphi_setting *b)
{
    return a->policy == b->policy && a->driver == b->driver && a->executors == b->executors && a->width == b->width &&
           a->backward_executors == b->backward_executors && a->depth == b->depth;
}

/* A candidate's plan is resolved at once, so that equal settings are seen as such. Failures to fit are skipped. */
static graphi_status add(struct tuner *t, graphi_setting setting)
{
    const graphi_plan *base = t->plan;
    if (t->candidates == MOST_CANDIDATES)
        return GRAPHI_OK;
    struct candidate *c = &t->candidate[t->candidates];
    *c = (struct candidate){0};
    setting.unpinned = base->setting.unpinned;
    graphi_status status = plan_over(base->compiled, base->machine, t->measured.curves, true, &setting, &c->plan);
    if (status == GRAPHI_USAGE)
        return GRAPHI_OK;
    TRY(status);
    c->setting = c->plan->setting;
    c->predicted_ns = c->plan->predicted_ns;
    for (int i = 0; i < t->candidates; i++)
        if (same(&t->candidate[i].setting, &c->setting)) {
            graphi_plan_destroy(c->plan);
            return GRAPHI_OK;
        }
    t->candidates++;
    return GRAPHI_OK;
}

/* The malleable policy searches widths by itself whatever the split, which takes up to a second: two splits stand for all. */
static graphi_status add_malleable(struct tuner *t, graphi_driver driver)
{
    int cores = t->plan->machine->cores;
    tell(t, "tuning: searching widths of the malleable policy");
    TRY(add(t, (graphi_setting){.policy = GRAPHI_POLICY_MALLEABLE, .driver = driver, .executors = cores, .width = 1}));
    return add(t, (graphi_setting){.policy = GRAPHI_POLICY_MALLEABLE, .driver = driver, .executors = 1, .width = cores});
}

static graphi_status add_splits(struct tuner *t, graphi_policy policy, graphi_driver driver)
{
    int cores = t->plan->machine->cores, graph = t->plan->graph_width;
    if (policy == GRAPHI_POLICY_MALLEABLE)
        return add_malleable(t, driver);
    for (int k = 1; k <= cores; k *= 2)
        TRY(add(t, (graphi_setting){.policy = policy, .driver = driver, .executors = k, .width = cores / k}));
    const int widths[] = {graph, (graph + 1) / 2, (graph + 2) / 3, cores};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i] >= 1 && widths[i] <= cores)
            TRY(add(t, (graphi_setting){.policy = policy, .driver = driver, .executors = widths[i],
                                        .width = cores / widths[i]}));
    return add(t, (graphi_setting){.policy = policy, .driver = driver, .executors = 1, .width = 1});
}

/* Executors that run ahead: fewer scheduling steps and waits against a choice made earlier. */
static graphi_status add_depths(struct tuner *t)
{
    int cores = t->plan->machine->cores;
    for (int k = cores; k > 1; k /= 2)
        for (int depth = 1; depth <= 4; depth *= 2)
            TRY(add(t, (graphi_setting){.driver = GRAPHI_DRIVER_COMBINING, .executors = k, .width = cores / k, .depth = depth}));
    return GRAPHI_OK;
}

static graphi_status add_candidates(struct tuner *t)
{
    TRY(add_splits(t, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING));
    TRY(add_splits(t, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_DEDICATED));
    TRY(add(t, (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = t->plan->machine->cores}));
    TRY(add(t, (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}));
    TRY(add_depths(t));
    for (int policy = 0; t->options->policies && policy < GRAPHI_POLICIES; policy++)
        if (policy != GRAPHI_POLICY_RANDOM && policy != GRAPHI_POLICY_NAIVE && policy != GRAPHI_POLICY_SEQUENTIAL)
            TRY(add_splits(t, (graphi_policy)policy, GRAPHI_DRIVER_COMBINING));
    return GRAPHI_OK;
}

static int by_prediction(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->predicted_ns > y->predicted_ns) - (x->predicted_ns < y->predicted_ns);
}

/* The best by prediction are run, no more of them than have time for three rounds; the rest stays in the report. */
static graphi_status choose_finalists(struct tuner *t)
{
    double left = (double)(t->patience.deadline - clock_ns()), round = 0;
    qsort(t->candidate, (size_t)t->candidates, sizeof *t->candidate, by_prediction);
    for (int i = 0; i < t->candidates; i++) {
        struct candidate *c = &t->candidate[i];
        round += c->predicted_ns;
        c->out = i >= FINALISTS || (i >= 2 && 3 * round > left);
        if (!c->out)
            TRY(schedule_create(&c->plan->tasks, &c->plan->setting, c->plan->machine, &c->schedule));
    }
    return GRAPHI_OK;
}

/* --- alternation --------------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median_of(const struct candidate *c)
{
    double sorted[MOST_ROUNDS];
    memcpy(sorted, c->ns, (size_t)c->rounds * sizeof *sorted);
    qsort(sorted, (size_t)c->rounds, sizeof *sorted, by_value);
    return sorted[c->rounds / 2];
}

static graphi_status run_once(struct tuner *t, struct candidate *c)
{
    run_adopt(t->trial.run, c->plan, c->schedule);
    TRY(graphi_run_execute(t->trial.run));
    c->ns[c->rounds++] = t->trial.run->info.last_ms * 1e6;
    c->median = median_of(c);
    c->least = c->rounds == 1 || c->ns[c->rounds - 1] < c->least ? c->ns[c->rounds - 1] : c->least;
    return GRAPHI_OK;
}

static struct candidate *leader(struct tuner *t)
{
    struct candidate *best = NULL;
    for (int i = 0; i < t->candidates; i++)
        if (!t->candidate[i].out && t->candidate[i].rounds && (!best || t->candidate[i].median < best->median))
            best = &t->candidate[i];
    return best;
}

/* Whoever is slower than the leader even in its best run leaves: a disturbance makes a run slower, never faster. */
static int drop_slow(struct tuner *t, const struct candidate *best, int round)
{
    int left = 0;
    double margin = round < 3 ? 2 : round < 8 ? 1.15 : 1.03;
    for (int i = 0; i < t->candidates; i++) {
        struct candidate *c = &t->candidate[i];
        if (!c->out && c->least > best->median * margin)
            c->out = true;
        left += !c->out;
    }
    return left;
}

static graphi_status alternate(struct tuner *t)
{
    const struct candidate *before = NULL;
    int stable = 0;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        for (int i = 0; i < t->candidates; i++) {
            if (t->candidate[i].out)
                continue;
            if (round > 0 && patience_over(&t->patience))
                return GRAPHI_OK;
            TRY(patience_stopped(&t->patience));
            TRY(run_once(t, &t->candidate[i]));
        }
        trial_restore(&t->trial);
        const struct candidate *best = leader(t);
        stable = best == before ? stable + 1 : 0;
        before = best;
        int left = drop_slow(t, best, round);
        tell(t, "tuning: round %d, %d settings left, best %d x %d %s at %.3f ms", round + 1, left, best->setting.executors,
             best->setting.width, graphi_policy_name(best->setting.policy), best->median / 1e6);
        if (round >= 4 && (left == 1 || stable >= STABLE_ROUNDS))
            break;
    }
    return GRAPHI_OK;
}

/* --- all of it ----------------------------------------------------------------------------------------------------------- */

static void report(const struct tuner *t, graphi_plan *plan)
{
    text_add(&plan->why, "operations measured in %d executions, spread %.1f %%\nsettings tried (predicted, measured median ms):\n",
             t->measured.executions, 100 * t->measured.spread);
    for (int i = 0; i < t->candidates; i++) {
        const struct candidate *c = &t->candidate[i];
        text_add(&plan->why, "  %3d x %-3d %-13s %-9s %10.3f", c->setting.executors, c->setting.width,
                 graphi_policy_name(c->setting.policy),
                 c->setting.driver == GRAPHI_DRIVER_DEDICATED ? "dedicated" : "combining", c->predicted_ns / 1e6);
        if (c->rounds)
            text_add(&plan->why, " %10.3f (%d runs)", c->median / 1e6, c->rounds);
        else
            text_add(&plan->why, "          -");
        text_add(&plan->why, c->setting.depth > 1 ? ", %d ahead\n" : "\n", c->setting.depth);
    }
}

static graphi_status search(struct tuner *t, graphi_plan **out)
{
    int64_t budget = (int64_t)(t->options->seconds * 1e9), begin = clock_ns();
    t->patience = (struct patience){begin + budget, t->options->stop, t->options->context};
    struct patience first = t->patience;
    first.deadline = begin + budget / 3;
    tell(t, "tuning: measuring operations");
    int interval = t->options->interval;
    TRY(measure_curves(t->trial.run, &first, interval, false, &t->measured));
    trial_restore(&t->trial);
    TRY(add_candidates(t));
    TRY(choose_finalists(t));
    TRY(alternate(t));
    const struct candidate *best = leader(t);
    TRY(plan_over(t->plan->compiled, t->plan->machine, t->measured.curves, true, &best->setting, out));
    (*out)->measured_ns = best->median;
    report(t, *out);
    return GRAPHI_OK;
}

static void tuner_close(struct tuner *t)
{
    trial_close(&t->trial);
    for (int i = 0; i < t->candidates; i++) {
        schedule_destroy(t->candidate[i].schedule);
        graphi_plan_destroy(t->candidate[i].plan);
    }
    mem_free(t->measured.curves);
}

graphi_status graphi_plan_tune(const graphi_plan *plan, graphi_state *state, const graphi_tune_options *options,
                               graphi_plan **out)
{
    static const graphi_tune_options defaults;
    options = options ? options : &defaults;
    if (!(options->seconds > 0))
        return plan_over(plan->compiled, plan->machine, plan->curves, plan->measured,
                         &(graphi_setting){.unpinned = plan->setting.unpinned}, out);
    struct tuner *t = mem_zalloc(sizeof *t);
    if (!t)
        return fail_memory("tuning", sizeof *t);
    t->plan = plan;
    t->options = options;
    graphi_status status = trial_open(plan, state, &t->trial);
    if (!status)
        status = search(t, out);
    tuner_close(t);
    mem_free(t);
    return status;
}
