/* SPDX-License-Identifier: Apache-2.0 */
/* graphi.txt Table 2: critical-path first over the naive shared queue, four networks in their medium size, five
 * settings of 64 cores, on the simulated Xeon Phi; the paper's twenty ratios beside ours. Goal: mean difference of at
 * most 4 points. */
#include "study.h"

#include <math.h>
#include <string.h>

enum { NETWORKS = 4, SETTINGS = 5 };
static const char *const networks[NETWORKS + 1] = {"lstm", "phased-lstm", "pathnet", "googlenet", NULL};
static const int executors[SETTINGS] = {2, 4, 8, 16, 32};
static const double paper[SETTINGS][NETWORKS] = {
    {0.86, 0.81, 0.88, 0.94}, {0.88, 0.85, 0.92, 0.96}, {0.82, 0.91, 0.89, 0.93},
    {0.91, 0.86, 0.91, 0.91}, {0.87, 0.85, 0.92, 0.92},
};
static double difference;
static int cells;

static graphi_status cell(struct study *s, int n, int i)
{
    int k = executors[i], width = 64 / k;
    char naive[32], ours[32], id[STUDY_ID], against[STUDY_ID];
    graphi_simulation base, now;
    graphi_setting queue = study_setting(GRAPHI_POLICY_NAIVE, k, width);
    graphi_setting critical = study_setting(GRAPHI_POLICY_CRITICAL_PATH, k, width);
    snprintf(naive, sizeof naive, "%dx%d naive", k, width);
    snprintf(ours, sizeof ours, "%dx%d critical-path", k, width);
    bool fits = study_fits(s, naive, k, width);
    if (!study_fits(s, ours, k, width) || !fits)
        return GRAPHI_OK;
    graphi_status status = study_row(s, naive, &queue, NULL, 0, &base);
    if (!status)
        status = study_row(s, ours, &critical, naive, base.makespan_ms, &now);
    if (status)
        return status;
    double ratio = now.makespan_ms / base.makespan_ms;
    if (n >= 0 && strcmp(s->size, "medium") == 0) {
        study_id(s, id, "%s", ours);
        study_id(s, against, "%s", naive);
        study_paper(s->bench, "graphi.txt Table 2", id, against, paper[i][n], 0);
        difference += fabs(ratio - paper[i][n]);
        cells++;
    }
    return GRAPHI_OK;
}

static graphi_status body(struct study *s)
{
    int n = -1;
    for (int i = 0; i < NETWORKS; i++)
        n = strcmp(s->name, networks[i]) == 0 ? i : n;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < SETTINGS && !status; i++)
        status = cell(s, n, i);
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    graphi_status status = study_each(bench, networks, body);
    if (!status && cells)
        result_goal(&bench->result, "mean difference to Table 2, points", 100 * difference / cells, 4, false);
    return status;
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "table-graphi", run);
}
