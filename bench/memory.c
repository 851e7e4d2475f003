/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and compile time of the training plans: the arena against the sequential live maximum and against the sum of
 * intermediates (goals: at most 1.15 times and half), allocations in a step (none), milliseconds to compile (GoogLeNet:
 * 500). */
#include "bench.h"

#include <string.h>

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
    struct contender one = {0};
    graphi_plan_info info;
    graphi_run_info last;
    char id[160];
    int rounds = 0;
    graphi_status status = network_open(bench, name, size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_get_info(network.plan, &info);
    status = contender_open(bench, &network, "plan", REQUEST(&info.setting), &one);
    if (status == GRAPHI_OK)
        status = bench_alternate(bench, name, &one, 1, 0, 5, &rounds);
    if (status == GRAPHI_OK) {
        graphi_run_get_info(one.run, &last);
        json_t *row = bench_row(bench, &network, &one, NULL, rounds);
        result_set(row, "memory",
                            json_pack("{s:I,s:I,s:I,s:f,s:I}", "arena_bytes", (json_int_t)info.arena_bytes,
                                      "live_maximum_bytes", (json_int_t)info.live_maximum_bytes,
                                      "sum_intermediate_bytes", (json_int_t)info.sum_intermediate_bytes, "compile_ms",
                                      info.compile_ms, "allocations_in_step", (json_int_t)last.allocations));
        result_note(&bench->result,
                    "%s %s: arena %.1f MB = %.3f x live maximum = %.3f x sum of intermediates; compiled in %.1f ms; "
                    "%llu allocations in a step",
                    name, size, (double)info.arena_bytes * 1e-6,
                    (double)info.arena_bytes / (double)info.live_maximum_bytes,
                    (double)info.arena_bytes / (double)info.sum_intermediate_bytes, info.compile_ms,
                    (unsigned long long)last.allocations);
        snprintf(id, sizeof id, "%s %s: arena over live maximum", name, size);
        result_goal(&bench->result, id, (double)info.arena_bytes / (double)info.live_maximum_bytes, 1.15, false);
        snprintf(id, sizeof id, "%s %s: allocations in a step", name, size);
        result_goal(&bench->result, id, (double)last.allocations, 0, false);
        if (strcmp(name, "googlenet") == 0) {
            result_goal(&bench->result, "googlenet: arena over sum of intermediates",
                        (double)info.arena_bytes / (double)info.sum_intermediate_bytes, 0.5, false);
            result_goal(&bench->result, "googlenet: compile time in ms", info.compile_ms, 500, false);
        }
    }
    contender_close(&one);
    network_close(&network);
    return status;
}

static graphi_status run(struct bench *bench) { return bench_networks(bench, "small,medium,large", body); }

int main(int argc, char **argv) { return bench_main(argc, argv, "memory", run); }
