/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Table II: the best number of threads for three operations on three input sizes, its time and
 * what it gains over 68 threads; simulated, the paper's nine cells beside. */
#include "convolutions.h"

static const struct {
    int threads;
    double seconds, percent; /* of 1000 runs; over the best with 68 threads */
} paper[CONV_KINDS][CONV_INPUTS] = {{{26, 7.2, 17.3}, {42, 11.1, 10.2}, {68, 20.3, 0}},
                                    {{36, 5.8, 9.8}, {56, 8.7, 2.3}, {68, 19.6, 0}},
                                    {{45, 4.7, 11.1}, {63, 7.4, 3.5}, {66, 14.8, 2.0}}};

static void add_rows(struct study *s, int kind, int input, int class)
{
    int best = 1, cores = s->about.cores;
    double least = 0, all = graphi_plan_class_ns(s->plan, class, s->machine, cores, false, NULL) / 1e6;
    for (int width = 1; width <= cores; width++) {
        double ms = graphi_plan_class_ns(s->plan, class, s->machine, width, false, NULL) / 1e6;
        if (least <= 0 || ms < least)
            least = ms, best = width;
    }
    char id[128], base[128], all_threads[128];
    const char *name = convolution_names[kind], *label = convolutions[input].label;
    snprintf(base, sizeof base, "%s %s: %d threads", name, label, cores);
    snprintf(id, sizeof id, "%s %s: best", name, label);
    study_operation(s->bench, base, cores, all, NULL, 0);
    study_operation(s->bench, id, best, least, base, all);
    snprintf(all_threads, sizeof all_threads, "%s %s: 68 threads", name, label);
    study_paper(s->bench, "concurrency-control.txt Table II", id, all_threads,
                1 / (1 + paper[kind][input].percent / 100), paper[kind][input].seconds);
    result_note(&s->bench->result,
                "%s %s (simulated): best %d threads, with %d it takes %.1f %% longer; Table II: %d threads, %.1f %%",
                name, label, best, cores, 100 * (all / least - 1), paper[kind][input].threads,
                paper[kind][input].percent);
}

static graphi_status one(struct bench *bench, int kind, int input)
{
    struct study s;
    graphi_graph *graph;
    graphi_status status = convolution_graph(&convolutions[input], 1u << kind, &graph);
    if (status)
        return status;
    status = study_open_graph(bench, convolution_names[kind], graph, &s);
    int class = status ? -1 : convolution_class(&s, kind);
    if (class >= 0)
        add_rows(&s, kind, input, class);
    study_close(&s);
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    graphi_status status = GRAPHI_OK;
    for (int kind = 0; kind < CONV_KINDS; kind++)
        for (int input = 0; input < CONV_INPUTS && !status; input++)
            status = one(bench, kind, input);
    return status;
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "table-2", run);
}
