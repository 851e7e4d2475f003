/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned against OS-placed executors (graphi.txt Fig. 3), the same plan otherwise. */
#include "bench.h"

static graphi_status at_setting(struct bench *bench, const struct network *network, int executors, int width)
{
    struct contender list[2] = {0};
    int rounds = 0;
    graphi_status status = GRAPHI_OK;
    for (int unpinned = 0; unpinned < 2 && status == GRAPHI_OK; unpinned++) {
        char id[64];
        graphi_setting setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_COMBINING, .executors = executors,
                                  .width = width, .unpinned = unpinned};
        snprintf(id, sizeof id, "%dx%d %s", executors, width, unpinned ? "placed by the system" : "pinned");
        status = contender_open(bench, network, id, &setting, &list[unpinned]);
    }
    if (status == GRAPHI_OK)
        status = bench_alternate(bench, network->name, list, 2, bench->options.seconds > 0 ? bench->options.seconds : 5, 300, &rounds);
    for (int i = 0; i < 2; i++) {
        if (status == GRAPHI_OK)
            bench_row(bench, network, &list[i], &list[1], rounds);
        contender_close(&list[i]);
    }
    return status;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
    graphi_status status = network_open(bench, name, size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    for (int width = 1; width <= bench->about.cores && status == GRAPHI_OK; width *= 2)
        if (bench->about.cores / width >= 1)
            status = at_setting(bench, &network, bench->about.cores / width, width);
    network_close(&network);
    return status;
}

static graphi_status run(struct bench *bench) { return bench_networks(bench, "small,medium", body); }

int main(int argc, char **argv) { return bench_main(argc, argv, "pinning", run); }
