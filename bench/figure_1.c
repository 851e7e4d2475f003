/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Figure 1: time of three operations over the number of threads, Inception-v3's input
 * (32,8,8,384); simulated. The paper's best: 26, 36 and 45 threads, up to 17.3 % faster than 68. */
#include "convolutions.h"

static graphi_status one(struct bench *bench, int kind)
{
    static const int paper[CONV_KINDS] = {26, 36, 45};
    struct study s;
    graphi_graph *graph;
    graphi_status status = convolution_graph(&convolutions[0], 1u << kind, &graph);
    if (status)
        return status;
    status = study_open_graph(bench, convolution_names[kind], graph, &s);
    int class = status ? -1 : convolution_class(&s, kind), best = 0;
    double least = 0;
    for (int width = 1; class >= 0 && width <= s.about.cores; width += width == 1 ? 1 : 2) {
        char id[96];
        double ms = graphi_plan_class_ns(s.plan, class, s.machine, width, false, NULL) / 1e6;
        snprintf(id, sizeof id, "%s, %d threads", convolution_names[kind], width);
        json_t *row = result_row(&bench->result, id, "graphi");
        json_object_set_new(row, "simulated", json_true());
        result_integer(row, "executors", 1);
        result_integer(row, "width", width);
        if (least <= 0 || ms < least)
            least = ms, best = width;
        result_times(row, &ms, 1);
    }
    if (class >= 0)
        result_note(&bench->result, "%s: best %d threads; Figure 1: %d", convolution_names[kind], best, paper[kind]);
    study_close(&s);
    return status;
}

static graphi_status run(struct bench *bench)
{
    graphi_status status = GRAPHI_OK;
    for (int kind = 0; kind < CONV_KINDS && !status; kind++)
        status = one(bench, kind);
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "figure-1", run);
}
