/* SPDX-License-Identifier: Apache-2.0 */
/* What the paper tried and left (graphi.txt 5.2 and 6), each on and off: deeper buffers, asymmetric teams, preferred
 * executors, another number of executors in the backward pass, streaming stores, inlining, per-gate and merged cells.
 * With --machine FILE those that a description can tell, simulated. */
#include "study.h"

#include <string.h>

enum { SETTINGS = 6 };

static void fill_settings(struct entry entry[SETTINGS], int executors, int width)
{
    static const struct entry as[SETTINGS] = {
        {"as the paper's engine", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 1}},
        {"buffers of depth 4", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 4}},
        {"no inlining", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 1, .no_inline = true}},
        {"asymmetric teams", {.policy = GRAPHI_POLICY_ASYMMETRIC, .depth = 1}},
        {"preferred executors", {.policy = GRAPHI_POLICY_LOCALITY, .depth = 1}},
        {"", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 1}},
    };
    memcpy(entry, as, sizeof as);
    for (int i = 0; i < SETTINGS; i++) {
        entry[i].setting.executors = executors;
        entry[i].setting.width = width;
    }
    struct entry *last =
        &entry[SETTINGS - 1]; /* twice as many where teams can be halved, as the paper tried, else half as many */
    int backward = width > 1 ? 2 * executors : executors > 1 ? executors / 2 : 1;
    last->setting.backward_executors = backward;
    snprintf(last->id, sizeof last->id, "%d executors in the backward pass", backward);
}

static graphi_status settings_part(struct bench *bench, const struct network *network)
{
    struct entry entry[SETTINGS];
    fill_settings(entry, bench->about.cores, 1);
    for (int i = 0; i < SETTINGS; i++)
        entry[i].setting.driver = GRAPHI_DRIVER_COMBINING;
    return bench_settings(bench, network, entry, SETTINGS, 0, 6);
}

/* On a described machine, with --machine: eight executors, as is best for most of the networks there. */
static graphi_status simulated(struct study *s)
{
    struct entry entry[SETTINGS];
    graphi_simulation first = {0}, now;
    graphi_status status = GRAPHI_OK;
    int cores = s->about.cores;
    fill_settings(entry, cores < 8 ? cores : 8, cores >= 64 ? 8 : 1);
    for (int i = 0; i < SETTINGS && !status; i++)
        status =
            study_row(s, entry[i].id, &entry[i].setting, i ? entry[0].id : NULL, first.makespan_ms, i ? &now : &first);
    return status;
}

/* Two compilations of one network in alternation. */
static graphi_status two_plans(struct bench *bench, const char *name, const char *size, const char *id,
                               const graphi_plan_options *on, bool merged)
{
    struct network networks[2] = {0};
    struct contender list[2] = {0};
    graphi_plan_info info;
    int rounds = 0;
    graphi_status status = network_open(bench, name, size, NULL, &networks[0]);
    bool before = bench->options.merged;
    bench->options.merged = merged || before;
    if (status == GRAPHI_OK)
        status = network_open(bench, name, size, on, &networks[1]);
    bench->options.merged = before;
    for (int i = 0; i < 2 && status == GRAPHI_OK; i++) {
        graphi_plan_get_info(networks[i].plan, &info);
        status = contender_open(bench, &networks[i], i ? id : "off", &info.setting, &list[i]);
    }
    if (status == GRAPHI_OK)
        status =
            bench_alternate(bench, id, list, 2, bench->options.seconds > 0 ? bench->options.seconds : 4, 200, &rounds);
    if (status == GRAPHI_OK)
        bench_row(bench, &networks[1], &list[1], &list[0], rounds);
    for (int i = 0; i < 2; i++) {
        contender_close(&list[i]);
        network_close(&networks[i]);
    }
    return status;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
    graphi_plan_options streaming = {.streaming = GRAPHI_STREAM_ALWAYS}, merge = {.disable = "+merge"}, gates = {0};
    graphi_status status = network_open(bench, name, size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    status = settings_part(bench, &network);
    network_close(&network);
    if (status == GRAPHI_OK)
        status = two_plans(bench, name, size, "streaming stores", &streaming, false);
    if (status == GRAPHI_OK)
        status = two_plans(bench, name, size, "products that share an input merged", &merge, false);
    if (status == GRAPHI_OK && strstr(name, "lstm"))
        status = two_plans(bench, name, size, "cells with merged gates", &gates, true);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm", "phased-lstm", "pathnet", "googlenet", NULL};
    if (!bench->options.machine)
        return bench_networks(bench, "small,medium", body);
    result_note(
        &bench->result,
        "simulated: which executor an operation's inputs come from, and stores past the caches, are not modelled");
    if (!bench->options.disable)
        bench->options.disable = STUDY_PAPERS_GRAPH;
    return study_each(bench, networks, simulated);
}

int main(int argc, char **argv) { return bench_main(argc, argv, "options", run); }
