/* SPDX-License-Identifier: Apache-2.0 */
/* Other searches over the space of the malleable policy on the simulated Xeon Phi: a width and a priority for each
 * class of operations, and the rules for workers that are too few or too many. Random search and the simplex method of
 * Nelder and Mead start from the best uniform width and may simulate as many operations as the malleable search spends;
 * beside them the best uniform setting and all strategies. Times over the lower bound; deterministic. */
#include "study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const networks[] = {"lstm",  "phased-lstm",  "pathnet", "googlenet", "resnet50",
                                       "dcgan", "inception-v3", "ptb",     NULL};

/* A point: log2 of the width per class, then a priority per class in parts of the start's makespan, then the rules. */
struct space {
    graphi_simulator *simulator;
    int classes, dimensions, cores;
    int *width;
    double *priority_ms, scale_ms, best_ms;
    int64_t left, operations;
    uint64_t random;
};

static int compared, worse;

static double uniform_draw(struct space *s)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(s->random >> 11) / 9007199254740992.0;
}

static double evaluate(struct space *s, const double *x)
{
    double ms = INFINITY;
    for (int c = 0; c < s->classes; c++) {
        long width = lround(exp2(fmin(fmax(x[c], 0), 16)));
        s->width[c] = width > s->cores ? s->cores : (int)width;
        s->priority_ms[c] = x[s->classes + c] * s->scale_ms;
    }
    int rules = (int)fmin(fmax(x[2 * s->classes], 0), 11);
    s->left -= s->operations;
    if (graphi_simulator_run(s->simulator, s->width, s->priority_ms, rules, &ms))
        return INFINITY;
    s->best_ms = fmin(s->best_ms, ms);
    return ms;
}

static void start_at(const struct space *s, double width, double *x)
{
    for (int i = 0; i < s->dimensions; i++)
        x[i] = i < s->classes ? log2(width) : 0;
    x[2 * s->classes] = 7.5; /* gaps are filled, and teams adapt */
}

static void random_search(struct space *s, double width, double *x)
{
    start_at(s, width, x);
    evaluate(s, x);
    while (s->left > 0) {
        for (int i = 0; i < s->dimensions; i++)
            x[i] = i < s->classes ? uniform_draw(s) * log2(s->cores) : (uniform_draw(s) - 0.5) / 4;
        x[2 * s->classes] = 12 * uniform_draw(s);
        evaluate(s, x);
    }
}

/* The simplex method with the usual factors: reflect the worst corner at the centre of the others, go on if that was
 * the best, go back if it was the worst, shrink towards the best if nothing helps. Corners: n + 1 rows of n + 1, value
 * last. */
static double along(struct space *s, const double *centre, const double *worst, double factor, double *x)
{
    for (int i = 0; i < s->dimensions; i++)
        x[i] = centre[i] + factor * (centre[i] - worst[i]);
    return x[s->dimensions] = evaluate(s, x);
}

static int by_value; /* column that the corners are sorted by */
static int by_last(const void *a, const void *b)
{
    double x = ((const double *)a)[by_value], y = ((const double *)b)[by_value];
    return (x > y) - (x < y);
}

static void shrink(struct space *s, double *corner)
{
    int n = s->dimensions;
    for (int k = 1; k <= n && s->left > 0; k++) {
        double *x = &corner[(size_t)k * (size_t)(n + 1)];
        for (int i = 0; i < n; i++)
            x[i] = (x[i] + corner[i]) / 2;
        x[n] = evaluate(s, x);
    }
}

static void nelder_mead(struct space *s, double width, double *corner, double *tried, double *further, double *centre)
{
    int n = s->dimensions;
    size_t row = (size_t)(n + 1), bytes = row * sizeof *corner;
    double *worst = &corner[(size_t)n * row];
    by_value = n;
    for (int k = 0; k <= n; k++) {
        double *x = &corner[(size_t)k * row];
        start_at(s, width, x);
        if (k > 0)
            x[k - 1] += k <= s->classes ? (x[k - 1] > 0.5 ? -1 : 1) : k < n ? 0.05 : -4;
        x[n] = k == 0 || s->left > 0 ? evaluate(s, x) : INFINITY; /* one core leaves nothing to search for */
    }
    while (s->left > 0) {
        qsort(corner, row, bytes, by_last);
        memset(centre, 0, bytes);
        for (int k = 0; k < n; k++)
            for (int i = 0; i < n; i++)
                centre[i] += corner[(size_t)k * row + (size_t)i] / n;
        double value = along(s, centre, worst, 1, tried);
        if (value < corner[n]) {
            memcpy(worst, along(s, centre, worst, 2, further) < value ? further : tried, bytes);
        } else if (value < corner[(size_t)(n - 1) * row + (size_t)n]) {
            memcpy(worst, tried, bytes);
        } else {
            double inside = along(s, centre, worst, value < worst[n] ? 0.5 : -0.5, further);
            if (inside < fmin(value, worst[n]))
                memcpy(worst, further, bytes);
            else
                shrink(s, corner);
        }
    }
}

static void add_row(struct study *s, const char *label, double ms, double uniform, double bound)
{
    char id[STUDY_ID], against[STUDY_ID];
    study_id(s, id, "%s", label);
    study_id(s, against, "best uniform");
    json_t *row = result_row(&s->bench->result, id, "graphi");
    result_set(row, "simulated", json_true());
    result_times(row, &ms, 1);
    if (ms != uniform)
        result_ratio(row, against, &ms, &uniform, 1);
    result_number(row, "lower_bound_ms", bound);
    result_number(row, "above_bound", ms / bound - 1);
}

/* With the memory for either search; what it found, or infinity. */
static graphi_status search(struct study *s, bool simplex, double width, const graphi_simulation *malleable,
                            double *out)
{
    struct space p = {.cores = s->about.cores, .best_ms = INFINITY, .left = malleable->searched,
                      .operations = malleable->operations, .scale_ms = malleable->makespan_ms, .random = 17};
    graphi_class class;
    while (graphi_plan_class_at(s->plan, p.classes, &class))
        p.classes++;
    p.dimensions = 2 * p.classes + 1;
    size_t row = (size_t)p.dimensions + 1;
    double *memory = calloc((row + 3) * row + (size_t)p.classes + 1, sizeof *memory);
    p.width = calloc((size_t)p.classes + 1, sizeof *p.width);
    graphi_status status = graphi_simulator_create(s->plan, s->machine, &p.simulator);
    if (!status && memory && p.width) {
        double *corners = memory + 3 * row;
        p.priority_ms = corners + row * row;
        if (simplex)
            nelder_mead(&p, width, corners, memory, memory + row, memory + 2 * row);
        else
            random_search(&p, width, memory);
    }
    graphi_simulator_destroy(p.simulator);
    free(p.width);
    free(memory);
    *out = p.best_ms;
    return status ? report_failure(status) : GRAPHI_OK;
}

static graphi_status compare(struct study *s)
{
    graphi_simulation uniform, strategies, malleable;
    graphi_setting setting,
        all = {.policy = GRAPHI_POLICY_S1234, .executors = s->about.cores, .width = 1, .light = GRAPHI_OFF};
    double random = INFINITY, simplex = INFINITY;
    graphi_status status = study_best(s, GRAPHI_POLICY_CRITICAL_PATH, &setting, &uniform);
    double width = setting.width;
    if (!status)
        status = study_simulate(s, &all, &strategies);
    if (!status)
        status = study_best(s, GRAPHI_POLICY_MALLEABLE, &setting, &malleable);
    report_progress(s->bench->options.quiet, "%s %s: random search", s->name, s->size);
    if (!status)
        status = search(s, false, width, &malleable, &random);
    report_progress(s->bench->options.quiet, "%s %s: Nelder-Mead", s->name, s->size);
    if (!status)
        status = search(s, true, width, &malleable, &simplex);
    if (status)
        return status;
    double bound = malleable.lower_bound_ms, base = uniform.makespan_ms;
    add_row(s, "best uniform", base, base, bound);
    add_row(s, "s1234", strategies.makespan_ms, base, bound);
    add_row(s, "random search", random, base, bound);
    add_row(s, "Nelder-Mead", simplex, base, bound);
    add_row(s, "malleable", malleable.makespan_ms, base, bound);
    char searched[160] = "; there was nothing to search";
    if (malleable.searched && malleable.widths_bound_ms > 0)
        snprintf(searched, sizeof searched,
                 " (no schedule with one width an operation is below %.1f); %.2f million simulated operations each "
                 "search",
                 100 * (malleable.widths_bound_ms / bound - 1), 1e-6 * (double)malleable.searched);
    result_note(
        &s->bench->result,
        "%s (simulated), %% above the lower bound: best uniform %.1f, s1234 %.1f, random search %.1f, Nelder-Mead "
        "%.1f, malleable %.1f%s",
        s->name, 100 * (base / bound - 1), 100 * (strategies.makespan_ms / bound - 1), 100 * (random / bound - 1),
        100 * (simplex / bound - 1), 100 * (malleable.makespan_ms / bound - 1), searched);
    compared++;
    worse += malleable.makespan_ms > fmin(random, simplex);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    study_description = "xeon-phi-7250-smt";
    graphi_status status = study_each(bench, networks, compare);
    if (!status && compared)
        result_goal(&bench->result, "networks on which another search finds less than malleable", worse, 0, false);
    return status;
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "search", run);
}
