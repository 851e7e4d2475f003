/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned against OS-placed executors (graphi.txt Fig. 3), the same plan otherwise. */
#include "bench.h"

static graphi_status at_setting(struct bench *bench, const struct network *network, int executors, int width)
{
    struct entry entry[2];
    for (int unpinned = 0; unpinned < 2; unpinned++) {
        entry[unpinned].setting = (graphi_setting){.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                                   .driver = GRAPHI_DRIVER_COMBINING,
                                                   .executors = executors,
                                                   .width = width,
                                                   .pin = unpinned ? GRAPHI_OFF : GRAPHI_DEFAULT};
        snprintf(entry[unpinned].id, sizeof entry->id, "%dx%d %s", executors, width,
                 unpinned ? "placed by the system" : "pinned");
    }
    return bench_settings(bench, network, entry, 2, 1, 5);
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
