/* SPDX-License-Identifier: Apache-2.0 */
/* What the paper tried and left (graphi.txt 5.2 and 6), each on and off: deeper buffers, asymmetric teams, preferred
 * executors, another number of executors in the backward pass, the light executor, streaming stores, inlining, per-gate
 * and merged cells. With --machine FILE those that a description can tell, simulated. */
#include "study.h"

#include <string.h>

enum { SETTINGS = 7 };
#define MEASURED BENCH_NETWORKS " --seconds"

/* The paper's engine has a light executor (5.2). Where the executors leave it no core it takes the place of one. */
static void fill_light(struct entry entry[SETTINGS], int cores, int executors, int width)
{
    struct entry *last = &entry[SETTINGS - 1];
    const bool room = executors * width < cores;
    for (int i = 0; i < SETTINGS; i++)
        entry[i].setting.light = room ? GRAPHI_ON : GRAPHI_OFF;
    last->setting.light = room ? GRAPHI_OFF : GRAPHI_ON;
    last->setting.executors = room ? executors : executors - 1;
    snprintf(last->id, sizeof last->id, room ? "no light executor" : "a light executor in place of one");
}

/* How many there are: a single core has nothing for a light executor. */
static int fill_settings(struct entry entry[SETTINGS], int cores, int executors, int width)
{
    static const struct entry as[SETTINGS] = {
        {"as the paper's engine", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 1}},
        {"buffers of depth 4", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 4}},
        {"no inlining", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 1, .inlining = GRAPHI_OFF}},
        {"asymmetric teams", {.policy = GRAPHI_POLICY_ASYMMETRIC, .depth = 1}},
        {"preferred executors", {.policy = GRAPHI_POLICY_LOCALITY, .depth = 1}},
        {"", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 1}},
        {"", {.policy = GRAPHI_POLICY_CRITICAL_PATH, .depth = 1}},
    };
    memcpy(entry, as, sizeof as);
    for (int i = 0; i < SETTINGS; i++) {
        entry[i].setting.executors = executors;
        entry[i].setting.width = width;
    }
    struct entry *other =
        &entry[SETTINGS - 2]; /* twice as many where teams can be halved, as the paper tried, else half as many */
    int backward = width > 1 ? 2 * executors : executors > 1 ? executors / 2 : 1;
    other->setting.backward_executors = backward;
    snprintf(other->id, sizeof other->id, "%d executors in the backward pass", backward);
    fill_light(entry, cores, executors, width);
    return entry[SETTINGS - 1].setting.executors > 0 ? SETTINGS : SETTINGS - 1;
}

static graphi_status settings_part(struct bench *bench, const struct network *network)
{
    struct entry entry[SETTINGS];
    int cores = bench->about.cores, count = fill_settings(entry, cores, cores, 1);
    for (int i = 0; i < count; i++)
        entry[i].setting.driver = GRAPHI_DRIVER_COMBINING;
    return bench_settings(bench, network, entry, count, 0, 6);
}

/* On a described machine, with --machine: eight executors, as is best for most of the networks there. */
static graphi_status simulated(struct study *s)
{
    struct entry entry[SETTINGS];
    graphi_simulation first = {0}, now;
    graphi_status status = GRAPHI_OK;
    int cores = s->about.cores, count = fill_settings(entry, cores, cores < 8 ? cores : 8, cores >= 64 ? 8 : 1);
    for (int i = 0; i < count && !status; i++)
        status =
            study_row(s, entry[i].id, &entry[i].setting, i ? entry[0].id : NULL, first.makespan_ms, i ? &now : &first);
    return status;
}

/* One of the options that compile otherwise. */
struct otherwise {
    const char *id;
    bool streaming, merge, cells;
    graphi_streaming with, without; /* streaming: what differs */
};

/* The static setting of the compilation that is predicted to be the faster one. */
static graphi_setting setting_of_both(const struct network networks[2])
{
    graphi_plan_info info[2];
    for (int i = 0; i < 2; i++)
        graphi_plan_get_info(networks[i].plan, &info[i]);
    return graphi_decision_setting(&info[info[1].predicted_ms < info[0].predicted_ms].setting);
}

/* Two compilations of one network in alternation: with and without, everything else as it was asked for, under one
 * setting: under two they would tell what 1x2 and 2x1 differ by. */
static graphi_status two_plans(struct bench *bench, const char *name, const char *size, const struct otherwise *other)
{
    struct network networks[2] = {0};
    char disable[512], id[96];
    graphi_plan_options on, off;
    struct contender list[2] = {0};
    graphi_setting setting = {0};
    int rounds = 0;
    graphi_status status = job_plan_options(&bench->options, &on);
    snprintf(disable, sizeof disable, "%s%s+merge", on.disable ? on.disable : "", on.disable ? "," : "");
    off = on;
    if (other->merge)
        on.disable = disable;
    if (other->streaming) {
        on.streaming = other->with;
        off.streaming = other->without;
    }
    if (status == GRAPHI_OK)
        status = network_open(bench, name, size, &off, &networks[0]);
    bool before = bench->options.merged;
    bench->options.merged = other->cells || before;
    if (status == GRAPHI_OK)
        status = network_open(bench, name, size, &on, &networks[1]);
    bench->options.merged = before;
    if (status == GRAPHI_OK)
        setting = setting_of_both(networks);
    for (int i = 0; i < 2 && status == GRAPHI_OK; i++) {
        snprintf(id, sizeof id, "%s%s", i ? "" : "without ", other->id);
        status = contender_open(bench, &networks[i], id, &setting, &list[i]);
    }
    if (status == GRAPHI_OK)
        status = bench_alternate(bench, other->id, list, 2, bench->options.seconds > 0 ? bench->options.seconds : 4,
                                 200, &rounds);
    for (int i = 0; i < 2 && status == GRAPHI_OK; i++)
        bench_row(bench, &networks[i], &list[i], &list[0], rounds);
    for (int i = 0; i < 2; i++) {
        contender_close(&list[i]);
        network_close(&networks[i]);
    }
    return status;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
    static const struct otherwise others[] = {
        {"streaming stores", .streaming = true, .with = GRAPHI_STREAM_BY_SIZE, .without = GRAPHI_STREAM_NEVER},
        {"streaming stores of small results", .streaming = true, .with = GRAPHI_STREAM_ALWAYS,
         .without = GRAPHI_STREAM_BY_SIZE},
        {"products that share an input merged", .merge = true},
        {"cells with merged gates", .cells = true}};
    graphi_status status = network_open(bench, name, size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    status = settings_part(bench, &network);
    network_close(&network);
    for (size_t i = 0; i < sizeof others / sizeof *others && status == GRAPHI_OK; i++)
        if (!others[i].cells || strstr(name, "lstm"))
            status = two_plans(bench, name, size, &others[i]);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm", "phased-lstm", "pathnet", "googlenet", NULL};
    graphi_status status = bench_only(bench, "options", bench->options.machine ? STUDY_NETWORKS : MEASURED);
    if (status)
        return status;
    if (!bench->options.machine)
        return bench_networks(bench, "small,medium", body);
    result_note(&bench->result,
                "simulated: data in another core's caches costs nothing on a described machine, so preferred executors "
                "change nothing; nor are stores past the caches modelled");
    study_papers_graph(bench);
    return study_each(bench, networks, simulated);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "options", run);
}
