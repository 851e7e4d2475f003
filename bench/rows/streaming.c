/* SPDX-License-Identifier: Apache-2.0 */
/* Ordinary and streaming stores of one element-wise program, relu(x + bias), in turns: results from a part of L2 to
 * several times L3, read by a sum right after, or by nobody. An ordinary store reads the line that it writes first; a
 * streaming one does not, but the reader then finds it in memory. The rule by size in src/kernels/program_bind.c
 * (STREAM_BYTES) is read off these rows. */
#include "kernels.h"

enum { COLUMNS = 1024, SIZES = 6 };
static const int64_t sizes_kib[SIZES] = {512, 2048, 8192, 32768, 65536, 131072};

static graphi_status build(int64_t rows, bool read, graphi_graph **out)
{
    graphi_status status = graphi_graph_create(out);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_graph *g = *out;
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){rows, COLUMNS});
    graphi_value bias = graphi_input(g, "bias", GRAPHI_F32, 1, (int64_t[]){COLUMNS});
    graphi_value y = graphi_relu(g, graphi_add(g, x, bias));
    graphi_output(g, "y", y);
    if (read)
        graphi_output(g, "sum", graphi_reduce_sum(g, y, NULL, 0, 0));
    return GRAPHI_OK;
}

static graphi_status measure(struct bench *bench, const char *id, int64_t kib, bool read, int threads)
{
    static const char *const forms[] = {"ordinary stores", "streaming stores"};
    double ms[2][KERNELS_ROUNDS];
    char name[200], full[2][200];
    graphi_graph *graph = NULL;
    int repeat = kib <= 8192 ? 50 : 5;
    report_progress(bench->options.quiet, "kernels: %s, %d threads", id, threads);
    graphi_status status = build(kib * 1024 / 4 / COLUMNS, read, &graph);
    for (int round = 0; round < KERNELS_ROUNDS && status == GRAPHI_OK; round++)
        for (int form = 0; form < 2 && status == GRAPHI_OK; form++) {
            const graphi_plan_options options = {.streaming = form ? GRAPHI_STREAM_ALWAYS : GRAPHI_STREAM_NEVER};
            status = report_interrupted()
                         ? GRAPHI_INTERRUPTED
                         : kernels_time(bench, graph, &options, 1, threads, repeat, 1, &ms[form][round]);
        }
    graphi_graph_destroy(graph);
    for (int form = 0; form < 2 && status == GRAPHI_OK; form++) {
        snprintf(name, sizeof name, "%s, %s", id, forms[form]);
        json_t *row = kernels_row(bench, name, "graphi", NULL, threads, ms[form], KERNELS_ROUNDS, "", full[form]);
        result_number(row, "gbs", (double)kib * 1024 * (read ? 3 : 2) / result_median(ms[form], KERNELS_ROUNDS) * 1e-6);
        if (form)
            result_ratio(row, full[0], ms[1], ms[0], KERNELS_ROUNDS);
    }
    return status;
}

graphi_status kernels_streaming(struct bench *bench)
{
    for (int size = 0; size < SIZES; size++)
        for (int read = 0; read < 2; read++) {
            char id[120];
            snprintf(id, sizeof id, "streaming, result of %g MiB, %s", (double)sizes_kib[size] / 1024,
                     read ? "read after" : "not read");
            if (!kernels_asked(bench, id))
                continue;
            for (int threads = 0; (threads = kernels_next_threads(bench, threads));) {
                graphi_status status = measure(bench, id, sizes_kib[size], read, threads);
                if (status != GRAPHI_OK)
                    return status;
            }
        }
    return GRAPHI_OK;
}
