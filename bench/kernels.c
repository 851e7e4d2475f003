/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions over the shapes that the networks use, on one thread and on all, beside oneDNN, OpenBLAS and (one thread) LIBXSMM on the same
 * shape in the same run. Ours are timed through the public API: a graph of several independent copies of the operation (so that the
 * start of a run does not count), arguments in our own layouts, weights packed once. */
#include "bench.h"
#include "peers/arithmetic.h"

#include <stdlib.h>
#include <string.h>

struct shape {
    const char *use;
    bool is_conv;
    struct peer_gemm gemm;
    struct peer_conv conv;
};

#define GEMM(use, ...) {use, false, {__VA_ARGS__}, {0}}
#define CONV(use, ...) {use, true, {0}, {__VA_ARGS__, 0}}

static const struct shape shapes[] = {
    GEMM("lstm small, one gate", 64, 128, 128, 0, 0),
    GEMM("lstm small, four gates", 64, 512, 128, 0, 0),
    GEMM("lstm medium, one gate", 64, 512, 512, 0, 0),
    GEMM("lstm medium, four gates", 64, 2048, 512, 0, 0),
    GEMM("lstm large, one gate", 64, 1024, 1024, 0, 0),
    GEMM("lstm medium, gradient of x", 64, 512, 512, 0, 1),
    GEMM("lstm medium, gradient of w", 512, 512, 64, 1, 0),
    GEMM("square", 1024, 1024, 1024, 0, 0),
    CONV("pathnet small, layer 1", 64, 32, 32, 3, 16, 3, 1, 1),
    CONV("pathnet small, layer 2", 64, 16, 16, 16, 16, 3, 1, 1),
    CONV("pathnet medium, layer 2", 64, 24, 24, 32, 32, 3, 1, 1),
    CONV("pathnet large, layer 2", 64, 32, 32, 48, 48, 3, 1, 1),
    CONV("googlenet small, conv1", 32, 128, 128, 3, 64, 7, 2, 3),
    CONV("googlenet small, conv2", 32, 32, 32, 64, 192, 3, 1, 1),
    CONV("googlenet small, 3a 1x1", 32, 16, 16, 192, 64, 1, 1, 0),
    CONV("googlenet small, 3b 3x3", 32, 16, 16, 128, 192, 3, 1, 1),
    CONV("googlenet small, 3b 5x5", 32, 16, 16, 32, 96, 5, 1, 2),
    CONV("googlenet small, 4e 3x3", 32, 8, 8, 160, 320, 3, 1, 1),
    CONV("googlenet small, 5b 3x3", 32, 4, 4, 192, 384, 3, 1, 1),
    CONV("googlenet medium, conv2", 32, 48, 48, 128, 384, 3, 1, 1),
    CONV("googlenet medium, 4e 3x3", 32, 12, 12, 320, 640, 3, 1, 1),
};

static int64_t out_side(int64_t side, const struct peer_conv *c) { return (side + 2 * c->pad - c->kernel) / c->stride + 1; }

static double flops_of(const struct shape *s)
{
    if (!s->is_conv)
        return 2.0 * (double)s->gemm.m * (double)s->gemm.n * (double)s->gemm.k;
    const struct peer_conv *c = &s->conv;
    return 2.0 * (double)(c->n * out_side(c->h, c) * out_side(c->w, c) * c->k) * (double)(c->c * c->kernel * c->kernel);
}

static graphi_value parameter(graphi_graph *g, const char *name, int rank, const int64_t *dims)
{
    return graphi_parameter(g, name, GRAPHI_F32, rank, dims, &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -0.5, .b = 0.5});
}

static graphi_value one(graphi_graph *g, const struct shape *s, int direction, graphi_value a, graphi_value b)
{
    const struct peer_conv *c = &s->conv;
    if (!s->is_conv)
        return graphi_matmul(g, a, b, s->gemm.trans_a, s->gemm.trans_b);
    const int64_t strides[] = {c->stride, c->stride}, pads[] = {c->pad, c->pad, c->pad, c->pad}, ones[] = {1, 1};
    const int64_t size[] = {c->h, c->w}, kernel[] = {c->kernel, c->kernel};
    if (direction == 0)
        return graphi_conv2d(g, a, b, strides, 2, pads, 4, ones, 2, 1);
    if (direction == 1)
        return graphi_conv2d_backward_data(g, a, b, strides, 2, pads, 4, ones, 2, 1, size, 2);
    return graphi_conv2d_backward_weights(g, a, b, strides, 2, pads, 4, ones, 2, 1, kernel, 2);
}

static graphi_status build(const struct shape *s, int direction, int copies, graphi_graph **out)
{
    graphi_status status = graphi_graph_create(out);
    if (status != GRAPHI_OK)
        return status;
    graphi_graph *g = *out;
    const struct peer_conv *c = &s->conv;
    graphi_value a, b;
    if (!s->is_conv) {
        a = graphi_input(g, "a", GRAPHI_F32, 2, s->gemm.trans_a ? (int64_t[]){s->gemm.k, s->gemm.m} : (int64_t[]){s->gemm.m, s->gemm.k});
        b = parameter(g, "b", 2, s->gemm.trans_b ? (int64_t[]){s->gemm.n, s->gemm.k} : (int64_t[]){s->gemm.k, s->gemm.n});
    } else {
        const int64_t x[] = {c->n, c->h, c->w, c->c}, w[] = {c->kernel, c->kernel, c->c, c->k};
        const int64_t y[] = {c->n, out_side(c->h, c), out_side(c->w, c), c->k};
        a = graphi_input(g, "a", GRAPHI_F32, 4, direction == 1 ? y : x);
        b = direction == 2 ? graphi_input(g, "b", GRAPHI_F32, 4, y) : parameter(g, "b", 4, w);
    }
    for (int i = 0; i < copies; i++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", i);
        graphi_output(g, name, one(g, s, direction, a, b));
    }
    return graphi_graph_status(g);
}

static graphi_status ours(struct bench *bench, const struct shape *s, int direction, int threads, int repeat, int copies, double *ms)
{
    graphi_graph *graph = NULL;
    graphi_plan *plan = NULL;
    graphi_state *state = NULL;
    graphi_run *run = NULL;
    graphi_plan_options options = {.disable = "cse", .setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = 1, .width = threads}};
    static const graphi_model_info none;
    graphi_plan_options asked;
    graphi_status status = job_plan_options(&bench->options, &asked);
    options.isa = asked.isa;
    options.precision = asked.precision;
    if (status == GRAPHI_OK && (status = build(s, direction, copies, &graph)) == GRAPHI_OK &&
        (status = graphi_plan_create(graph, bench->machine, &options, &plan)) == GRAPHI_OK &&
        (status = graphi_state_create(graph, 1, &state)) == GRAPHI_OK && (status = graphi_run_create(plan, state, &run)) == GRAPHI_OK)
        status = job_feed(run, graph, &none, 1);
    double samples[1000];
    for (int i = -2; i < repeat && status == GRAPHI_OK; i++) {
        status = graphi_run_execute(run);
        graphi_run_info info;
        graphi_run_get_info(run, &info);
        if (i >= 0)
            samples[i] = info.last_ms / copies;
    }
    if (status == GRAPHI_OK)
        *ms = result_median(samples, repeat);
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(graph);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static json_t *add_row(struct bench *bench, const char *id, const char *engine, const char *version, int threads, double *ms, int n,
                       double flops)
{
    char full[200];
    snprintf(full, sizeof full, "%s, %d thread%s", id, threads, threads > 1 ? "s" : "");
    json_t *row = result_row(&bench->result, full, engine);
    result_integer(row, "width", threads);
    if (version)
        result_string(row, "engine_version", version);
    if (n == 0) {
        result_string(row, "status", "missing");
        result_string(row, "reason", "not found at build time");
        return row;
    }
    double median = result_median(ms, n), roof = bench->about.roof_gflops / bench->about.cores * threads;
    result_times(row, ms, n);
    result_number(row, "gflops", flops / median * 1e-6);
    result_number(row, "fraction_of_limit", flops / median * 1e-6 / roof);
    return row;
}

/* Sums over FLOP-weighted convolutions, for the goals. */
struct sums {
    double ours[3], peer[3];
};

enum { ROUNDS = 5, PEERS = 4 };

static double peer(const struct shape *s, int direction, int which, int threads, int repeat)
{
    struct peer_conv conv = s->conv;
    conv.direction = direction;
    if (s->is_conv)
        return which == 1 ? peer_onednn_conv(&conv, threads, repeat) : -1;
    if (which == 3)
        return peer_libxsmm_gemm(&s->gemm, threads, repeat);
    return which == 1 ? peer_onednn_gemm(&s->gemm, threads, repeat) : peer_openblas_gemm(&s->gemm, threads, repeat);
}

static graphi_status at_shape(struct bench *bench, const struct shape *s, int direction, int threads, struct sums *sums)
{
    static const char *const directions[] = {"forward", "backward data", "backward weights"};
    double flops = flops_of(s), expected = flops / (bench->about.roof_gflops * 1e6), ms[PEERS][ROUNDS];
    int copies = expected < 0.5 ? 16 : 1, repeat = expected < 2 ? 20 : 5, count[PEERS] = {0};
    char id[160];
    if (s->is_conv)
        snprintf(id, sizeof id, "%s %s", s->use, directions[direction]);
    else
        snprintf(id, sizeof id, "%s %lldx%lldx%lld", s->use, (long long)s->gemm.m, (long long)s->gemm.n, (long long)s->gemm.k);
    report_progress(bench->options.quiet, "kernels: %s, %d threads", id, threads);
    for (int round = 0; round < ROUNDS; round++) {
        graphi_status status = ours(bench, s, direction, threads, repeat, copies, &ms[0][round]);
        if (status != GRAPHI_OK || report_interrupted())
            return status != GRAPHI_OK ? status : GRAPHI_INTERRUPTED;
        count[0]++;
        for (int p = 1; p < PEERS; p++) {
            double t = peer(s, direction, p, threads, repeat);
            if (t > 0)
                ms[p][count[p]++] = t;
        }
    }
    double mine[ROUNDS];
    memcpy(mine, ms[0], sizeof mine);
    json_t *row = add_row(bench, id, "graphi", NULL, threads, ms[0], count[0], flops);
    if (count[1] == ROUNDS)
        result_ratio(row, "oneDNN on the same shape", mine, ms[1], ROUNDS);
    if (s->is_conv && count[1] && threads == 1) {
        sums->ours[direction] += result_median(mine, ROUNDS);
        sums->peer[direction] += result_median(ms[1], count[1]);
    }
    add_row(bench, id, "oneDNN", peer_onednn_version(), threads, ms[1], count[1], flops);
    if (!s->is_conv)
        add_row(bench, id, "OpenBLAS", peer_openblas_version(), threads, ms[2], count[2], flops);
    if (!s->is_conv && threads == 1)
        add_row(bench, id, "LIBXSMM", peer_libxsmm_version(), threads, ms[3], count[3], flops);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    static const char *const directions[] = {"forward", "backward data", "backward weights"};
    struct sums sums = {{0}, {0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int direction = 0; direction < (shapes[i].is_conv ? 3 : 1); direction++)
            for (int threads = 1; threads <= bench->about.cores; threads += threads < bench->about.cores ? bench->about.cores - 1 : 1) {
                if (direction == 1 && shapes[i].conv.c == 3)
                    continue; /* images need no gradient */
                if (bench->options.quick && flops_of(&shapes[i]) > 1e10)
                    continue;
                graphi_status status = at_shape(bench, &shapes[i], direction, threads, &sums);
                if (status != GRAPHI_OK)
                    return status;
            }
    for (int d = 0; d < 3; d++)
        if (sums.ours[d] > 0) {
            char name[96];
            snprintf(name, sizeof name, "convolutions %s, one thread: oneDNN's time over ours, FLOP-weighted", directions[d]);
            result_goal(&bench->result, name, sums.peer[d] / sums.ours[d], 0.95, true);
        }
    return GRAPHI_OK;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "kernels", run); }
