/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of a product as the micro-kernel reads them (gemm_internal.h).
 *
 * B is read as it is, or packed (pack.h): by a node of its own (`packed_b`), or here when it is transposed (the
 * micro-kernel needs rows of B): in a first phase, or, where a panel meets one tile only, just before that tile, and
 * stays in the caches. With bfloat16 the first phase also rounds A, a block of rows at a time. A matrix that a batch
 * repeats is prepared once.
 *
 * Usual size: B of 512 x 512, 8 panels; with bfloat16 also A of 64 x 512, 1 block. */
#include "kernels/gemm_internal.h"

/* Rounds one block of rows of op(A). */
static void convert_unit(const struct gemm *g, const struct kernel_call *call, int64_t unit)
{
    struct gemm_extent extent = gemm_extent_of(g, call);
    int64_t block = unit % gemm_a_blocks(g);
    int pair = (int)(unit / gemm_a_blocks(g) % g->pair_count);
    int64_t copy = unit / gemm_a_blocks(g) / g->pair_count, batch = batch_first_reader(&g->batch, &g->batch.a, copy);
    int64_t first = block * GEMM_CONVERT_ROWS;
    int64_t rows = least(extent.m - first, GEMM_CONVERT_ROWS);
    if (rows <= 0 || batch >= extent.batch)
        return;
    const struct gemm_pair *p = &g->pair[pair];
    int64_t k = gemm_k_of(g, call, pair);
    const float *a = (const float *)call->in[2 * pair].data + batch_along(&g->batch, g->batch.a.stride, batch);
    char *target = (char *)call->workspace + p->a_at + (size_t)copy * g->batch.a.bytes;
    if (!g->spec.trans_a)
        pack_row_pairs(a + first * p->lda, p->lda, rows, k, g->round,
                       (uint32_t *)target + first * pair_rows(k, true), pair_rows(k, true));
    else /* k x m: pairs of rows; each block of columns dense by itself */
        pack_block(a + first, p->lda, false, k, (int)rows, g->round, (uint32_t *)target + first * pair_rows(k, true));
}

const float *gemm_panel_source(const struct gemm *g, const struct kernel_call *call, int64_t batch, int64_t col,
                               int pair)
{
    return (const float *)call->in[2 * pair + 1].data + batch_along(&g->batch, g->batch.b.stride, batch) +
           col * (g->spec.trans_b ? g->pair[pair].ldb : 1);
}

void gemm_pack_panel(const struct gemm *g, const struct kernel_call *call, int64_t batch, int64_t col, int pair,
                     char *target)
{
    pack_block(gemm_panel_source(g, call, batch, col, pair), g->pair[pair].ldb, g->spec.trans_b,
               gemm_k_of(g, call, pair), (int)least(g->spec.n - col, g->width), g->round, target);
}

/* Packs one panel of op(B). */
static void pack_unit(const struct gemm *g, const struct kernel_call *call, int64_t unit)
{
    int64_t panel = unit % g->panels;
    int pair = (int)(unit / g->panels % g->pair_count);
    int64_t copy = unit / g->panels / g->pair_count, batch = batch_first_reader(&g->batch, &g->batch.b, copy);
    if (batch >= gemm_extent_of(g, call).batch)
        return;
    const struct gemm_pair *p = &g->pair[pair];
    const int64_t first = panel * g->width;
    char *target = (char *)call->workspace + p->b_at + (size_t)copy * g->batch.b.bytes;
    gemm_pack_panel(g, call, batch, first, pair, target + 4 * first * pair_rows(gemm_k_of(g, call, pair), g->round));
}

void gemm_prepare_share(const struct gemm *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    split_range(g->convert_units + g->pack_units, g->prepare_shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        if (unit < g->convert_units)
            convert_unit(g, call, unit);
        else
            pack_unit(g, call, unit - g->convert_units);
    }
}
