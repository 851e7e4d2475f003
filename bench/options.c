/* SPDX-License-Identifier: Apache-2.0 */
/* What the paper tried and left (graphi.txt 5.2 and 6), each on and off: deeper buffers, asymmetric teams, preferred executors,
 * another number of executors in the backward pass, streaming stores, inlining, per-gate and merged cells. */
#include "bench.h"

#include <string.h>

static graphi_status settings_part(struct bench *bench, const struct network *network)
{
    int cores = bench->about.cores;
    struct entry entry[] = {
        {"as the paper's engine", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = cores, .width = 1}},
        {"buffers of depth 4", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = cores, .width = 1, .depth = 4}},
        {"no inlining", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = cores, .width = 1, .no_inline = true}},
        {"asymmetric teams", {.policy = GRAPHI_POLICY_ASYMMETRIC, .executors = cores, .width = 1}},
        {"preferred executors", {.policy = GRAPHI_POLICY_LOCALITY, .executors = cores, .width = 1}},
        {"one executor in the backward pass", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = cores, .width = 1, .backward_executors = 1}},
    };
    enum { COUNT = sizeof entry / sizeof *entry };
    for (int i = 0; i < COUNT; i++)
        entry[i].setting.driver = GRAPHI_DRIVER_COMBINING;
    return bench_settings(bench, network, entry, COUNT, 0, 6);
}

/* Two compilations of one network in alternation. */
static graphi_status two_plans(struct bench *bench, const char *name, const char *size, const char *id, const graphi_plan_options *on,
                               bool merged)
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
        status = bench_alternate(bench, id, list, 2, bench->options.seconds > 0 ? bench->options.seconds : 4, 200, &rounds);
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

static graphi_status run(struct bench *bench) { return bench_networks(bench, "small,medium", body); }

int main(int argc, char **argv) { return bench_main(argc, argv, "options", run); }
