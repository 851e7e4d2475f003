/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Table I: uniform inter-op x intra-op settings on ResNet-50 and DCGAN against 1 x 68;
 * simulated. The paper's settings with more threads than cores (intra 136, or 2 and 4 operations of 68) do not exist
 * here: executors times width never exceed the cores, which is what its slow rows are about; their rows say so. A
 * training step of DCGAN is one update of the discriminator and two of the generator: unless --role is given, rows of
 * the generator and of the whole step follow. */
#include "study.h"

#include <math.h>
#include <string.h>

static const struct {
    int inter, intra;
    double ms[2]; /* ResNet-50, DCGAN */
} paper[] = {{1, 34, {1414, 484}}, {1, 68, {1382, 524}}, {1, 136, {2257, 1045}},
             {2, 34, {1088, 411}}, {2, 68, {1213, 501}}, {2, 136, {4017, 1238}},
             {4, 34, {1169, 434}}, {4, 68, {3048, 565}}, {4, 136, {4782, 1469}}};
static const char *const networks[] = {"resnet50", "dcgan", NULL};
enum { SETTINGS = sizeof paper / sizeof *paper, BASE = 1 };

static const char *const base_label = "inter 1 intra 68";

/* *ms: NAN where the machine has not so many cores. */
static graphi_status setting(struct study *s, int i, int column, double base, double *ms)
{
    char label[48], id[STUDY_ID], against[STUDY_ID];
    graphi_simulation now;
    *ms = NAN;
    snprintf(label, sizeof label, "inter %d intra %d", paper[i].inter, paper[i].intra);
    study_id(s, id, "%s", label);
    study_id(s, against, "%s", base_label);
    if (study_fits(s, label, paper[i].inter, paper[i].intra)) {
        graphi_setting uniform = {.policy = paper[i].inter == 1 ? GRAPHI_POLICY_SEQUENTIAL : GRAPHI_POLICY_FIFO,
                                  .executors = paper[i].inter,
                                  .width = paper[i].intra,
                                  .light = GRAPHI_OFF};
        graphi_status status = study_row(s, label, &uniform, i == BASE || base <= 0 ? NULL : base_label, base, &now);
        if (status)
            return status;
        *ms = now.makespan_ms;
    }
    if (column >= 0)
        study_paper(s->bench, "concurrency-control.txt Table I", id, against,
                    i == BASE ? 0 : paper[i].ms[column] / paper[BASE].ms[column], paper[i].ms[column]);
    return GRAPHI_OK;
}

static graphi_status settings(struct study *s, int column, double ms[SETTINGS])
{
    graphi_simulation base = {0};
    graphi_status status = GRAPHI_OK;
    if (s->about.cores >= 68)
        status = study_simulate(s, &(graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 68},
                                &base);
    for (int i = 0; i < SETTINGS && !status; i++)
        status = setting(s, i, column, base.makespan_ms, &ms[i]);
    return status;
}

/* One update of the discriminator and two of the generator, in turn. */
static void add_steps(struct study *s, const double discriminator[SETTINGS], const double generator[SETTINGS])
{
    double base = discriminator[BASE] + 2 * generator[BASE];
    for (int i = 0; i < SETTINGS; i++) {
        const double ms = discriminator[i] + 2 * generator[i];
        char id[STUDY_ID], against[STUDY_ID];
        study_id(s, against, "%s", base_label);
        study_id(s, id, "inter %d intra %d", paper[i].inter, paper[i].intra);
        if (isnan(ms))
            continue;
        json_t *row = result_row(&s->bench->result, id, "graphi");
        result_set(row, "simulated", json_true());
        result_integer(row, "executors", paper[i].inter);
        result_integer(row, "width", paper[i].intra);
        result_times(row, &ms, 1);
        if (i != BASE && !isnan(base))
            result_ratio(row, against, &ms, &base, 1);
    }
}

static graphi_status body(struct study *s)
{
    double own[SETTINGS], other[SETTINGS];
    int column = strcmp(s->name, "resnet50") == 0 ? 0 : strcmp(s->name, "dcgan") == 0 ? 1 : -1;
    graphi_status status = settings(s, column, own);
    if (status || column != 1 || s->bench->options.role)
        return status;
    struct study generator;
    s->bench->options.role = "generator";
    status = study_open_network(s->bench, s->name, s->size, &generator);
    s->bench->options.role = NULL;
    generator.name = "dcgan generator";
    if (!status)
        status = settings(&generator, -1, other);
    generator.name = "dcgan step";
    if (!status)
        add_steps(&generator, own, other);
    study_close(&generator);
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "table-1", run);
}
