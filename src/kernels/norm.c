/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of the normalization kernels, their shares and phases. Batch normalization is leaf sums into the workspace,
 * leaves combined into row vectors, rows written; with given statistics the first of these is left out. Few threads may
 * do all that for one piece of channels after the other instead, which then stays in the caches between. LRN is one
 * phase over rows. Usual size: 32x28x28 rows of 64 to 512 channels, so 64 leaves of some hundred rows. */
#include "kernels/norm.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/each_isa.h"
#include "kernels/shares.h"

#include <math.h>

#define DECLARE(isa)                                                                                                   \
    void norm_batch_leaf_##isa(const struct norm_block *);                                                             \
    void norm_batch_rows_##isa(const struct norm_block *);                                                             \
    void norm_gradient_leaf_##isa(const struct norm_block *);                                                          \
    void norm_gradient_rows_##isa(const struct norm_block *);                                                          \
    void norm_lrn_rows_##isa(const struct norm_block *);                                                               \
    void norm_lrn_gradient_rows_##isa(const struct norm_block *);
#define ROW(isa)                                                                                                       \
    {{norm_batch_leaf_##isa, norm_batch_rows_##isa},                                                                   \
     {norm_gradient_leaf_##isa, norm_gradient_rows_##isa},                                                             \
     {NULL, norm_batch_rows_##isa},                                                                                    \
     {NULL, norm_lrn_rows_##isa},                                                                                      \
     {NULL, norm_lrn_gradient_rows_##isa}},
EACH_ISA(DECLARE)

static const norm_function functions[][NORM_KINDS][2] = {EACH_ISA(ROW)};

/* Rows of this call: dimension 0 may hold fewer than the bound. */
static int64_t rows_of(const struct norm_params *p, const struct kernel_call *call)
{
    return p->spec.per_row ? call->in[0].rows * p->spec.per_row : p->spec.rows;
}

/* Leaf i of the bound, less what this call does not have. */
static void leaf_range(const struct norm_params *p, int64_t rows, int leaf, int64_t *begin, int64_t *end)
{
    split_range(p->spec.rows, p->leaves, leaf, begin, end);
    *begin = *begin < rows ? *begin : rows;
    *end = *end < rows ? *end : rows;
}

/* --- combining: channels [c0, c0 + n) of the row vectors, from the leaves or from given statistics --- */

enum { COMBINE = NORM_PIECE }; /* channels a share */
typedef void combine_function(const struct norm_params *p, const struct kernel_call *call, const struct norm_block *to,
                              int64_t c0, int64_t n);

/* Leaf means and squared deviations into the batch's (Chan et al. 1979). */
static void combine_batch(const struct norm_params *p, const struct kernel_call *call, const struct norm_block *to,
                          int64_t c0, int64_t n)
{
    const int64_t rows = rows_of(p, call), c = p->spec.c;
    const float *scale = call->in[1].data, *means = (const float *)call->workspace + c0, *squares = means + c;
    float *mean = call->out[1].data, *inv_std = call->out[2].data;
    double m[COMBINE] = {0}, deviations[COMBINE] = {0}, before = 0;
    int64_t begin, end;
    for (int leaf = 0; leaf < p->leaves && (leaf_range(p, rows, leaf, &begin, &end), begin < end); leaf++) {
        const double count = (double)(end - begin), part = count / (before + count);
        for (int64_t j = 0; j < n; j++) {
            double delta = means[2 * leaf * c + j] - m[j];
            m[j] += delta * part;
            deviations[j] += squares[2 * leaf * c + j] + delta * delta * before * part;
        }
        before += count;
    }
    for (int64_t j = 0; j < n; j++) {
        mean[c0 + j] = (float)m[j];
        inv_std[c0 + j] = (float)(1 / sqrt((rows ? deviations[j] / (double)rows : 0) + p->spec.epsilon));
        to->slope[c0 + j] = scale[c0 + j] * inv_std[c0 + j];
    }
}

/* Leaf sums of dy and dy (x - mean) into dbias and dscale, and into what is subtracted. */
static void combine_gradient(const struct norm_params *p, const struct kernel_call *call, const struct norm_block *to,
                             int64_t c0, int64_t n)
{
    const int64_t rows = rows_of(p, call), c = p->spec.c;
    const float *scale = call->in[1].data, *inv_std = call->in[3].data;
    const float *sums = (const float *)call->workspace + c0, *products = sums + c;
    float *dscale = call->out[1].data, *dbias = call->out[2].data;
    double sum[COMBINE] = {0}, product[COMBINE] = {0};
    int64_t begin, end;
    for (int leaf = 0; leaf < p->leaves && (leaf_range(p, rows, leaf, &begin, &end), begin < end); leaf++)
        for (int64_t j = 0; j < n; j++) {
            sum[j] += sums[2 * leaf * c + j];
            product[j] += products[2 * leaf * c + j];
        }
    for (int64_t j = 0, k = c0; j < n; j++, k++) {
        dbias[k] = (float)sum[j];
        dscale[k] = (float)(product[j] * inv_std[k]);
        to->slope[k] = scale[k] * inv_std[k];
        to->a[k] = rows ? (float)(sum[j] / (double)rows) : 0;
        to->b[k] = rows ? (float)(product[j] * inv_std[k] * inv_std[k] / (double)rows) : 0;
    }
}

static void combine_given(const struct norm_params *p, const struct kernel_call *call, const struct norm_block *to,
                          int64_t c0, int64_t n)
{
    const float *scale = call->in[1].data, *var = call->in[4].data;
    for (int64_t j = c0; j < c0 + n; j++)
        to->slope[j] = scale[j] / sqrtf(var[j] + (float)p->spec.epsilon);
}

/* --- running: where the arguments of each kind lie --- */

static const struct kind {
    const char *name;
    int passes; /* over an array of x's size */
    double flops;
    combine_function *combine;
    int vectors;        /* row vectors in the workspace, after the leaves */
    int mean, bias, dy; /* inputs, 0: none; a mean among none is output 1 */
} kinds[NORM_KINDS] = {
    [NORM_BATCH] = {"batch_norm", 3, 7, combine_batch, 1, 0, 2, 0},
    [NORM_BATCH_GRADIENT] = {"batch_norm_grad", 5, 9, combine_gradient, 3, 2, 0, 4},
    [NORM_BATCH_INFERENCE] = {"batch_norm_inference", 2, 3, combine_given, 1, 3, 2, 0},
    [NORM_LRN] = {.name = "lrn", 2, 6},
    [NORM_LRN_GRADIENT] = {.name = "lrn_grad", 3, 12, .dy = 1},
};

static struct norm_block block_of(const struct norm_params *p, const struct kernel_call *call)
{
    const struct kind *kind = &kinds[p->spec.kind];
    return (struct norm_block){.spec = p->spec,
                               .x = call->in[0].data,
                               .y = call->out[0].data,
                               .mean = kind->mean      ? call->in[kind->mean].data
                                       : kind->combine ? call->out[1].data
                                                       : NULL,
                               .bias = kind->bias ? call->in[kind->bias].data : NULL,
                               .dy = kind->dy ? call->in[kind->dy].data : NULL};
}

/* Channels [c0, c0 + n) of a block. */
static struct norm_block piece_of(const struct norm_block *whole, int64_t c0, int64_t n)
{
    struct norm_block piece = *whole;
    const float **const inputs[] = {&piece.x, &piece.dy, &piece.mean, &piece.bias};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (*inputs[i])
            *inputs[i] += c0;
    piece.y += c0;
    piece.slope += c0;
    piece.a += c0;
    piece.b += c0;
    piece.spec.c = n;
    return piece;
}

/* The block with which leaf i is summed. */
static struct norm_block leaf_of(const struct norm_params *p, const struct kernel_call *call,
                                 const struct norm_block *whole, int leaf)
{
    struct norm_block block = *whole;
    leaf_range(p, rows_of(p, call), leaf, &block.begin, &block.end);
    block.a = (float *)call->workspace + 2 * leaf * p->spec.c;
    block.b = block.a + p->spec.c;
    return block;
}

static int64_t channels_of(const struct norm_params *p, int64_t piece)
{
    return least(NORM_PIECE, p->spec.c - piece * NORM_PIECE);
}

static void sum_piece(const struct norm_params *p, const struct kernel_call *call, const struct norm_block *whole,
                      int64_t i, int64_t first_leaf, int64_t end_leaf)
{
    for (int64_t leaf = first_leaf; leaf < end_leaf; leaf++) {
        const struct norm_block all = leaf_of(p, call, whole, (int)leaf),
                                piece = piece_of(&all, i * NORM_PIECE, channels_of(p, i));
        p->leaf(&piece);
    }
}

static void write_piece(const struct norm_params *p, const struct norm_block *whole, int64_t i, int64_t begin,
                        int64_t end)
{
    struct norm_block piece = piece_of(whole, i * NORM_PIECE, channels_of(p, i));
    piece.begin = begin;
    piece.end = end;
    p->rows(&piece);
}

/* Threads have all phases of as many pieces each. Of the pieces left over, for which there are barriers between the
 * phases, each has some leaves and some rows. */
static void run_by_pieces(const struct norm_params *p, const struct kernel_call *call, const struct norm_block *whole,
                          int phase, int share)
{
    const int shares = phase ? p->parts : p->leaves;
    const int64_t own = p->pieces - p->pieces % call->width, rows = rows_of(p, call);
    int64_t begin, end, first, last;
    if (!share_together(shares, shares, call->width, share, &first, &last))
        return;
    split_range(own, call->width, share_piece(shares, call->width, share), &begin, &end);
    for (; phase == 0 && begin < end; begin++) {
        sum_piece(p, call, whole, begin, 0, p->leaves);
        kinds[p->spec.kind].combine(p, call, whole, begin * NORM_PIECE, channels_of(p, begin));
        write_piece(p, whole, begin, 0, rows);
    }
    for (int64_t i = own; i < p->pieces; i++)
        if (phase == 0)
            sum_piece(p, call, whole, i, first, last);
        else
            write_piece(p, whole, i, rows * first / shares, rows * last / shares);
}

/* Where x, y and dy take that much, ordinary stores would drive x, which is read twice, out of a cache of 32 MiB; and y
 * does not stay there either. Smaller ones are better kept for those who read y. Inference reads x once.
 * It shows in `graphi bench kernels "batch norm"`. */
static const double FAR_BYTES = 32 << 20;

/* What x, and dy, of the pieces at hand may take of a cache of 32 MiB that others use as well; pieces a thread, so that
 * all have about as many. They show in the same benchmark. */
static const double NEAR_BYTES = 12 << 20;
enum { PIECES_EACH = 4 };

/* The part of a cache's sets that pieces of rows of `ld` elements meet: few where that has a large power of two as a
 * factor. */
static double sets_met(int64_t ld)
{
    const int64_t step = ld & -ld;
    return step > NORM_PIECE ? (double)NORM_PIECE / (double)step : 1;
}

/* Several threads have shares of rows that are more alike, and do better by those where all of x, and dy, may stay in
 * the cache. The phases of a call that others join may differ in width, hence in this, but the last may go by pieces
 * only where the first one did, for as many threads: else y would be left unwritten. Both have shares for them all, and
 * the last has no fewer than the first. */
static bool by_pieces(const struct norm_params *p, const struct kernel_call *call)
{
    const int width = call->width;
    return width > 0 && width <= p->leaves && p->pieces >= PIECES_EACH * width &&
           p->piece_bytes * width <= p->near_bytes && (width == 1 || p->piece_bytes * (double)p->pieces > FAR_BYTES);
}

/* A phase that goes back over what the phase before went over: `share` of its run, counted from the run's end, where
 * the caches of a thread that had it before still hold something. Any width gives each share once. */
static int backwards(int shares, int width, int share)
{
    int64_t begin, end;
    share_run(shares, width, share, &begin, &end);
    return (int)(begin + end - 1 - share);
}

static graphi_status batch_run(const struct kernel_call *call, int phase, int share)
{
    const struct norm_params *p = call->params;
    const int64_t c = p->spec.c, rows = rows_of(p, call);
    struct norm_block block = block_of(p, call);
    block.far = p->far;
    block.step = p->step;
    block.slope = (float *)call->workspace + 2 * p->leaves * c;
    block.a = block.slope + c;
    block.b = block.a + c;
    phase += !p->leaf;
    const bool pieces = by_pieces(p, call);
    if (pieces && phase != 1) {
        run_by_pieces(p, call, &block, phase, share);
    } else if (phase == 0) {
        block = leaf_of(p, call, &block, share);
        p->leaf(&block);
    } else if (phase == 1) {
        if (pieces && call->width == 1) /* no piece is left over */
            return GRAPHI_OK;
        const int64_t c0 = (int64_t)share * COMBINE;
        kinds[p->spec.kind].combine(p, call, &block, c0, least(COMBINE, c - c0));
    } else {
        split_range(rows, p->parts, backwards(p->parts, call->width, share), &block.begin, &block.end);
        p->rows(&block);
    }
    return GRAPHI_OK;
}

static graphi_status lrn_run(const struct kernel_call *call, int phase, int share)
{
    const struct norm_params *p = call->params;
    struct norm_block block = block_of(p, call);
    if (call->workspace) {
        block.a = (float *)call->workspace + 2 * share * p->spec.c;
        block.b = block.a + p->spec.c;
    }
    split_range(rows_of(p, call), p->parts, share, &block.begin, &block.end);
    p->rows(&block);
    return GRAPHI_OK;
}

/* Rows a block: 128 KB of x and dy, 16 to 128 rows. Depends on c alone, as the rounding does. */
static int64_t block_rows(int64_t c)
{
    const int64_t rows = c > 0 ? least(128, 32768 / c) : 128;
    return rows < 16 ? 16 : rows;
}

/* Vectors of the windows that isa/lrn_run.c keeps in registers need no scratch. */
static bool lrn_scratch(const struct norm_spec *spec, enum isa isa)
{
    return spec->kind == NORM_LRN_GRADIENT && (isa == ISA_PLAIN || (spec->size != 3 && spec->size != 5));
}

graphi_status norm_bind(const struct norm_spec *spec, enum isa isa, struct kernel *kernel)
{
    const struct kind *kind = &kinds[spec->kind];
    struct norm_params *p = mem_zalloc(sizeof *p);
    if (!p)
        return fail_memory(kind->name, sizeof *p);
    const double elements = (double)spec->rows * (double)spec->c;
    const double bytes = 4 * elements * (kind->dy ? 3 : 2);
    *p = (struct norm_params){.spec = *spec,
                              .far = stores_past(spec->streaming, bytes,
                                                 (functions[isa][spec->kind][0] ? 1 : 2) * FAR_BYTES),
                              .parts = shares_for(8 * elements, spec->rows),
                              .leaf = functions[isa][spec->kind][0],
                              .rows = functions[isa][spec->kind][1]};
    *kernel = (struct kernel){.name = kind->name,
                              .run = kind->combine ? batch_run : lrn_run,
                              .params = p,
                              .params_bytes = sizeof *p,
                              .flops = kind->flops * elements,
                              .bytes = 4 * kind->passes * elements};
    p->step = block_rows((kind->dy ? 2 : 1) * spec->c);
    p->piece_bytes = 4.0 * (double)spec->rows * NORM_PIECE * (kind->dy ? 2 : 1);
    p->near_bytes = NEAR_BYTES * sets_met(spec->ldx);
    p->pieces = p->leaf && p->far ? divide_up(spec->c, NORM_PIECE) : 0;
    if (p->leaf)
        kernel->shares[kernel->phases++] = p->leaves = shares_for(4 * elements, spec->rows);
    if (kind->combine)
        kernel->shares[kernel->phases++] = (int)divide_up(spec->c ? spec->c : 1, COMBINE);
    kernel->shares[kernel->phases++] = p->parts;
    if (kind->combine)
        kernel->workspace = sizeof(float) * (size_t)((2 * p->leaves + kind->vectors) * spec->c);
    else if (lrn_scratch(spec, isa))
        kernel->workspace = sizeof(float) * (size_t)(2 * p->parts * spec->c);
    return GRAPHI_OK;
}
