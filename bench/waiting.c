/* SPDX-License-Identifier: Apache-2.0 */
/* Where the executors' time goes that is not spent at work in operations, by the trace: of executors' threads x step,
 * the part in which operations were ready but not yet running (scheduling), the part in which none was ready (waiting,
 * the end of the step included) and the part in which members of a team waited for each other. Under the tuned setting
 * (goal: less than 3 % together) and with one single-threaded executor a core, in the same memory. A note a row tells
 * the kinds of operations whose teams waited most. Large networks run a few times whatever --seconds says. */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

enum { FEWEST = 5, FEWEST_LONG = 2 };

static const double LONG_SECONDS = 4; /* a step that takes longer runs FEWEST_LONG times */

static graphi_status measure(struct bench *bench, const char *title, graphi_run *run, struct parts *p)
{
    double seconds = bench->options.seconds > 0 ? bench->options.seconds : 5, spent = 0;
    graphi_status status = report_interrupted() ? GRAPHI_INTERRUPTED : graphi_run_execute(run); /* touches its memory */
    if (status != GRAPHI_OK)
        return bench_failure(status);
    for (int fewest = FEWEST; p->rounds < PARTS_MOST && (p->rounds < fewest || spent < seconds);) {
        report_progress(bench->options.quiet, "waiting %s: round %d, %.0f of %.0f s", title, p->rounds + 1, spent,
                        seconds);
        if ((status = parts_add(run, p)) != GRAPHI_OK)
            return status;
        double step = p->ms[p->rounds - 1] * 1e-3;
        spent += step;
        fewest = step > LONG_SECONDS ? FEWEST_LONG : FEWEST;
    }
    return GRAPHI_OK;
}

/* The kinds of operations in whose teams members wait for each other. */
enum { MOST_KINDS = 64, TOLD = 3 };
struct kind {
    const char *name;
    double ms;
};

static int by_wait(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

/* Of the last step. */
static graphi_status find_kinds(const graphi_run *run, const graphi_trace_summary *sum, struct kind *kind, int *count)
{
    graphi_trace_operation operation;
    *count = 0;
    for (int64_t i = 0; i < sum->operations; i++) {
        graphi_status status = graphi_run_trace_operation(run, i, &operation);
        int k = 0;
        if (status != GRAPHI_OK)
            return report_failure(status);
        while (k < *count && strcmp(kind[k].name, operation.kind) != 0)
            k++;
        if (k == *count && k < MOST_KINDS)
            kind[(*count)++] = (struct kind){operation.kind, 0};
        if (k < *count)
            kind[k].ms += operation.team_wait_ms;
    }
    qsort(kind, (size_t)*count, sizeof *kind, by_wait);
    return GRAPHI_OK;
}

static graphi_status tell(struct bench *bench, const char *title, const struct contender *c, const struct parts *p)
{
    graphi_trace_summary sum;
    graphi_plan_info info;
    struct kind kind[MOST_KINDS];
    char teams[300] = "";
    int count = 0;
    graphi_status status = graphi_run_trace_summary(c->run, &sum);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = find_kinds(c->run, &sum, kind, &count);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_get_info(c->plan, &info);
    double threads = info.setting.executors * info.setting.width, whole = threads * sum.span_ms;
    for (int k = 0, used = 0; k < count && k < TOLD && kind[k].ms > 0; k++)
        used += snprintf(teams + used, sizeof teams - (size_t)used, "%s %.40s %.2f",
                         k ? "," : ", of the last step's most in", kind[k].name, 100 * kind[k].ms / whole);
    result_note(&bench->result, "%s: lost %.2f %%: scheduling %.2f, waiting %.2f, within teams %.2f%s", title,
                100 * result_median(p->lost, p->rounds), 100 * result_median(p->scheduling, p->rounds),
                100 * result_median(p->waiting, p->rounds), 100 * result_median(p->team, p->rounds), teams);
    return GRAPHI_OK;
}

static graphi_status at_setting(struct bench *bench, const struct network *network, struct contender *c, double *lost)
{
    static struct parts parts;
    char title[96];
    graphi_plan_info info;
    parts.rounds = 0;
    snprintf(title, sizeof title, "%s %s: %.40s", network->name, network->size, c->id);
    graphi_status status = measure(bench, title, c->run, &parts);
    if (status != GRAPHI_OK)
        return status;
    json_t *row = result_row(&bench->result, title, "graphi");
    graphi_plan_get_info(c->plan, &info);
    result_setting(row, &info.setting);
    parts_row(row, &parts);
    result_times(row, parts.ms, parts.rounds);
    *lost = result_median(parts.lost, parts.rounds);
    result_number(row, "lower_bound_ms", info.lower_bound_ms);
    return tell(bench, title, c, &parts);
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
    struct contender list[2] = {0};
    graphi_plan_info info;
    double lost = 0, beside;
    char goal[128];
    graphi_setting each = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = bench->about.cores, .width = 1};
    graphi_status status = network_open(bench, name, size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    status = network_tune(bench, &network, bench->options.tune_given ? bench->options.tune : 5);
    if (status == GRAPHI_OK) {
        graphi_plan_get_info(network.plan, &info);
        status = contender_open(bench, &network, "chosen", &info.setting, &list[0]);
    }
    if (status == GRAPHI_OK)
        status = contender_beside(bench, &network, "an executor a core", &each, &list[0], &list[1]);
    if (status == GRAPHI_OK)
        status = at_setting(bench, &network, &list[0], &lost);
    if (status == GRAPHI_OK)
        status = at_setting(bench, &network, &list[1], &beside);
    contender_close(&list[1]);
    contender_close(&list[0]);
    network_close(&network);
    if (status != GRAPHI_OK)
        return status;
    snprintf(goal, sizeof goal, "%s %s: scheduling and waiting, also within teams, part of threads x step", name, size);
    result_goal(&bench->result, goal, lost, 0.03, false);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench) { return bench_networks(bench, "medium,large", body); }

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "waiting", run);
}
