/* SPDX-License-Identifier: Apache-2.0 */
/* Hill climbing against every width (concurrency-control.txt Table V, III-C): accuracy of the times it did not
 * measure, 1 - mean |predicted - true| / true over all of them as in the paper, and without those beyond the stop,
 * which the scheduler never asks for; the gap of its optimum to the exhaustive one, and whether curves have one
 * valley, at intervals 2, 4, 8, 16. The truth is measured at every width where the machine has more than two cores and
 * --machine is not given; otherwise it is the simulated machine's (with --tune SECONDS from shares timed here), and
 * then the figures judge the climb, not the model: they have no goal. */
#include "study.h"

#include <math.h>
#include <string.h>

#ifndef EXPERIMENT
#define EXPERIMENT "hill-climb"
#endif

#define MEASURED BENCH_NETWORKS " --seconds --quick"

static const char *const networks[] = {"resnet50",    "dcgan",   "inception-v3", "ptb", "lstm",
                                       "phased-lstm", "pathnet", "googlenet",    NULL};
enum { CORES = 3 }; /* that measure the truth: on two cores a climb tries both widths */
static const int intervals[] = {2, 4, 8, 16};
static const struct {
    const char *network;
    double percent[4];
} paper[] = {{"resnet50", {98.13, 95.45, 83.42, 31.12}},
             {"dcgan", {97.16, 94.43, 51.54, 10.14}},
             {"inception-v3", {97.91, 94.22, 73.21, 21.21}},
             {"ptb", {95.56, 90.45, 41.34, 11.03}}};

struct truth {
    const graphi_plan *plan;
    const graphi_machine *machine; /* NULL: measured on the machine at hand */
    int class, cores, tiles;
};

static double true_ns(void *context, int width, bool spread)
{
    const struct truth *t = context;
    return graphi_plan_class_ns(t->plan, t->class, t->machine, width, spread, NULL);
}

struct score {
    double error, cases, error_between, cases_between, gap, worst_gap, operations, valleys, measurements;
    int interval; /* of the climb; more than asked for where it could not hold as many samples */
};

static bool was_measured(const graphi_climb *climb, int width, bool spread)
{
    for (int i = 0; i < climb->samples; i++)
        if (climb->width[i] == width)
            return (spread ? climb->spread_ns[i] : climb->compact_ns[i]) > 0;
    return false;
}

/* Time at any width by linear interpolation within the mode; *beyond: the width lies past what was measured. */
static double predicted_ns(const graphi_climb *climb, int width, bool spread, bool *beyond)
{
    const double *ns = spread ? climb->spread_ns : climb->compact_ns;
    int before = -1;
    *beyond = false;
    for (int i = 0; i < climb->samples; i++) {
        if (ns[i] <= 0)
            continue;
        if (climb->width[i] == width || (climb->width[i] > width && before < 0))
            return ns[i];
        if (climb->width[i] > width) {
            double t = (double)(width - climb->width[before]) / (climb->width[i] - climb->width[before]);
            return ns[before] + t * (ns[i] - ns[before]);
        }
        before = i;
    }
    *beyond = true;
    return before < 0 ? 0 : ns[before];
}

static void judge_case(struct truth *t, const graphi_climb *climb, int width, bool spread, double weight,
                       struct score *score)
{
    bool beyond;
    if (was_measured(climb, width, spread))
        return;
    double truth = true_ns(t, width, spread), predicted = predicted_ns(climb, width, spread, &beyond);
    score->error += weight * fabs(predicted - truth) / truth;
    score->cases += weight;
    if (beyond)
        return; /* the scheduler never asks for these: it takes no width beyond the rise */
    score->error_between += weight * fabs(predicted - truth) / truth;
    score->cases_between += weight;
}

/* The width after `width` of all that are cases; 0: none. A curve has not room for as many on a thousand cores. */
static int next_case(const struct truth *t, int width, bool spread)
{
    bool shared = t->tiles < t->cores;
    int end = !spread ? t->cores : shared ? t->tiles : 0;
    int next = width == 0 || spread || !shared ? width + 1 : (width & ~1) + 2; /* half-used tiles are not asked for */
    return width >= end ? 0 : next < end ? next : end;
}

/* All cases of one mode; false: not one valley. That is: once a time has risen (by more than a millionth) it does not
 * fall again. */
static bool judge_mode(struct truth *t, const graphi_climb *climb, bool spread, double weight, double *least,
                       struct score *score)
{
    bool rising = false, valley = true;
    double before = 0;
    for (int width = 0; (width = next_case(t, width, spread)) != 0;) {
        double ns = true_ns(t, width, spread);
        judge_case(t, climb, width, spread, weight, score);
        *least = fmin(*least, ns);
        rising = rising || (before > 0 && ns > before * (1 + 1e-6));
        valley = valley && !(rising && ns < before * (1 - 1e-6));
        before = ns;
    }
    return valley;
}

static void judge_class(struct truth *t, int interval, double operations, struct score *score)
{
    graphi_climb climb;
    double least = INFINITY;
    graphi_climb_search(t->cores, t->tiles, interval, false, true_ns, t, &climb);
    bool compact = judge_mode(t, &climb, false, operations, &least, score);
    bool spread = judge_mode(t, &climb, true, operations, &least, score);
    double gap = climb.best_ns / least - 1;
    score->gap += operations * gap;
    score->worst_gap = fmax(score->worst_gap, gap);
    score->operations += operations;
    score->measurements += climb.measurements * operations;
    score->valleys += compact && spread ? operations : 0;
    score->interval = climb.interval;
}

static void report(struct bench *bench, const char *network, const char *size, int x, const struct score *s,
                   bool simulated)
{
    char id[128], reason[80] = "every width was measured";
    snprintf(id, sizeof id, "%s %s: x = %d", network, size, intervals[x]);
    if (s->interval > intervals[x])
        snprintf(reason, sizeof reason, "a curve of so many widths has an interval of %d", s->interval);
    if (s->interval > intervals[x] || s->cases <= 0) {
        study_missing(bench, id, reason);
        return;
    }
    double accuracy = 1 - s->error / s->cases;
    double valleys = s->valleys / s->operations;
    json_t *row = result_row(&bench->result, id, "graphi");
    result_set(row, "simulated", json_boolean(simulated));
    result_number(row, "accuracy", accuracy);
    char between[64] = "";
    if (s->cases_between > 0) {
        double to_stop = 1 - s->error_between / s->cases_between;
        result_number(row, "accuracy_to_stop", to_stop);
        snprintf(between, sizeof between, ", %.1f %% without widths beyond the stop", 100 * to_stop);
    }
    result_number(row, "gap", s->gap / s->operations);
    result_number(row, "worst_gap", s->worst_gap);
    result_number(row, "one_valley", valleys);
    result_number(row, "measurements", s->measurements / s->operations);
    char text[64] = "";
    for (size_t i = 0; i < sizeof paper / sizeof *paper; i++)
        if (strcmp(paper[i].network, network) == 0) {
            result_number(row, "paper_accuracy", paper[i].percent[x] / 100);
            snprintf(text, sizeof text, " (Table V: %.1f %%)", paper[i].percent[x]);
        }
    result_note(&bench->result,
                "%s%s: accuracy %.1f %%%s%s, gap to the exhaustive optimum %.2f %% "
                "(worst %.1f %%), %.0f %% of operations "
                "have one valley, %.1f measurements an operation",
                id, simulated ? " (simulated)" : "", 100 * accuracy, text, between,
                100 * s->gap / s->operations, 100 * s->worst_gap, 100 * valleys, s->measurements / s->operations);
    if (!simulated && intervals[x] == 4) {
        result_goal(&bench->result, "accuracy at x = 4, %", 100 * accuracy, 94, true);
        result_goal(&bench->result, "gap to the exhaustive optimum at x = 4, %", 100 * s->gap / s->operations, 2,
                    false);
    }
}

/* Curves measured here hold every width; where they cannot there is no truth. */
static bool all_measured(struct truth *t)
{
    graphi_climb all;
    graphi_climb_search(t->cores, t->tiles, 0, true, true_ns, t, &all);
    return all.interval == 1;
}

static void judge(struct bench *bench, const char *network, const char *size, struct truth *t)
{
    graphi_class class;
    if (!t->machine && !all_measured(t)) {
        char id[128];
        snprintf(id, sizeof id, "%s %s", network, size);
        study_missing(bench, id, "a curve has not room for every width of so many cores: there is no truth");
        return;
    }
    for (int x = 0; x < 4; x++) {
        struct score score = {0};
        for (t->class = 0; graphi_plan_class_at(t->plan, t->class, &class); t->class ++)
            judge_class(t, intervals[x], (double)class.operations, &score);
        if (score.operations > 0)
            report(bench, network, size, x, &score, t->machine != NULL);
    }
}

static graphi_status measured(struct bench *bench, const char *network, const char *size)
{
    struct network n;
    graphi_plan *profiled = NULL;
    graphi_status status = network_open(bench, network, size, NULL, &n);
    if (status)
        return status;
    graphi_profile_options how = {.seconds = bench->options.seconds > 0 ? bench->options.seconds : 20,
                                  .exhaustive = true,
                                  .stop = report_stop};
    status = graphi_plan_profile(n.plan, n.state, &how, &profiled);
    if (status)
        status = bench_failure(status);
    else
        judge(bench, network, size,
              &(struct truth){.plan = profiled, .cores = bench->about.cores, .tiles = bench->about.tiles});
    graphi_plan_destroy(profiled);
    network_close(&n);
    return status;
}

static graphi_status simulated(struct study *s)
{
    judge(s->bench, s->name, s->size,
          &(struct truth){.plan = s->plan, .machine = s->machine, .cores = s->about.cores, .tiles = s->about.tiles});
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    graphi_status status = bench_only(bench, EXPERIMENT, bench->described ? STUDY_NETWORKS : MEASURED);
    if (status)
        return status;
    return bench->described ? study_each(bench, networks, simulated) : study_names(bench, networks, measured);
}

int main(int argc, char **argv)
{
    return bench_widths_main(argc, argv, EXPERIMENT, CORES, run);
}
