/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions over the shapes that the networks use, on one thread and on all, beside oneDNN, OpenBLAS
 * and (one thread) LIBXSMM on the same shape in the same run. Convolutions that have a choice are measured twice: as
 * the table chooses, and with our direct algorithm alone, which is what oneDNN's direct one is compared with. Ours are
 * timed through the public API: a graph of several independent copies of the operation (so that the start of a run does
 * not count; the peers write as many results), arguments in our own layouts, weights packed once. What is bound by
 * memory: rows/memory.c; convolutions that pool their results: rows/pooled.c. */
#include "rates.h"
#include "rows/kernels.h"
#include "rows/pytorch.h"
#include "rows/shapes.h"
#include "tool/local_machine.h"

#include <string.h>

static graphi_value parameter(graphi_graph *g, const char *name, int rank, const int64_t *dims)
{
    return graphi_parameter(g, name, GRAPHI_F32, rank, dims,
                            &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -0.5, .b = 0.5});
}

static graphi_value one(graphi_graph *g, const struct shape *s, int direction, graphi_value a, graphi_value b)
{
    const struct peer_conv *c = &s->conv;
    if (!s->is_conv)
        return graphi_matmul(g, a, b, s->gemm.trans_a, s->gemm.trans_b);
    const int64_t across = peer_pad_width(c), groups = peer_groups(c);
    const int64_t strides[] = {c->stride, c->stride}, pads[] = {c->pad, across, c->pad, across}, ones[] = {1, 1};
    const int64_t size[] = {c->h, c->w}, kernel[] = {c->kernel, peer_width(c)};
    if (direction == 0)
        return graphi_conv2d(g, a, b, strides, 2, pads, 4, ones, 2, groups);
    if (direction == 1)
        return graphi_conv2d_backward_data(g, a, b, strides, 2, pads, 4, ones, 2, groups, size, 2);
    return graphi_conv2d_backward_weights(g, a, b, strides, 2, pads, 4, ones, 2, groups, kernel, 2);
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
        const struct peer_gemm *p = &s->gemm;
        const int64_t left[] = {p->batch, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k};
        const int64_t right[] = {p->batch, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n};
        const int single = !p->batch, rank = 3 - single;
        a = graphi_input(g, "a", GRAPHI_F32, rank, left + single);
        b = parameter(g, "b", rank, right + single);
    } else {
        const int64_t x[] = {c->n, c->h, c->w, c->c}, w[] = {c->kernel, peer_width(c), c->c / peer_groups(c), c->k};
        const int64_t y[] = {c->n, peer_out_height(c), peer_out_width(c), c->k};
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
static graphi_status ours(struct bench *bench, const struct shape *s, int direction, int threads, int repeat,
                          int copies, double conv_error, double *ms)
{
    graphi_graph *graph = NULL;
    const bool rounded = s->is_conv ? s->conv.bfloat16 : s->gemm.bfloat16;
    const graphi_plan_options options = {
        .disable = "cse", .conv_error = conv_error, .precision = rounded ? GRAPHI_BF16 : GRAPHI_F32};
    graphi_status status = build(s, direction, copies, &graph);
    status = status == GRAPHI_OK ? kernels_time(bench, graph, &options, 1, threads, repeat, copies, ms)
                                 : report_failure(status);
    graphi_graph_destroy(graph);
    return status;
}

enum { ROUNDS = KERNELS_ROUNDS, PEERS = 5 /* ourselves, oneDNN, OpenBLAS, LIBXSMM, PyTorch */ };

static json_t *add_row(struct bench *bench, const char *id, const char *engine, const char *version, const char *reason,
                       int threads, const double *ms, int n, double flops, struct rating all, char *full)
{
    json_t *row = kernels_row(bench, id, engine, version, threads, ms, n, reason, full);
    if (n == 0)
        return row;
    double gflops = flops / result_median(ms, n) * 1e-6, roof = all.roof_gflops / bench->about.cores * threads;
    result_number(row, "gflops", gflops);
    result_number(row, "fraction_of_limit", gflops / roof);
    result_roof(row, all);
    return row;
}

/* The product that goals are about: its part of the roof, and the peers' times over ours. */
static void state_product_goals(struct bench *bench, const char *id, int threads, double flops,
                                double ms[PEERS][ROUNDS], const int count[PEERS])
{
    static const char *const peers[PEERS] = {[1] = "oneDNN", [2] = "OpenBLAS"};
    const double roof = bench->about.roof_gflops / bench->about.cores * threads;
    char name[240];
    snprintf(name, sizeof name, "%s, %d thread%s: of the roof", id, threads, threads > 1 ? "s" : "");
    rates_goal(&bench->result, name, flops / result_median(ms[0], ROUNDS) * 1e-6 / roof, threads > 1 ? 0.88 : 0.92,
               job_roof(&bench->about, GRAPHI_F32));
    for (int p = 1; p < PEERS; p++) {
        if (!peers[p] || count[p] < ROUNDS)
            continue;
        snprintf(name, sizeof name, "%s, %d thread%s: %s's time over ours", id, threads, threads > 1 ? "s" : "",
                 peers[p]);
        result_goal(&bench->result, name, result_paired(ms[p], ms[0], ROUNDS), 1, true);
    }
}

/* Milliseconds of all convolutions of GoogLeNet and PathNet small, by direction, for the goals: our direct algorithm
 * alone, the algorithms that the table chooses, oneDNN's direct one. [1]: on all threads. */
enum { DIRECT, CHOSEN, ONEDNN, KINDS };
struct sums {
    double ms[2][KINDS][3];
    bool partial; /* not of all of these convolutions */
};

static const double DIRECT_ONLY = 1; /* no fast algorithm is as exact as the direct one */

/* What every peer has: one product or convolution of float32. */
static bool is_plain(const struct shape *s)
{
    return s->is_conv ? !s->conv.bfloat16 : !s->gemm.batch && !s->gemm.bfloat16;
}

static double peer(const struct shape *s, int direction, int which, int threads, int repeat, int copies)
{
    struct peer_conv conv = s->conv;
    conv.direction = direction;
    if (which > 1 && !is_plain(s))
        return -1;
    if (which == 4)
        return s->is_conv ? pytorch_conv(&conv, threads, repeat, copies)
                          : pytorch_gemm(&s->gemm, threads, repeat, copies);
    if (s->is_conv)
        return which == 1 ? peer_onednn_conv(&conv, threads, repeat, copies) : -1;
    if (which == 3)
        return peer_libxsmm_gemm(&s->gemm, threads, repeat, copies);
    return which == 1 ? peer_onednn_gemm(&s->gemm, threads, repeat, copies)
                      : peer_openblas_gemm(&s->gemm, threads, repeat, copies);
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
        snprintf(id, size, "%s %lldx%lldx%lld", s->use, (long long)s->gemm.m, (long long)s->gemm.n,
                 (long long)s->gemm.k);
}

/* Ours multiplies bfloat16 though this shape does not ask for it, nor peers do it: these two do not compare. */
static bool rounds_alone(const struct bench *bench, const struct shape *s)
{
    const char *precision = bench->options.precision;
    return precision && strcmp(precision, "bfloat16") == 0 && !(s->is_conv ? s->conv.bfloat16 : s->gemm.bfloat16);
}

/* What ours multiplies, or peers. */
static struct rating roof_of(const struct bench *bench, const struct shape *s, bool ours)
{
    const bool rounded = s->is_conv ? s->conv.bfloat16 : s->gemm.bfloat16;
    return job_roof(&bench->about, rounded || (ours && rounds_alone(bench, s)) ? GRAPHI_BF16 : GRAPHI_F32);
}

/* A library's row; one without a version is not there. */
static void add_library(struct bench *bench, const char *id, const char *name, const char *version, int threads,
                        const double *ms, int count, double flops, struct rating roof, char full[200])
{
    const char *reason =
        *version ? "refuses this shape or type on this machine" : "not found at build time: make peers installs it";
    add_row(bench, id, name, version, reason, threads, ms, count, flops, roof, full);
}

static graphi_status at_shape(struct bench *bench, const struct shape *s, int direction, int threads, struct sums *sums)
{
    double flops = kernels_flops(s), expected = flops / (bench->about.roof_gflops * 1e6), ms[PEERS][ROUNDS],
           direct[ROUNDS];
    int copies = expected < 0.5 ? 16 : 1, repeat = expected < 2 ? 20 : expected < 20 ? 5 : 2, count[PEERS] = {0};
    char id[160], direct_id[176];
    describe(s, direction, sizeof id, id);
    snprintf(direct_id, sizeof direct_id, "%s, direct", id);
    report_progress(bench->options.quiet, "kernels: %s, %d threads", id, threads);
    for (int round = 0; round < ROUNDS; round++) {
        graphi_status status = ours(bench, s, direction, threads, repeat, copies, 0, &ms[0][round]);
        direct[round] = ms[0][round];
        if (status == GRAPHI_OK && kernels_have_choice(s))
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
    for (int p = rounds_alone(bench, s); p < PEERS && is_plain(s) && !s->is_conv; p++)
        if (count[p] > 0 && flops / ms[p][0] * 1e-6 * bench->about.cores / threads > bench->about.roof_gflops) {
            job_measure_again(bench->machine, &bench->about); /* nothing multiplies faster: it was read too low */
            break;
        }
    const struct rating roof = roof_of(bench, s, true), peers = roof_of(bench, s, false);
    char full[200], peer_id[200];
    json_t *row = add_row(bench, id, "graphi", NULL, "", threads, ms[0], count[0], flops, roof, full);
    json_t *other = kernels_have_choice(s)
                        ? add_row(bench, direct_id, "graphi", NULL, "", threads, direct, ROUNDS, flops, roof, full)
                        : NULL;
    add_library(bench, id, "oneDNN", peer_onednn_version(), threads, ms[1], count[1], flops, peers, peer_id);
    if (count[1] == ROUNDS) {
        result_ratio(row, peer_id, ms[0], ms[1], ROUNDS);
        if (other)
            result_ratio(other, peer_id, direct, ms[1], ROUNDS);
        if (s->is_conv)
            add_to_sums(
                sums, s, direction, threads,
                (double[]){result_median(direct, ROUNDS), result_median(ms[0], ROUNDS), result_median(ms[1], ROUNDS)});
    }
    sums->partial |= s->is_conv && s->uses && (count[1] < ROUNDS || rounds_alone(bench, s));
    if (!s->is_conv && s->uses && !rounds_alone(bench, s))
        state_product_goals(bench, id, threads, flops, ms, count);
    if (!is_plain(s))
        return GRAPHI_OK;
    if (!s->is_conv)
        add_library(bench, id, "OpenBLAS", peer_openblas_version(), threads, ms[2], count[2], flops, peers, full);
    if (!s->is_conv && threads == 1)
        add_library(bench, id, "LIBXSMM", peer_libxsmm_version(), threads, ms[3], count[3], flops, peers, full);
    add_row(bench, id, "oneDNN in PyTorch", pytorch_version(), pytorch_reason(), threads, ms[4], count[4], flops, peers,
            full);
    return GRAPHI_OK;
}

/* Only of all convolutions that they are about: of some of them their names would not be true. */
static void state_goals(struct bench *bench, const struct sums *sums)
{
    static const char *const directions[] = {"forward", "backward data", "backward weights", "all directions"};
    static const char *const kinds[] = {"direct convolutions", "convolutions as chosen"};
    for (int kind = DIRECT; kind <= CHOSEN; kind++)
        for (int many = 0; many < 2; many++) {
            double ours = 0, theirs = 0;
            for (int d = 0; d < 4; d++) {
                double mine = d < 3 ? sums->ms[many][kind][d] : ours,
                       peers = d < 3 ? sums->ms[many][ONEDNN][d] : theirs;
                ours += mine;
                theirs += peers;
                if (!(mine > 0) || sums->partial)
                    continue;
                char name[128];
                snprintf(name, sizeof name, "%s %s, %s: oneDNN's time over ours, FLOP-weighted", kinds[kind],
                         directions[d], many ? "all threads" : "one thread");
                result_goal(&bench->result, name, peers / mine, d < 3 ? 0.95 : 1, true);
            }
        }
}

static graphi_status products_and_convolutions(struct bench *bench)
{
    struct sums sums = {0};
    for (const struct shape *s = kernels_shapes; s < kernels_shapes + kernels_shape_count; s++)
        for (int direction = 0; direction < (s->is_conv ? 3 : 1); direction++) {
            char id[160];
            describe(s, direction, sizeof id, id);
            if (direction == 1 && s->conv.c == 3)
                continue; /* images need no gradient */
            if (bench->options.quick && kernels_flops(s) > 1e10) {
                kernels_leaves_out(bench, id);
                continue;
            }
            if (!kernels_asked(bench, id)) {
                sums.partial |= s->uses > 0;
                continue;
            }
            for (int threads = 0; (threads = kernels_next_threads(bench, threads));) {
                graphi_status status = at_shape(bench, s, direction, threads, &sums);
                if (status != GRAPHI_OK)
                    return status;
            }
        }
    state_goals(bench, &sums);
    return GRAPHI_OK;
}

static graphi_status rows(struct bench *bench)
{
    graphi_status status = products_and_convolutions(bench);
    pytorch_stop();
    if (status == GRAPHI_OK)
        status = kernels_memory(bench);
    if (status == GRAPHI_OK)
        status = kernels_streaming(bench);
    return status == GRAPHI_OK ? kernels_pooled(bench) : status;
}

/* Once for the names alone: a word that chooses no row is told before anything is measured. */
static graphi_status run(struct bench *bench)
{
    kernels_only_name(true);
    graphi_status status = rows(bench);
    kernels_only_name(false);
    if (status == GRAPHI_OK)
        status = kernels_chosen(bench);
    return status == GRAPHI_OK ? rows(bench) : status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "kernels", run);
}
