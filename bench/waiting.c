/* SPDX-License-Identifier: Apache-2.0 */
/* Where the executors' time goes that is not spent at work in operations, by the trace: of executors' threads x step,
 * the part in which operations were ready but not yet running (scheduling), the part in which none was ready (waiting,
 * the end of the step included) and the part in which members of a team waited for each other. Under the tuned setting
 * (goal: less than 3 % together) and with one single-threaded executor a core, in the same memory and in alternating
 * turns, so that what disturbs the machine falls on both. Notes of a row tell the kinds of operations whose teams
 * waited most and what others had of its cores, one of both how their steps compare. Large networks run a few times
 * whatever --seconds says. */
#include "interval.h"
#include "parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHOSEN, EACH, ROWS };
enum { FEWEST = 6, FEWEST_LONG = 2 }; /* turns; fewer than six give no interval */

static const double LONG_SECONDS = 4; /* a step that takes longer runs FEWEST_LONG times */
static const double WRONG = 0.05;     /* how often the interval of the ratio may miss */

struct pair {
    struct network network;
    struct contender list[ROWS];
    struct parts parts[ROWS];
};

/* Odd rounds run backwards. The second execution of a turn counts: the other row's turn has emptied the caches. */
static graphi_status one_round(struct pair *pair, int cores, int round)
{
    graphi_status status = GRAPHI_OK;
    for (int k = 0; k < ROWS && status == GRAPHI_OK; k++) {
        const int row = round % 2 ? ROWS - 1 - k : k;
        status = parts_add(&pair->list[row], true, cores, &pair->parts[row]);
    }
    return status;
}

static graphi_status measure(struct bench *bench, struct pair *pair)
{
    const double seconds = ROWS * (bench->options.seconds > 0 ? bench->options.seconds : 5);
    const double *step_ms = pair->parts[CHOSEN].ms;
    double begin, spent = 0;
    graphi_status status = report_interrupted() ? GRAPHI_INTERRUPTED : GRAPHI_OK;
    for (int row = 0; row < ROWS && status == GRAPHI_OK; row++) /* touches the memory */
        status = contender_execute(&pair->list[row], &pair->list[row].first_ms);
    begin = report_seconds();
    for (int round = 0, fewest = FEWEST; round < PARTS_MOST && status == GRAPHI_OK; round++) {
        if (round >= fewest && spent >= seconds)
            break;
        report_progress(bench->options.quiet, "waiting %s %s: round %d, %.0f of %.0f s", pair->network.name,
                        pair->network.size, round + 1, spent, seconds);
        status = one_round(pair, bench->about.cores, round);
        spent = report_seconds() - begin;
        fewest = status == GRAPHI_OK && 1e-3 * step_ms[round] > LONG_SECONDS ? FEWEST_LONG : FEWEST;
    }
    return status;
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
    result_note(&bench->result, "%s: others had %.1f %% of its cores", title, 100 * parts_others(p));
    return GRAPHI_OK;
}

static void title_of(const struct pair *pair, int row, char title[96])
{
    snprintf(title, 96, "%s %s: %.40s", pair->network.name, pair->network.size, pair->list[row].id);
}

static graphi_status add_row(struct bench *bench, const struct pair *pair, int row)
{
    const struct parts *p = &pair->parts[row], *chosen = &pair->parts[CHOSEN];
    graphi_plan_info info;
    char title[96], against[96];
    title_of(pair, row, title);
    title_of(pair, CHOSEN, against);
    json_t *json = result_row(&bench->result, title, "graphi");
    graphi_plan_get_info(pair->list[row].plan, &info);
    result_setting(json, &info.setting);
    parts_row(json, p);
    result_times(json, p->ms, p->rounds);
    if (row != CHOSEN)
        result_ratio(json, against, p->ms, chosen->ms, p->rounds);
    result_number(json, "lower_bound_ms", info.lower_bound_ms);
    return tell(bench, title, &pair->list[row], p);
}

/* The steps of the same turns. */
static void tell_ratio(struct bench *bench, const struct pair *pair)
{
    double ratio[PARTS_MOST];
    const int rounds = pair->parts[EACH].rounds;
    char title[96], within[64];
    for (int i = 0; i < rounds; i++)
        ratio[i] = pair->parts[EACH].ms[i] / pair->parts[CHOSEN].ms[i];
    const struct interval of = interval_of(ratio, rounds, WRONG);
    if (isinf(of.high))
        snprintf(within, sizeof within, "too few turns for an interval");
    else
        snprintf(within, sizeof within, "interval of 95 %% %.3f to %.3f", of.low, of.high);
    title_of(pair, EACH, title);
    result_note(&bench->result, "%s takes %.3f of the chosen setting's step in %d alternating turns, %s", title,
                of.median, rounds, within);
}

static graphi_status open_both(struct bench *bench, struct pair *pair)
{
    graphi_plan_info info;
    graphi_setting each = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = bench->about.cores, .width = 1};
    graphi_status status = network_tune(bench, &pair->network, bench->options.tune_given ? bench->options.tune : 5);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_get_info(pair->network.plan, &info);
    status = contender_open(bench, &pair->network, "chosen", REQUEST(&info.setting), &pair->list[CHOSEN]);
    return status == GRAPHI_OK ? contender_beside(bench, &pair->network, "an executor a core", &each,
                                                  &pair->list[CHOSEN], &pair->list[EACH])
                               : status;
}

static void judge(struct bench *bench, const struct pair *pair)
{
    char goal[128];
    const struct parts *chosen = &pair->parts[CHOSEN];
    tell_ratio(bench, pair);
    snprintf(goal, sizeof goal, "%s %s: scheduling and waiting, also within teams, part of threads x step",
             pair->network.name, pair->network.size);
    result_goal(&bench->result, goal, result_median(chosen->lost, chosen->rounds), 0.03, false);
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    static struct pair pair;
    memset(&pair, 0, sizeof pair);
    graphi_status status = network_open(bench, name, size, NULL, &pair.network);
    if (status != GRAPHI_OK)
        return status;
    status = open_both(bench, &pair);
    if (status == GRAPHI_OK)
        status = measure(bench, &pair);
    for (int row = 0; row < ROWS && status == GRAPHI_OK; row++)
        status = add_row(bench, &pair, row);
    if (status == GRAPHI_OK)
        judge(bench, &pair);
    for (int row = ROWS - 1; row >= 0; row--) /* the first has the memory */
        contender_close(&pair.list[row]);
    network_close(&pair.network);
    return status;
}

static graphi_status run(struct bench *bench) { return bench_networks(bench, "medium,large", body); }

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "waiting", run);
}
