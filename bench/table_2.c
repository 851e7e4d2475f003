/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Table II: the best number of threads for three operations on three input sizes, and what it
 * gains over 68 threads; simulated, the paper's numbers beside. */
#include "convolutions.h"

static const struct {
    int threads;
    double variance; /* per cent over 68 threads */
} paper[CONV_KINDS][CONV_INPUTS] = {
    {{26, 17.3}, {42, 10.2}, {68, 0}}, {{36, 9.8}, {56, 2.3}, {68, 0}}, {{45, 11.1}, {63, 3.5}, {66, 2.0}}};

static graphi_status one(struct bench *bench, int kind, int input)
{
    struct study s;
    graphi_graph *graph;
    const struct convolution *c = &convolutions[input];
    graphi_status status = convolution_graph(c, 1u << kind, &graph);
    if (status)
        return status;
    status = study_open_graph(bench, convolution_names[kind], graph, &s);
    int class = status ? -1 : convolution_class(&s, kind), best = 1, cores = s.about.cores;
    if (class >= 0) {
        char id[128];
        double least = 0, all = graphi_plan_class_ns(s.plan, class, s.machine, cores, false, NULL);
        for (int width = 1; width <= cores; width++) {
            double ns = graphi_plan_class_ns(s.plan, class, s.machine, width, false, NULL);
            if (least <= 0 || ns < least)
                least = ns, best = width;
        }
        snprintf(id, sizeof id, "%s %s", convolution_names[kind], c->label);
        json_t *row = result_row(&bench->result, id, "graphi");
        double ms = least / 1e6;
        json_object_set_new(row, "simulated", json_true());
        result_integer(row, "executors", 1);
        result_integer(row, "width", best);
        result_times(row, &ms, 1);
        result_note(&bench->result, "%s: best %d threads, %.1f %% over %d threads; Table II: %d threads, %.1f %%", id,
                    best, 100 * (all / least - 1), cores, paper[kind][input].threads, paper[kind][input].variance);
    }
    study_close(&s);
    return status;
}

static graphi_status run(struct bench *bench)
{
    graphi_status status = GRAPHI_OK;
    for (int kind = 0; kind < CONV_KINDS; kind++)
        for (int input = 0; input < CONV_INPUTS && !status; input++)
            status = one(bench, kind, input);
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "table-2", run);
}
