/* SPDX-License-Identifier: Apache-2.0 */
/* Free widths on the cores at hand: strategies 1 to 4 and the malleable policy, over measured curves, against the
 * better uniform setting (executors x width = cores), in alternation. The malleable plan is the one that tuning
 * confirmed by measurement before: it may have kept teams of one width (docs/policies.md). Goals: all strategies
 * together never lose more than 3 %: met where the whole confidence interval of the paired ratio says so, missed where
 * the whole interval says the opposite; in between a note says that more rounds are needed. The malleable policy wins
 * on average. Strategies 1 and 2 run one operation at a time by definition: they have rows, but no goal.
 * Short executions run twice a turn and the second counts, as in a training loop: the turns of the others have emptied
 * the caches. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32 };
static double log_malleable;
static int networks;

static graphi_status collect(struct bench *bench, const struct network *n, struct contender *list, int *uniform,
                             int *count)
{
    static const graphi_policy free_width[] = {GRAPHI_POLICY_S1, GRAPHI_POLICY_S12, GRAPHI_POLICY_S1234,
                                               GRAPHI_POLICY_MALLEABLE};
    int cores = bench->about.cores;
    char id[96];
    graphi_status status = GRAPHI_OK;
    graphi_plan_info malleable;
    graphi_plan_get_info(n->plan, &malleable);
    for (int k = 1; k <= cores && !status && *count < MOST - 4; k *= 2) {
        graphi_setting setting = {.driver = GRAPHI_DRIVER_COMBINING, .executors = k, .width = cores / k};
        snprintf(id, sizeof id, "%dx%d", k, cores / k);
        status = contender_open(bench, n, id, &setting, &list[(*count)++]);
    }
    *uniform = *count;
    for (int i = 0; i < 4 && !status; i++) {
        graphi_setting free = {.policy = free_width[i], .executors = cores, .width = 1};
        const graphi_setting *setting = free_width[i] == GRAPHI_POLICY_MALLEABLE ? &malleable.setting : &free;
        status = contender_open(bench, n, graphi_policy_name(free_width[i]), setting, &list[(*count)++]);
    }
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct interval {
    double low, median, high;
};

/* Median of the paired ratios and its 95 % interval (order statistics of the sign test). */
static struct interval paired(const struct contender *c, const struct contender *base, int rounds)
{
    double ratio[BENCH_MAX_ROUNDS];
    for (int i = 0; i < rounds; i++)
        ratio[i] = c->ms[i] / base->ms[i];
    qsort(ratio, (size_t)rounds, sizeof *ratio, by_value);
    int at = (int)fmax(0, floor(rounds / 2.0 - 0.98 * sqrt(rounds)));
    return (struct interval){ratio[at], ratio[rounds / 2], ratio[rounds - 1 - at]};
}

static double median_of(const struct contender *c, int rounds)
{
    double copy[BENCH_MAX_ROUNDS];
    memcpy(copy, c->ms, (size_t)rounds * sizeof *copy);
    return result_median(copy, rounds);
}

static void judge(struct bench *bench, const struct network *n, const struct contender *list, int uniform, int count,
                  int rounds)
{
    static const double most = 1.03;
    int best = 0;
    char goal[200];
    for (int i = 1; i < uniform; i++)
        if (median_of(&list[i], rounds) < median_of(&list[best], rounds))
            best = i;
    for (int i = 0; i < count; i++)
        bench_row(bench, n, &list[i], &list[best], rounds);
    const struct interval strategies = paired(&list[uniform + 2], &list[best], rounds);
    snprintf(goal, sizeof goal, "%s %s: strategies over the better uniform setting, interval %.3f to %.3f", n->name,
             n->size, strategies.low, strategies.high);
    if (strategies.low > most || strategies.high <= most)
        result_goal(&bench->result, goal, strategies.median, most, false);
    else
        result_note(&bench->result,
                    "%s, median %.3f: %d rounds do not tell whether it is above %g, --seconds gives more", goal,
                    strategies.median, rounds, most);
    log_malleable += log(paired(&list[uniform + 3], &list[best], rounds).median);
    networks++;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network n;
    struct contender list[MOST];
    graphi_plan *tuned = NULL;
    int count = 0, uniform = 0, rounds = 0;
    double seconds = bench->options.seconds > 0 ? bench->options.seconds : bench->options.quick ? 2 : 10;
    graphi_status status = network_open(bench, name, size, NULL, &n);
    if (status)
        return status;
    int interval = bench->options.interval ? bench->options.interval : 1;
    graphi_setting malleable = {.policy = GRAPHI_POLICY_MALLEABLE,
                                .driver = GRAPHI_DRIVER_COMBINING,
                                .executors = bench->about.cores,
                                .width = 1};
    graphi_tune_options how = {.seconds = seconds, .setting = &malleable, .interval = interval, .stop = job_stopped};
    report_progress(bench->options.quiet, "%s %s: measuring operations", name, size);
    double spent = report_seconds();
    status = graphi_plan_tune(n.plan, n.state, &how, &tuned);
    spent = 1e3 * (report_seconds() - spent);
    if (status) {
        network_close(&n);
        return bench_failure(status);
    }
    graphi_plan_destroy(n.plan);
    n.plan = tuned;
    status = collect(bench, &n, list, &uniform, &count);
    if (!status)
        status = bench_alternate(bench, name, list, count, seconds, 200, &rounds);
    if (!status) {
        graphi_plan_info kept;
        graphi_plan_get_info(n.plan, &kept);
        result_note(&bench->result, "%s %s: malleable kept %s", name, size,
                    kept.setting.uniform ? "teams of one width" : "the widths that it searched");
        judge(bench, &n, list, uniform, count, rounds);
        double steps = spent / median_of(&list[uniform + 2], rounds);
        result_note(&bench->result,
                    "%s %s: profiling and confirming took as long as %.0f steps: under 0.05 %% of a training of %.0f "
                    "steps or more",
                    name, size, steps, steps / 0.0005);
    }
    for (int i = 0; i < count; i++)
        contender_close(&list[i]);
    network_close(&n);
    return status;
}

static graphi_status run(struct bench *bench)
{
    bench->warm = true;
    graphi_status status = bench_networks(bench, "small,medium", body);
    if (!status && networks)
        result_goal(&bench->result, "malleable over the better uniform setting, geometric mean",
                    exp(log_malleable / networks), 1, false);
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "policies", BENCH_NETWORKS " --allow-rounding --interval --seconds", run);
}
