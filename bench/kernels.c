/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions over the shapes that the networks use, on one thread and on all, beside oneDNN, OpenBLAS and (one
 * thread) LIBXSMM on the same shape in the same run. Convolutions that have a choice are measured twice: as the table chooses, and
 * with our direct algorithm alone, which is what oneDNN's direct one is compared with. Ours are timed through the public API: a
 * graph of several independent copies of the operation (so that the start of a run does not count; the peers write as many
 * results), arguments in our own layouts, weights packed once. What is bound by memory: rows/memory.c. */
#include "rows/kernels.h"
#include "peers/arithmetic.h"
#include "rows/pytorch.h"

#include <string.h>

struct shape {
    const char *use;
    bool is_conv;
    struct peer_gemm gemm;
    struct peer_conv conv;
    int uses; /* of a convolution in the small networks, for the sums */
};

#define GEMM(use, ...) {use, false, {__VA_ARGS__}, {0}, 0}
#define CONV(uses, use, ...) {use, true, {0}, {__VA_ARGS__, 0}, uses}
/* One layer of an inception module of GoogLeNet small. */
#define PART(uses, use, side, c, k, kernel) CONV(uses, "googlenet small, " use, 32, side, side, c, k, kernel, 1, kernel / 2)

static const struct shape shapes[] = {
    GEMM("lstm small, one gate", 64, 128, 128, 0, 0),
    GEMM("lstm small, four gates", 64, 512, 128, 0, 0),
    GEMM("lstm medium, one gate", 64, 512, 512, 0, 0),
    GEMM("lstm medium, four gates", 64, 2048, 512, 0, 0),
    GEMM("lstm large, one gate", 64, 1024, 1024, 0, 0),
    GEMM("lstm medium, gradient of x", 64, 512, 512, 0, 1),
    GEMM("lstm medium, gradient of w", 512, 512, 64, 1, 0),
    GEMM("square", 1024, 1024, 1024, 0, 0),
    CONV(6, "pathnet small, layer 1", 64, 32, 32, 3, 16, 3, 1, 1),
    CONV(6, "pathnet small, layer 2", 64, 16, 16, 16, 16, 3, 1, 1),
    CONV(6, "pathnet small, layer 3", 64, 8, 8, 16, 16, 3, 1, 1),
    CONV(0, "pathnet medium, layer 2", 64, 24, 24, 32, 32, 3, 1, 1),
    CONV(0, "pathnet large, layer 2", 64, 32, 32, 48, 48, 3, 1, 1),
    CONV(1, "googlenet small, conv1", 32, 128, 128, 3, 64, 7, 2, 3),
    CONV(1, "googlenet small, conv2 1x1", 32, 32, 32, 64, 64, 1, 1, 0),
    CONV(1, "googlenet small, conv2 3x3", 32, 32, 32, 64, 192, 3, 1, 1),
    PART(1, "3a 1x1", 16, 192, 64, 1), PART(1, "3a 1x1 before 3x3", 16, 192, 96, 1), PART(1, "3a 3x3", 16, 96, 128, 3),
    PART(1, "3a 1x1 before 5x5", 16, 192, 16, 1), PART(1, "3a 5x5", 16, 16, 32, 5), PART(1, "3a 1x1 after pool", 16, 192, 32, 1),
    PART(2, "3b 1x1", 16, 256, 128, 1), PART(1, "3b 3x3", 16, 128, 192, 3), PART(1, "3b 1x1 before 5x5", 16, 256, 32, 1),
    PART(1, "3b 5x5", 16, 32, 96, 5), PART(1, "3b 1x1 after pool", 16, 256, 64, 1),
    PART(1, "4a 1x1", 8, 480, 192, 1), PART(1, "4a 1x1 before 3x3", 8, 480, 96, 1), PART(1, "4a 3x3", 8, 96, 208, 3),
    PART(1, "4a 1x1 before 5x5", 8, 480, 16, 1), PART(1, "4a 5x5", 8, 16, 48, 5), PART(1, "4a 1x1 after pool", 8, 480, 64, 1),
    PART(1, "4b 1x1", 8, 512, 160, 1), PART(2, "4b 1x1 before 3x3", 8, 512, 112, 1), PART(1, "4b 3x3", 8, 112, 224, 3),
    PART(2, "4b 1x1 before 5x5", 8, 512, 24, 1), PART(2, "4b 5x5", 8, 24, 64, 5), PART(3, "4b 1x1 after pool", 8, 512, 64, 1),
    PART(2, "4c 1x1", 8, 512, 128, 1), PART(1, "4c 3x3", 8, 128, 256, 3),
    PART(1, "4d 1x1 before 3x3", 8, 512, 144, 1), PART(1, "4d 3x3", 8, 144, 288, 3), PART(1, "4d 1x1 before 5x5", 8, 512, 32, 1),
    PART(1, "4d 5x5", 8, 32, 64, 5),
    PART(1, "4e 1x1", 8, 528, 256, 1), PART(1, "4e 1x1 before 3x3", 8, 528, 160, 1), PART(1, "4e 3x3", 8, 160, 320, 3),
    PART(1, "4e 1x1 before 5x5", 8, 528, 32, 1), PART(1, "4e 5x5", 8, 32, 128, 5), PART(1, "4e 1x1 after pool", 8, 528, 128, 1),
    PART(1, "5a 1x1", 4, 832, 256, 1), PART(1, "5a 1x1 before 3x3", 4, 832, 160, 1), PART(1, "5a 3x3", 4, 160, 320, 3),
    PART(1, "5a 1x1 before 5x5", 4, 832, 32, 1), PART(1, "5a 5x5", 4, 32, 128, 5), PART(2, "5a 1x1 after pool", 4, 832, 128, 1),
    PART(1, "5b 1x1", 4, 832, 384, 1), PART(1, "5b 1x1 before 3x3", 4, 832, 192, 1), PART(1, "5b 3x3", 4, 192, 384, 3),
    PART(1, "5b 1x1 before 5x5", 4, 832, 48, 1), PART(1, "5b 5x5", 4, 48, 128, 5),
    CONV(0, "googlenet medium, conv2 3x3", 32, 48, 48, 128, 384, 3, 1, 1),
    CONV(0, "googlenet medium, 4e 3x3", 32, 12, 12, 320, 640, 3, 1, 1),
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

/* conv_error: as in the plan's options; DIRECT_ONLY leaves the direct algorithm alone. */
static graphi_status ours(struct bench *bench, const struct shape *s, int direction, int threads, int repeat, int copies,
                          double conv_error, double *ms)
{
    graphi_graph *graph = NULL;
    const graphi_plan_options options = {.disable = "cse", .conv_error = conv_error};
    graphi_status status = build(s, direction, copies, &graph);
    status = status == GRAPHI_OK ? kernels_time(bench, graph, &options, 1, threads, repeat, copies, ms) : report_failure(status);
    graphi_graph_destroy(graph);
    return status;
}

static json_t *add_row(struct bench *bench, const char *id, const char *engine, const char *version, const char *reason, int threads,
                       const double *ms, int n, double flops, char *full)
{
    double sorted[KERNELS_ROUNDS];
    json_t *row = kernels_row(bench, id, engine, version, threads, ms, n, reason, full);
    if (n == 0)
        return row;
    memcpy(sorted, ms, (size_t)n * sizeof *sorted);
    double gflops = flops / result_median(sorted, n) * 1e-6, roof = bench->about.roof_gflops / bench->about.cores * threads;
    result_number(row, "gflops", gflops);
    result_number(row, "fraction_of_limit", gflops / roof);
    return row;
}

/* Milliseconds of all convolutions of GoogLeNet and PathNet small, by direction, for the goals: our direct algorithm alone, the
 * algorithms that the table chooses, oneDNN's direct one. [1]: on all threads. */
enum { DIRECT, CHOSEN, ONEDNN, KINDS };
struct sums {
    double ms[2][KINDS][3];
};

enum { ROUNDS = KERNELS_ROUNDS, PEERS = 5 };
static const double DIRECT_ONLY = 1; /* no fast algorithm is as exact as the direct one */

static double peer(const struct shape *s, int direction, int which, int threads, int repeat, int copies)
{
    struct peer_conv conv = s->conv;
    conv.direction = direction;
    if (which == 4)
        return s->is_conv ? pytorch_conv(&conv, threads, repeat, copies) : pytorch_gemm(&s->gemm, threads, repeat, copies);
    if (s->is_conv)
        return which == 1 ? peer_onednn_conv(&conv, threads, repeat, copies) : -1;
    if (which == 3)
        return peer_libxsmm_gemm(&s->gemm, threads, repeat, copies);
    return which == 1 ? peer_onednn_gemm(&s->gemm, threads, repeat, copies) : peer_openblas_gemm(&s->gemm, threads, repeat, copies);
}

/* Is there a fast algorithm? */
static bool has_choice(const struct shape *s)
{
    return s->is_conv && s->conv.stride == 1 && (s->conv.kernel == 3 || s->conv.kernel == 5);
}

static void add_to_sums(struct sums *sums, const struct shape *s, int direction, int threads, double ms[KINDS])
{
    for (int kind = 0; kind < KINDS; kind++)
        sums->ms[threads > 1][kind][direction] += s->uses * ms[kind];
}

static void describe(const struct shape *s, int direction, size_t size, char *id)
{
    static const char *const directions[] = {"forward", "backward data", "backward weights"};
    if (s->is_conv)
        snprintf(id, size, "%s %s", s->use, directions[direction]);
    else
        snprintf(id, size, "%s %lldx%lldx%lld", s->use, (long long)s->gemm.m, (long long)s->gemm.n, (long long)s->gemm.k);
}

static graphi_status at_shape(struct bench *bench, const struct shape *s, int direction, int threads, struct sums *sums)
{
    double flops = flops_of(s), expected = flops / (bench->about.roof_gflops * 1e6), ms[PEERS][ROUNDS], direct[ROUNDS];
    int copies = expected < 0.5 ? 16 : 1, repeat = expected < 2 ? 20 : expected < 20 ? 5 : 2, count[PEERS] = {0};
    char id[160], direct_id[176];
    describe(s, direction, sizeof id, id);
    snprintf(direct_id, sizeof direct_id, "%s, direct", id);
    report_progress(bench->options.quiet, "kernels: %s, %d threads", id, threads);
    for (int round = 0; round < ROUNDS; round++) {
        graphi_status status = ours(bench, s, direction, threads, repeat, copies, 0, &ms[0][round]);
        direct[round] = ms[0][round];
        if (status == GRAPHI_OK && has_choice(s))
            status = ours(bench, s, direction, threads, repeat, copies, DIRECT_ONLY, &direct[round]);
        if (status != GRAPHI_OK || report_interrupted())
            return status != GRAPHI_OK ? status : GRAPHI_INTERRUPTED;
        count[0]++;
        for (int p = 1; p < PEERS; p++) {
            double t = peer(s, direction, p, threads, repeat, copies);
            if (t > 0)
                ms[p][count[p]++] = t;
        }
    }
    char full[200], peer_id[200];
    static const char *const not_built = "not found at build time";
    json_t *row = add_row(bench, id, "graphi", NULL, "", threads, ms[0], count[0], flops, full);
    json_t *other = has_choice(s) ? add_row(bench, direct_id, "graphi", NULL, "", threads, direct, ROUNDS, flops, full) : NULL;
    add_row(bench, id, "oneDNN", peer_onednn_version(), not_built, threads, ms[1], count[1], flops, peer_id);
    if (count[1] == ROUNDS) {
        result_ratio(row, peer_id, ms[0], ms[1], ROUNDS);
        if (other)
            result_ratio(other, peer_id, direct, ms[1], ROUNDS);
        if (s->is_conv)
            add_to_sums(sums, s, direction, threads,
                        (double[]){result_median(direct, ROUNDS), result_median(ms[0], ROUNDS), result_median(ms[1], ROUNDS)});
    }
    if (!s->is_conv)
        add_row(bench, id, "OpenBLAS", peer_openblas_version(), not_built, threads, ms[2], count[2], flops, full);
    if (!s->is_conv && threads == 1)
        add_row(bench, id, "LIBXSMM", peer_libxsmm_version(), not_built, threads, ms[3], count[3], flops, full);
    add_row(bench, id, "oneDNN in PyTorch", pytorch_version(), pytorch_reason(), threads, ms[4], count[4], flops, full);
    return GRAPHI_OK;
}

static void state_goals(struct bench *bench, const struct sums *sums)
{
    static const char *const directions[] = {"forward", "backward data", "backward weights", "all directions"};
    static const char *const kinds[] = {"direct convolutions", "convolutions as chosen"};
    for (int kind = DIRECT; kind <= CHOSEN; kind++)
        for (int many = 0; many < 2; many++) {
            double ours = 0, theirs = 0;
            for (int d = 0; d < 4; d++) {
                double mine = d < 3 ? sums->ms[many][kind][d] : ours, peers = d < 3 ? sums->ms[many][ONEDNN][d] : theirs;
                ours += mine;
                theirs += peers;
                if (!(mine > 0))
                    continue;
                char name[128];
                snprintf(name, sizeof name, "%s %s, %s: oneDNN's time over ours, FLOP-weighted", kinds[kind], directions[d],
                         many ? "all threads" : "one thread");
                result_goal(&bench->result, name, peers / mine, d < 3 ? 0.95 : 1, true);
            }
        }
}

static graphi_status products_and_convolutions(struct bench *bench)
{
    struct sums sums = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int direction = 0; direction < (shapes[i].is_conv ? 3 : 1); direction++) {
            char id[160];
            describe(&shapes[i], direction, sizeof id, id);
            if (direction == 1 && shapes[i].conv.c == 3)
                continue; /* images need no gradient */
            if (!kernels_asked(bench, id) || (bench->options.quick && flops_of(&shapes[i]) > 1e10))
                continue;
            for (int threads = 0; (threads = kernels_next_threads(bench, threads));) {
                graphi_status status = at_shape(bench, &shapes[i], direction, threads, &sums);
                if (status != GRAPHI_OK)
                    return status;
            }
        }
    state_goals(bench, &sums);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    graphi_status status = products_and_convolutions(bench);
    pytorch_stop();
    if (status == GRAPHI_OK)
        status = kernels_memory(bench);
    if (status == GRAPHI_OK)
        status = kernels_streaming(bench);
    return status == GRAPHI_OK ? kernels_chosen(bench) : status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "kernels", run); }
