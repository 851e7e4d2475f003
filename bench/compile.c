/* SPDX-License-Identifier: Apache-2.0 */
/* What compiling costs: plans of a network's inference and training graphs, with the setting chosen statically and with
 * one inherited from a plan before (a further shape of a model that is served). Turns of the two alternate; nanoseconds
 * are of a node of the user's graph. The goal, 5 us a node, is of GoogLeNet's inference with an inherited setting. */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 40, QUICK_ROUNDS = 5, INHERITED = 0, CHOSEN, WAYS };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static graphi_status turn(struct bench *bench, const graphi_graph *graph, const graphi_plan_options *options,
                          double *ms)
{
    graphi_plan *plan;
    const double begin = now_ms();
    graphi_status status = graphi_plan_create(graph, bench->machine, options, &plan);
    *ms = now_ms() - begin;
    if (status == GRAPHI_OK)
        graphi_plan_destroy(plan);
    return status;
}

static graphi_status measure(struct bench *bench, const char *id, const graphi_graph *graph, bool judged)
{
    double ms[WAYS][ROUNDS];
    graphi_plan_options options[WAYS];
    graphi_plan *plan;
    graphi_plan_info info;
    graphi_graph_info about;
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    graphi_status status = job_plan_options(&bench->options, &options[CHOSEN]);
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_plan_create(graph, bench->machine, &options[CHOSEN], &plan)) != GRAPHI_OK)
        return report_failure(status);
    graphi_plan_get_info(plan, &info);
    graphi_graph_get_info(graph, &about);
    options[INHERITED] = options[CHOSEN];
    options[INHERITED].setting = graphi_decision_setting(&info.setting);
    graphi_plan_destroy(plan);
    for (int r = 0; r < rounds && status == GRAPHI_OK; r++) {
        for (int way = 0; way < WAYS && status == GRAPHI_OK; way++)
            status = turn(bench, graph, &options[way], &ms[way][r]);
        if (status == GRAPHI_OK && report_interrupted())
            status = GRAPHI_INTERRUPTED;
    }
    if (status != GRAPHI_OK)
        return report_failure(status);
    for (int way = 0; way < WAYS; way++) {
        char name[200];
        snprintf(name, sizeof name, "%s%s", id, way == CHOSEN ? ": setting chosen" : "");
        json_t *row = result_row(&bench->result, name, "graphi");
        result_setting(row, &info.setting);
        result_times(row, ms[way], rounds);
        result_number(row, "overhead_ns_per_op", result_median(ms[way], rounds) * 1e6 / (double)about.nodes);
        if (way == CHOSEN)
            result_ratio(row, id, ms[way], ms[INHERITED], rounds);
    }
    result_note(&bench->result, "%s: %lld nodes, %lld operations in the plan", id, (long long)about.nodes,
                (long long)info.nodes);
    if (judged)
        result_goal(&bench->result, "googlenet small inference: us a node",
                    result_median(ms[INHERITED], rounds) * 1e3 / (double)about.nodes, 5, false);
    return GRAPHI_OK;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    graphi_status status = job_network("bench", name, "");
    for (int infers = 1; infers >= 0 && status == GRAPHI_OK; infers--) {
        graphi_model_options model;
        graphi_graph *graph = NULL;
        char id[160];
        if ((status = job_model_options(&bench->options, &model)) != GRAPHI_OK)
            return status;
        model.size = size;
        model.forward = model.evaluation = infers;
        snprintf(id, sizeof id, "%s %s %s", name, size, infers ? "inference" : "training");
        report_progress(bench->options.quiet, "%s", id);
        if ((status = graphi_model_create(name, &model, &graph)) != GRAPHI_OK)
            return report_failure(status);
        status = measure(bench, id, graph, infers && strcmp(name, "googlenet") == 0 && strcmp(size, "small") == 0);
        graphi_graph_destroy(graph);
    }
    return status;
}

static graphi_status run(struct bench *bench)
{
    return bench_networks(bench, "small", body);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "compile", run);
}
