/* SPDX-License-Identifier: Apache-2.0 */
/* How the right-hand operand of a product is stored for the micro-kernel, and how operands become pairs of bfloat16.
 *
 * Packed op(B) (k x n): panels of `panel_width(n)` columns, one after another; a panel holds its k rows densely (the
 * last panel may be narrower, its rows are then shorter). So a panel streams through the caches and power-of-two
 * leading dimensions do no harm. With bfloat16, one element is the pair (row 2i, row 2i+1), an odd k is filled up with
 * zero, and the count is in 2-byte values. */
#ifndef KERNELS_PACK_H
#define KERNELS_PACK_H

#include "kernels/kernel.h"

enum { PANEL_MAX = 64 };

int panel_width(int64_t n);
static inline int64_t panel_count(int64_t n)
{
    return divide_up(n, panel_width(n));
}

/* Rows of elements: k, or pairs of k. */
static inline int64_t pair_rows(int64_t k, bool pairs)
{
    return pairs ? (k + 1) / 2 : k;
}

/* Round to nearest, ties to even; NaN stays NaN. */
uint16_t bf16_round(float value);

/* Rounding to pairs (isa/pairs.c); every instruction set gives the same bits. */
struct pair_functions {
    void (*interleave)(const float *low, const float *high, int64_t count, uint32_t *out); /* (low[i], high[i]) */
    void (*single)(const float *low, int64_t count, uint32_t *out);                        /* (low[i], 0) */
    void (*neighbours)(const float *source, int64_t count, uint32_t *out); /* (source[2i], source[2i+1]), then 0 */
    void (*join)(const uint16_t *low, const uint16_t *high, int64_t count,
                 uint32_t *out); /* of numbers that are rounded already */
    bool (*finite)(const uint32_t *pairs, int64_t count); /* no NaN, no infinity */
};
const struct pair_functions *pair_functions(enum isa isa);

/* Packs one k x width block of op(B) whose element (r, c) is source[r * ld + c], or source[c * ld + r] when `trans`,
 * into dense rows of `width` elements at `target`: floats, or uint32_t pairs that `round` makes (NULL: floats). */
void pack_block(const float *source, int64_t ld, bool trans, int64_t k, int width, const struct pair_functions *round,
                void *target);

/* The block as it was: pack_block without pairs, undone. */
void unpack_block(const float *packed, int64_t ld, bool trans, int64_t k, int width, float *source);

/* Rows of A (m x k, contiguous in k) as pairs along k: target[r * target_ld + i]. */
void pack_row_pairs(const float *source, int64_t ld, int64_t m, int64_t k, const struct pair_functions *round,
                    uint32_t *target, int64_t target_ld);

/* Packing of op(B) into the blocks the driver reads, from sources side by side, each k x part: op(B) is k x (sources *
 * part). `trans`: they are stored part x k. More than one need a part that is a multiple of 64 (UNSUPPORTED otherwise),
 * and all have the leading dimension `ld`. Kernel inputs: the sources. gemm_packed_count: elements of the result. */
int64_t gemm_packed_count(int64_t k, int64_t n, graphi_dtype dtype);
graphi_status gemm_pack_bind(int sources, int64_t k, int64_t part, int64_t ld, bool trans, graphi_dtype packed,
                             enum isa isa, struct kernel *kernel);

#endif
