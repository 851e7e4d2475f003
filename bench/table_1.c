/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Table I: uniform inter-op x intra-op settings on ResNet-50 and DCGAN against 1 x 68;
 * simulated. The paper's settings with more threads than cores (intra 136, or 2 and 4 operations of 68) do not exist
 * here: executors times width never exceed the cores, which is what its slow rows are about; their rows say so. */
#include "study.h"

#include <string.h>

static const struct {
    int inter, intra;
    double ms[2]; /* ResNet-50, DCGAN */
} paper[] = {{1, 34, {1414, 484}}, {1, 68, {1382, 524}}, {1, 136, {2257, 1045}},
             {2, 34, {1088, 411}}, {2, 68, {1213, 501}}, {2, 136, {4017, 1238}},
             {4, 34, {1169, 434}}, {4, 68, {3048, 565}}, {4, 136, {4782, 1469}}};
static const char *const networks[] = {"resnet50", "dcgan", NULL};
enum { SETTINGS = sizeof paper / sizeof *paper };

static graphi_status setting(struct study *s, int i, int network, double base)
{
    char label[48], id[STUDY_ID], against[STUDY_ID];
    graphi_simulation now;
    snprintf(label, sizeof label, "inter %d intra %d", paper[i].inter, paper[i].intra);
    study_id(s, id, "%s", label);
    study_id(s, against, "inter 1 intra 68");
    if (study_fits(s, label, paper[i].inter, paper[i].intra)) {
        graphi_setting uniform = {.policy = paper[i].inter == 1 ? GRAPHI_POLICY_SEQUENTIAL : GRAPHI_POLICY_FIFO,
                                  .executors = paper[i].inter,
                                  .width = paper[i].intra,
                                  .light = -1};
        graphi_status status =
            study_row(s, label, &uniform, i == 1 || base <= 0 ? NULL : "inter 1 intra 68", base, &now);
        if (status)
            return status;
    }
    if (network >= 0)
        study_paper(s->bench, "concurrency-control.txt Table I", id, against,
                    i == 1 ? 0 : paper[i].ms[network] / paper[1].ms[network], paper[i].ms[network]);
    return GRAPHI_OK;
}

static graphi_status body(struct study *s)
{
    graphi_simulation base = {0};
    graphi_status status = GRAPHI_OK;
    int column = strcmp(s->name, "resnet50") == 0 ? 0 : strcmp(s->name, "dcgan") == 0 ? 1 : -1;
    if (s->about.cores >= 68)
        status = study_simulate(s, &(graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 68},
                                &base);
    for (int i = 0; i < SETTINGS && !status; i++)
        status = setting(s, i, column, base.makespan_ms);
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_description = STUDY_PAPERS_MACHINE;
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "table-1", run);
}
