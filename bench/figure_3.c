/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Figure 3: what each strategy adds: 1 and 2 over one executor of 68 threads, 3 over 1 and 2, 4
 * over 3, all over 68 threads and over the best uniform setting; simulated, the paper's improvements beside. */
#include "study.h"

#include <math.h>
#include <string.h>

enum { STEPS = 5 };
static const char *const steps[STEPS] = {"s12", "s123", "s1234", "all strategies", "all strategies over manual"};
static const char *const over[STEPS] = {"1x68", /* here all cores */ "s12", "s123", "1x68", "manual optimization"};

/* Improvements, in the order of the steps; NAN: the text has none. Of strategy 4 "LSTM has no performance improvement".
 * The manual settings, executors and threads, are the paper's (IV-B). */
static const struct {
    const char *network;
    double better[STEPS];
    int executors, width;
} paper[] = {{"resnet50", {0.02, 0.35, 0.08, 0.49, 0.08}, 4, 16},
             {"dcgan", {0.12, 0.15, 0.04, NAN, 0.07}, 2, 34},
             {"inception-v3", {0.02, 0.07, 0.07, 0.17, -0.02}, 2, 68},
             {"ptb", {0.14, 0.25, 0, NAN, 0.02}, 2, 2}};

/* over[step] as this machine has it. */
static const char *over_here(const struct study *s, int step, char *label, size_t size)
{
    snprintf(label, size, "1x%d", s->about.cores);
    return strcmp(over[step], over[0]) == 0 ? label : over[step];
}

/* The row of one step, from the row that it is compared with; the paper's beside it. */
static void add_step(struct study *s, int p, int step, double ms, double over_ms)
{
    char id[STUDY_ID], base[STUDY_ID], label[24];
    study_id(s, id, "%s", steps[step]);
    study_id(s, base, "%s", over_here(s, step, label, sizeof label));
    if (step > 2) { /* the strategies' rows are there; these say what all of them gain */
        json_t *row = result_row(&s->bench->result, id, "graphi");
        result_set(row, "simulated", json_true());
        result_ratio(row, base, &ms, &over_ms, 1);
    }
    study_id(s, base, "%s", over[step]);
    if (p >= 0 && !isnan(paper[p].better[step]))
        study_paper(s->bench, "concurrency-control.txt Figure 3", id, base, 1 / (1 + paper[p].better[step]), 0);
}

static void note_paper(struct study *s, int p)
{
    char all[32] = "";
    if (!isnan(paper[p].better[3]))
        snprintf(all, sizeof all, "all %+.0f %%, ", 100 * paper[p].better[3]);
    result_note(&s->bench->result,
                "%s, Figure 3: strategies 1 and 2 %+.0f %%, 3 %+.0f %%, 4 %+.0f %%, %s%+.0f %% over manual "
                "optimization (%dx%d)",
                s->name, 100 * paper[p].better[0], 100 * paper[p].better[1], 100 * paper[p].better[2], all,
                100 * paper[p].better[4], paper[p].executors, paper[p].width);
}

static graphi_status policies(struct study *s, int p)
{
    static const graphi_policy list[] = {GRAPHI_POLICY_S12, GRAPHI_POLICY_S123, GRAPHI_POLICY_S1234};
    graphi_simulation base, manual, now[3];
    graphi_setting uniform = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = s->about.cores}, best;
    char all[24], label[24];
    graphi_status status = study_row(s, over_here(s, 0, all, sizeof all), &uniform, NULL, 0, &base);
    double before = base.makespan_ms;
    for (int i = 0; i < 3 && !status; i++) {
        graphi_setting setting = {.policy = list[i], .executors = s->about.cores, .width = 1, .light = GRAPHI_OFF};
        status = study_row(s, steps[i], &setting, over_here(s, i, label, sizeof label), before, &now[i]);
        if (status)
            return status;
        add_step(s, p, i, now[i].makespan_ms, before);
        before = now[i].makespan_ms;
    }
    if (!status)
        status = study_best(s, GRAPHI_POLICY_FIFO, &best, &manual);
    if (!status)
        status = study_row(s, over[4], &best, all, base.makespan_ms, &manual);
    if (status)
        return status;
    add_step(s, p, 3, before, base.makespan_ms);
    add_step(s, p, 4, before, manual.makespan_ms);
    result_note(&s->bench->result,
                "%s (simulated): strategies 1 and 2 %+.0f %%, 3 %+.0f %%, 4 %+.0f %%, all %+.0f %% over %s, %+.0f %% "
                "over the "
                "best uniform setting (%dx%d)",
                s->name, 100 * (base.makespan_ms / now[0].makespan_ms - 1),
                100 * (now[0].makespan_ms / now[1].makespan_ms - 1),
                100 * (now[1].makespan_ms / now[2].makespan_ms - 1), 100 * (base.makespan_ms / before - 1), all,
                100 * (manual.makespan_ms / before - 1), best.executors, best.width);
    if (p >= 0)
        note_paper(s, p);
    return GRAPHI_OK;
}

static graphi_status body(struct study *s)
{
    int p = -1;
    for (int i = 0; i < 4; i++)
        p = strcmp(paper[i].network, s->name) == 0 ? i : p;
    return policies(s, p);
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    static const char *const networks[] = {"resnet50", "dcgan", "inception-v3", "ptb", NULL};
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "figure-3", run);
}
