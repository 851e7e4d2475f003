/* SPDX-License-Identifier: Apache-2.0 */
/* Graphi's scheduler against the naive shared queue (graphi.txt Table 2), kernels and pinned executors being the same:
 * what the order and the private buffers are worth. FIFO and random order beside them show what part is the order
 * alone. */
#include "bench.h"

static graphi_status at_setting(struct bench *bench, const struct network *network, int executors, int width)
{
    static const graphi_policy policies[] = {GRAPHI_POLICY_NAIVE, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_FIFO,
                                             GRAPHI_POLICY_RANDOM};
    struct entry entry[4];
    for (int p = 0; p < 4; p++) {
        entry[p].setting = (graphi_setting){
            .policy = policies[p], .driver = GRAPHI_DRIVER_COMBINING, .executors = executors, .width = width};
        snprintf(entry[p].id, sizeof entry->id, "%dx%d %s", executors, width, graphi_policy_name(policies[p]));
    }
    return bench_settings(bench, network, entry, 4, 0, 8);
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
    graphi_status status = network_open(bench, name, size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    int cores = bench->about.cores;
    for (int executors = 2; executors <= cores && status == GRAPHI_OK; executors *= 2)
        status = at_setting(bench, &network, executors, cores / executors);
    if (cores < 2)
        result_note(&bench->result, "one core: nothing to schedule");
    network_close(&network);
    return status;
}

static graphi_status run(struct bench *bench)
{
    if (bench->about.cores < 32)
        result_note(
            &bench->result,
            "%d cores: the settings of the paper's table (2x32 ... 32x2) are simulated by `graphi bench table-graphi`",
            bench->about.cores);
    return bench_networks(bench, "medium", body);
}

int main(int argc, char **argv) { return bench_main(argc, argv, "scheduler", run); }
