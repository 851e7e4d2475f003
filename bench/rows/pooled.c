/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with bias and relu whose results are pooled: in bands (src/kernels/conv_pooled.c), where that is chosen,
 * against the two operations one after the other, in turns; the shapes of networks, with many images and with one. The
 * constants of conv_pooled.c are chosen by these rows. */
#include "kernels.h"

#include <string.h>

struct form {
    const char *use;
    int64_t n, side, c, k, kernel, stride, pool, pool_stride;
};

static const struct form forms[] = {
    {"googlenet small conv1", 32, 128, 3, 64, 7, 2, 3, 2},  {"googlenet small conv1", 4, 128, 3, 64, 7, 2, 3, 2},
    {"googlenet small conv1", 1, 128, 3, 64, 7, 2, 3, 2},   {"googlenet small conv2", 32, 32, 64, 192, 3, 1, 3, 2},
    {"googlenet small conv2", 4, 32, 64, 192, 3, 1, 3, 2},  {"googlenet small conv2", 1, 32, 64, 192, 3, 1, 3, 2},
    {"googlenet large conv1", 4, 224, 3, 64, 7, 2, 3, 2},   {"googlenet large conv2", 4, 56, 64, 192, 3, 1, 3, 2},
    {"googlenet large conv2", 1, 56, 64, 192, 3, 1, 3, 2},  {"pathnet small module", 64, 32, 16, 16, 3, 1, 2, 2},
    {"pathnet small module", 1, 32, 16, 16, 3, 1, 2, 2},    {"vgg conv1", 4, 224, 64, 64, 3, 1, 2, 2},
    {"vgg conv1", 1, 224, 64, 64, 3, 1, 2, 2},
};

static graphi_status build(const struct form *f, graphi_graph **out)
{
    graphi_status status = graphi_graph_create(out);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_graph *g = *out;
    const int64_t pad = f->kernel / 2, edge = f->pool / 2 * (f->pool % 2);
    const int64_t strides[] = {f->stride, f->stride}, pads[] = {pad, pad, pad, pad}, ones[] = {1, 1};
    const int64_t window[] = {f->pool, f->pool}, steps[] = {f->pool_stride, f->pool_stride};
    const graphi_initializer init = {.kind = GRAPHI_INIT_UNIFORM, .a = -0.5, .b = 0.5};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){f->n, f->side, f->side, f->c});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){f->kernel, f->kernel, f->c, f->k}, &init);
    graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, &f->k, &init);
    graphi_value image = graphi_relu(g, graphi_add(g, graphi_conv2d(g, x, w, strides, 2, pads, 4, ones, 2, 1), b));
    graphi_output(g, "y", graphi_max_pool(g, image, window, 2, steps, 2, (int64_t[]){edge, edge, edge, edge}, 4, 0));
    return GRAPHI_OK;
}

static graphi_status measure(struct bench *bench, const char *id, const struct form *f, int threads)
{
    static const char *const ways[] = {"one after the other", "in bands"}, *const disable[] = {"bands", NULL};
    double ms[2][KERNELS_ROUNDS];
    char name[200], full[2][200];
    graphi_graph *graph = NULL;
    report_progress(bench->options.quiet, "kernels: %s, %d threads", id, threads);
    graphi_status status = build(f, &graph);
    for (int round = 0; round < KERNELS_ROUNDS && status == GRAPHI_OK; round++)
        for (int way = 0; way < 2 && status == GRAPHI_OK; way++) {
            const graphi_plan_options options = {.disable = disable[way]};
            status = report_interrupted()
                         ? GRAPHI_INTERRUPTED
                         : kernels_time(bench, graph, &options, 1, threads, 10, 1, &ms[way][round]);
        }
    graphi_graph_destroy(graph);
    for (int way = 0; way < 2 && status == GRAPHI_OK; way++) {
        snprintf(name, sizeof name, "%s, %s", id, ways[way]);
        json_t *row = kernels_row(bench, name, "graphi", NULL, threads, ms[way], KERNELS_ROUNDS, "", full[way]);
        if (way)
            result_ratio(row, full[0], ms[1], ms[0], KERNELS_ROUNDS);
    }
    return status;
}

graphi_status kernels_pooled(struct bench *bench)
{
    for (const struct form *f = forms; f < forms + sizeof forms / sizeof *forms; f++) {
        char id[120];
        snprintf(id, sizeof id, "pooled convolution, %s, %lld images", f->use, (long long)f->n);
        if (!kernels_asked(bench, id))
            continue;
        for (int threads = 0; (threads = kernels_next_threads(bench, threads));) {
            graphi_status status = measure(bench, id, f, threads);
            if (status != GRAPHI_OK)
                return status;
        }
    }
    return GRAPHI_OK;
}
