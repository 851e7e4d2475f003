/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Figure 1: time of three operations over the number of threads, Inception-v3's input
 * (32,8,8,384); simulated. Of the figure's curves the paper's text has the lowest points (26, 36 and 45 threads, 17.3,
 * 9.8 and 11.1 % below the time of 68) and Table II their times. With --out also the curves: figure-1-curves.svg. */
#include "convolutions.h"
#include "picture.h"

static const struct {
    int threads;
    double seconds, percent; /* of 1000 runs; over the best with 68 threads */
} paper[CONV_KINDS] = {{26, 7.2, 17.3}, {36, 5.8, 9.8}, {45, 4.7, 11.1}};
enum { MOST_WIDTHS = 1024 };

static void add_rows(struct study *s, int kind, int class, struct picture *picture)
{
    double widths[MOST_WIDTHS], speed[MOST_WIDTHS];
    int cores = s->about.cores, count = 0, best = 0;
    const char *name = convolution_names[kind];
    char id[96], base[96], text[96];
    double all = graphi_plan_class_ns(s->plan, class, s->machine, cores, false, NULL) / 1e6, least = all;
    snprintf(base, sizeof base, "%s: %d threads", name, cores);
    for (int width = 1, next; width <= cores && count < MOST_WIDTHS; width = next) {
        next = width + (width == 1 ? 1 : 2);
        next = next > cores && width < cores ? cores : next; /* all cores are what the others are compared with */
        double ms = graphi_plan_class_ns(s->plan, class, s->machine, width, false, NULL) / 1e6;
        snprintf(id, sizeof id, "%s: %d threads", name, width);
        study_operation(s->bench, id, width, ms, width < cores ? base : NULL, all);
        widths[count] = width;
        speed[count++] = all / ms;
        if (!best || ms < least)
            least = ms, best = width;
    }
    snprintf(id, sizeof id, "%s: %d threads", name, paper[kind].threads);
    snprintf(base, sizeof base, "%s: 68 threads", name);
    study_paper(s->bench, "concurrency-control.txt Figure 1", id, base, 1 / (1 + paper[kind].percent / 100),
                paper[kind].seconds);
    result_note(&s->bench->result,
                "%s (simulated): best %d threads, with %d it takes %.1f %% longer; Figure 1: %d, %.1f %%", name, best,
                cores, 100 * (all / least - 1), paper[kind].threads, paper[kind].percent);
    picture_line(picture, widths, speed, count, kind, 1.5);
    picture_point(picture, paper[kind].threads, 1 + paper[kind].percent / 100, kind);
    snprintf(text, sizeof text, "%s (point: best of the paper)", name);
    picture_name(picture, text, kind);
}

static graphi_status one(struct bench *bench, int kind, struct picture *picture)
{
    struct study s;
    graphi_graph *graph;
    graphi_status status = convolution_graph(&convolutions[0], 1u << kind, &graph);
    if (status)
        return status;
    status = study_open_graph(bench, convolution_names[kind], graph, &s);
    int class = status ? -1 : convolution_class(&s, kind);
    if (class >= 0)
        add_rows(&s, kind, class, picture);
    study_close(&s);
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    struct picture picture;
    graphi_status status =
        picture_open(&picture, bench, "figure-1-curves", "Operations of Inception-v3, simulated Xeon Phi", "threads",
                     "speed with 68 threads = 1", 68, 1.5);
    for (int kind = 0; kind < CONV_KINDS && !status; kind++)
        status = one(bench, kind, &picture);
    return picture_close(&picture, status);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "figure-1", run);
}
