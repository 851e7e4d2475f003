/* SPDX-License-Identifier: Apache-2.0 */
/* Executors x threads (graphi.txt Fig. 6): every symmetric setting of the cores at hand, both drivers, against the sequential
 * engine; the profiler's choice beside them (goal: within 3 % of the best). */
#include "bench.h"

#include <string.h>

enum { MOST = 64 };

static graphi_status add(struct bench *bench, const struct network *network, struct contender *list, int *count,
                         graphi_policy policy, graphi_driver driver, int executors, int width, const char *label)
{
    static const char *const drivers[] = {"", " dedicated", " combining"};
    char id[96];
    graphi_setting setting = {.policy = policy, .driver = driver, .executors = executors, .width = width};
    snprintf(id, sizeof id, "%s%dx%d%s", label, executors, width, drivers[driver]);
    if (*count == MOST)
        return GRAPHI_OK;
    return contender_open(bench, network, id, &setting, &list[(*count)++]);
}

static graphi_status collect(struct bench *bench, const struct network *network, struct contender *list, int *count)
{
    int cores = bench->about.cores;
    graphi_status status = add(bench, network, list, count, GRAPHI_POLICY_SEQUENTIAL, GRAPHI_DRIVER_COMBINING, 1, cores, "S");
    for (int executors = 1; executors <= cores && status == GRAPHI_OK; executors++)
        for (int width = 1; width * executors <= cores && status == GRAPHI_OK; width++) {
            if (executors * width * 2 <= cores) /* leaves half of the machine idle: no contender */
                continue;
            status = add(bench, network, list, count, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING, executors, width, "");
            if (status == GRAPHI_OK)
                status = add(bench, network, list, count, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_DEDICATED, executors, width, "");
        }
    return status;
}

static graphi_status add_choice(struct bench *bench, struct network *network, struct contender *list, int *count)
{
    graphi_plan_info info;
    graphi_status status = network_tune(bench, network, bench->options.tune_given ? bench->options.tune : 5);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_get_info(network->plan, &info);
    return contender_open(bench, network, "chosen", &info.setting, &list[(*count)++]);
}

/* The swept setting that the choice equals; 0: none. It is measured once then: two rows of one setting differ by several
 * per cent on a shared machine, which says nothing about the choice. */
static int twin_of(const struct contender *list, int count)
{
    graphi_plan_info chosen, other;
    graphi_plan_get_info(list[0].plan, &chosen);
    for (int i = 1; i < count; i++) {
        const graphi_setting *a = &chosen.setting, *b = &other.setting;
        graphi_plan_get_info(list[i].plan, &other);
        if (a->policy == b->policy && a->driver == b->driver && a->executors == b->executors && a->width == b->width &&
            a->backward_executors == b->backward_executors && a->depth == b->depth && a->light == b->light)
            return i;
    }
    return 0;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network network;
    struct contender list[MOST + 1];
    int count = 0, rounds = 0;
    graphi_status status = network_open(bench, name, size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    status = add_choice(bench, &network, list, &count);
    if (status == GRAPHI_OK)
        status = collect(bench, &network, list, &count);
    int twin = status == GRAPHI_OK ? twin_of(list, count) : 0, from = twin > 0;
    char title[96];
    snprintf(title, sizeof title, "sweep %s %s", name, size);
    if (status == GRAPHI_OK)
        status = bench_alternate(bench, title, list + from, count - from,
                                 bench->options.seconds > 0 ? bench->options.seconds : 8, 200, &rounds);
    if (status == GRAPHI_OK && twin)
        memcpy(list[0].ms, list[twin].ms, (size_t)rounds * sizeof *list[0].ms);
    double best = 0;
    for (int i = 0; i < count && status == GRAPHI_OK; i++) {
        bench_row(bench, &network, &list[i], &list[1], rounds); /* against sequential, as in the figure */
        double copy[BENCH_MAX_ROUNDS];
        memcpy(copy, list[i].ms, (size_t)rounds * sizeof *copy);
        double median = result_median(copy, rounds);
        best = best == 0 || median < best ? median : best;
    }
    if (status == GRAPHI_OK) {
        char goal[128];
        double chosen = result_median(list[0].ms, rounds);
        snprintf(goal, sizeof goal, "%s %s: chosen setting over best of the sweep", name, size);
        result_goal(&bench->result, goal, chosen / best, 1.03, false);
    }
    for (int i = 0; i < count; i++)
        contender_close(&list[i]);
    network_close(&network);
    return status;
}

static graphi_status run(struct bench *bench) { return bench_networks(bench, "small,medium", body); }

int main(int argc, char **argv) { return bench_main(argc, argv, "sweep", run); }
