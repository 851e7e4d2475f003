/* SPDX-License-Identifier: Apache-2.0 */
/* How well the simulator predicts: for every network and every setting of the cores at hand, the operations are
 * measured once (graphi_plan_profile), each setting is simulated over these times and then run; error = |predicted /
 * measured - 1| with the median of alternating runs. Goal: a mean below 5 %. */
#include "study.h"

#include <math.h>
#include <string.h>

enum { MOST = 24 };
static double total, worst;
static int settings;

static graphi_status add(struct bench *bench, const struct network *n, struct contender *list, int *count,
                         graphi_setting setting)
{
    static const char *const drivers[] = {"", " dedicated", " combining"};
    char id[96];
    if (*count == MOST)
        return GRAPHI_OK;
    snprintf(id, sizeof id, "%dx%d %s%s", setting.executors, setting.width, graphi_policy_name(setting.policy),
             drivers[setting.driver]);
    return contender_open(bench, n, id, &setting, &list[(*count)++]);
}

static graphi_status collect(struct bench *bench, const struct network *n, struct contender *list, int *count)
{
    static const graphi_policy fixed[] = {GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_NAIVE, GRAPHI_POLICY_FIFO};
    static const graphi_policy free_width[] = {GRAPHI_POLICY_S1, GRAPHI_POLICY_S12, GRAPHI_POLICY_S123,
                                               GRAPHI_POLICY_MALLEABLE};
    int cores = bench->about.cores;
    graphi_status status = add(bench, n, list, count,
                               (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = cores});
    for (int k = 1; k <= cores && !status; k *= 2)
        for (size_t p = 0; p < 3 && !status; p++)
            if (p == 0 || (k > 1 && !bench->options.quick))
                status =
                    add(bench, n, list, count,
                        (graphi_setting){
                            .policy = fixed[p], .driver = GRAPHI_DRIVER_COMBINING, .executors = k, .width = cores / k});
    for (size_t p = 0; p < 4 && !status; p++)
        status = add(bench, n, list, count, (graphi_setting){.policy = free_width[p], .executors = cores, .width = 1});
    if (!status && cores > 2)
        status = add(bench, n, list, count,
                     (graphi_setting){.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                      .driver = GRAPHI_DRIVER_DEDICATED,
                                      .executors = cores - 1,
                                      .width = 1});
    return status;
}

static void judge(struct bench *bench, const struct network *n, struct contender *c, int rounds)
{
    graphi_simulation simulation;
    graphi_plan_info info;
    graphi_plan_get_info(c->plan, &info);
    json_t *row = bench_row(bench, n, c, NULL, rounds);
    if (graphi_plan_simulate(c->plan, NULL, &info.setting, NULL, &simulation) != GRAPHI_OK)
        return;
    double measured = result_median(c->ms, rounds), error = fabs(simulation.makespan_ms / measured - 1);
    result_number(row, "predicted_ms", simulation.makespan_ms);
    result_number(row, "error", error);
    result_number(row, "overhead_ns_per_op", simulation.host_ns_per_op);
    total += error;
    worst = fmax(worst, error);
    settings++;
}

static graphi_status body(struct bench *bench, const char *network, const char *size)
{
    struct network n;
    graphi_model_info exists;
    graphi_plan *profiled = NULL;
    struct contender list[MOST];
    int count = 0, rounds = 0;
    double seconds = bench->options.seconds > 0 ? bench->options.seconds : bench->options.quick ? 2 : 10;
    if (graphi_model_get_info(network, NULL, &exists) != GRAPHI_OK) {
        study_missing(bench, network, "network not of this build");
        return GRAPHI_OK;
    }
    graphi_status status = network_open(bench, network, size, NULL, &n);
    if (status)
        return status;
    report_progress(bench->options.quiet, "%s: measuring operations", network);
    status = graphi_plan_profile(n.plan, n.state, &(graphi_profile_options){.seconds = seconds / 3, .interval = 1, .stop = job_stopped},
                                 &profiled);
    if (status) {
        network_close(&n);
        return bench_failure(status);
    }
    graphi_plan_destroy(n.plan);
    n.plan = profiled;
    status = collect(bench, &n, list, &count);
    if (!status)
        status = bench_alternate(bench, network, list, count, seconds, bench->options.quick ? 10 : 200, &rounds);
    for (int i = 0; i < count; i++) {
        if (!status)
            judge(bench, &n, &list[i], rounds);
        contender_close(&list[i]);
    }
    network_close(&n);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm",  "phased-lstm",  "pathnet", "googlenet", "resnet50",
                                           "dcgan", "inception-v3", "ptb",     NULL};
    if (!bench->options.size)
        bench->options.size = "small"; /* --size medium takes minutes */
    graphi_status status = study_each(bench, networks, body);
    if (!status && settings) {
        result_goal(&bench->result, "mean error of the predicted makespan, %", 100 * total / settings, 5, false);
        result_note(&bench->result, "%d settings; worst error %.1f %%", settings, 100 * worst);
    }
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "simulator-error", run);
}
