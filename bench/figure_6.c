/* SPDX-License-Identifier: Apache-2.0 */
/* graphi.txt Figure 6: executors x threads against the sequential engine on 64 of 68 cores, two reserved for the client
 * and the light executor: k = 2 ... 32 executors of 64/k threads, 6x10 for PathNet, 3x10 for GoogLeNet; simulated. The
 * figure's bars are not printed in the paper; what its text says of them stands in the notes. */
#include "study.h"

#include <string.h>

enum { FIGURES = 4 };
static const char *const networks[FIGURES + 1] = {"lstm", "phased-lstm", "pathnet", "googlenet", NULL};

/* In the order of the networks. */
static const struct {
    int executors, width; /* beside the powers of two; 0: none */
    const char *text;
} figures[FIGURES] = {
    {0, 0, "2.3 to 3.1 times the sequential engine, best at 8 to 12 executors"},
    {0, 0, "2.3 to 3.1 times the sequential engine, best at 8 to 12 executors"},
    {6, 10, "1.2 to 2.1 times the sequential engine, best at 6 executors"},
    {3, 10, "about 1.2 times the sequential engine, best at 2 to 3 executors"},
};

struct best {
    int executors, width;
    double ms;
};

static graphi_status one(struct study *s, int executors, int width, double sequential, struct best *best)
{
    char label[32];
    graphi_simulation now;
    graphi_setting setting = study_setting(GRAPHI_POLICY_CRITICAL_PATH, executors, width);
    setting.driver = GRAPHI_DRIVER_DEDICATED;
    snprintf(label, sizeof label, "%dx%d", executors, width);
    if (!study_fits(s, label, executors, width))
        return GRAPHI_OK;
    graphi_status status = study_row(s, label, &setting, sequential > 0 ? "S64" : NULL, sequential, &now);
    if (!status && (best->ms <= 0 || now.makespan_ms < best->ms))
        *best = (struct best){executors, width, now.makespan_ms};
    return status;
}

static graphi_status body(struct study *s)
{
    struct best best = {0};
    graphi_simulation sequential = {0};
    graphi_status status = GRAPHI_OK;
    if (study_fits(s, "S64", 1, 64))
        status =
            study_row(s, "S64", &(graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 64},
                      NULL, 0, &sequential);
    for (int k = 2; k <= 32 && !status; k *= 2)
        status = one(s, k, 64 / k, sequential.makespan_ms, &best);
    for (int i = 0; i < FIGURES && !status; i++)
        if (strcmp(networks[i], s->name) == 0) {
            if (figures[i].executors)
                status = one(s, figures[i].executors, figures[i].width, sequential.makespan_ms, &best);
            if (!status && best.ms > 0 && sequential.makespan_ms > 0)
                result_note(&s->bench->result,
                            "%s %s (simulated): best %dx%d, %.2f times the sequential engine; graphi.txt: %s", s->name,
                            s->size, best.executors, best.width, sequential.makespan_ms / best.ms, figures[i].text);
        }
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    static const char *const sizes[] = {"small", "medium", "large"};
    graphi_status status = GRAPHI_OK;
    if (bench->options.size)
        return study_each(bench, networks, body);
    for (int i = 0; i < (bench->options.quick ? 1 : 3) && !status; i++) {
        bench->options.size = sizes[i];
        status = study_each(bench, networks, body);
    }
    return status;
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "figure-6", run);
}
