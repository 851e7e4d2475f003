/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Figure 4: operations side by side, averaged over the events (starts and ends) of one step,
 * with and without strategy 4; simulated. The paper: 1.61, 1.62, 1.52 without and 1.89, 2.04, 1.74 with it (ResNet-50,
 * DCGAN, Inception-v3), over 6000 events in the middle of a step. */
#include "study.h"

#include <string.h>

static const struct {
    const char *network;
    double without, with;
} paper[] = {{"resnet50", 1.61, 1.89}, {"dcgan", 1.62, 2.04}, {"inception-v3", 1.52, 1.74}};

static graphi_status body(struct bench *bench, const char *network, const char *size)
{
    struct study s;
    graphi_simulation without, with;
    graphi_status status = study_open(bench, network, size, &s);
    if (!status && !s.missing) {
        graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = s.about.cores, .width = 1, .light = -1};
        status = study_row(&s, "s123", &setting, NULL, 0, &without);
        setting.policy = GRAPHI_POLICY_S1234;
        if (!status)
            status = study_row(&s, "s1234", &setting, "s123", without.makespan_ms, &with);
        if (!status)
            result_note(&bench->result, "%s: %.2f operations side by side with strategy 3, %.2f with 4", network,
                        without.mean_corunning, with.mean_corunning);
        for (size_t i = 0; i < sizeof paper / sizeof *paper && !status; i++)
            if (strcmp(paper[i].network, network) == 0)
                result_note(&bench->result, "%s, Figure 4: %.2f and %.2f", network, paper[i].without, paper[i].with);
        if (!status && s.about.siblings == 0)
            result_note(&bench->result, "the described machine has one thread a core: strategy 4 has nothing to use");
    }
    study_close(&s);
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_description = "xeon-phi-7250-smt";
    static const char *const networks[] = {"resnet50", "dcgan", "inception-v3", NULL};
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "figure-4", run);
}
