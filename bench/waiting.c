/* SPDX-License-Identifier: Apache-2.0 */
/* Where the executors' time goes that is not spent in operations, by the trace: of executors x step, the part in
 * which an operation was ready but not yet running (scheduling) and the part in which none was ready (waiting, the
 * end of the step included). Under the tuned setting (goal: less than 3 % together) and with one single-threaded
 * executor a core. Barriers inside a team count as its operation. */
#include "bench.h"

#include <string.h>

enum { MOST = 200 };

struct parts {
    int rounds;
    double ms[MOST], scheduling[MOST], waiting[MOST], lost[MOST];
};

static graphi_status measure(struct bench *bench, const char *title, graphi_run *run, double seconds, struct parts *p)
{
    double spent = 0;
    graphi_status status = graphi_run_execute(run);
    if (status == GRAPHI_OK)
        status = graphi_run_trace(run, true);
    p->rounds = 0;
    while (status == GRAPHI_OK && p->rounds < MOST && (p->rounds < 5 || spent < seconds)) {
        graphi_trace_summary sum;
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        report_progress(bench->options.quiet, "waiting %s: round %d, %.0f of %.0f s", title, p->rounds + 1, spent, seconds);
        if ((status = graphi_run_execute(run)) != GRAPHI_OK || (status = graphi_run_trace_summary(run, &sum)) != GRAPHI_OK)
            break;
        p->ms[p->rounds] = sum.span_ms;
        p->scheduling[p->rounds] = sum.scheduling_fraction;
        p->waiting[p->rounds] = sum.waiting_fraction;
        p->lost[p->rounds++] = sum.scheduling_fraction + sum.waiting_fraction;
        spent += sum.span_ms * 1e-3;
    }
    return status == GRAPHI_OK ? status : report_failure(status);
}

static graphi_status at_setting(struct bench *bench, const struct network *network, const char *label, const graphi_setting *setting,
                                double *lost)
{
    static struct parts parts;
    struct contender c;
    graphi_plan_info info;
    char title[96];
    snprintf(title, sizeof title, "%s %s: %s", network->name, network->size, label);
    graphi_status status = contender_open(bench, network, label, setting, &c);
    if (status == GRAPHI_OK)
        status = measure(bench, title, c.run, bench->options.seconds > 0 ? bench->options.seconds : 5, &parts);
    if (status == GRAPHI_OK) {
        json_t *row = result_row(&bench->result, title, "graphi");
        graphi_plan_get_info(c.plan, &info);
        result_setting(row, &info.setting);
        result_times(row, parts.ms, parts.rounds);
        result_number(row, "scheduling_fraction", result_median(parts.scheduling, parts.rounds));
        result_number(row, "waiting_fraction", result_median(parts.waiting, parts.rounds));
        result_number(row, "lost_fraction", *lost = result_median(parts.lost, parts.rounds));
        result_number(row, "lower_bound_ms", info.lower_bound_ms);
    }
    contender_close(&c);
    return status;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
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
        status = at_setting(bench, &network, "chosen", &info.setting, &lost);
    }
    if (status == GRAPHI_OK)
        status = at_setting(bench, &network, "an executor a core", &each, &beside);
    network_close(&network);
    if (status != GRAPHI_OK)
        return status;
    snprintf(goal, sizeof goal, "%s %s: scheduling and waiting, part of executors x step", name, size);
    result_goal(&bench->result, goal, lost, 0.03, false);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench) { return bench_networks(bench, "medium,large", body); }

int main(int argc, char **argv) { return bench_main(argc, argv, "waiting", run); }
