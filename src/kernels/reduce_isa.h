/* SPDX-License-Identifier: Apache-2.0 */
/* Between reduce.c and isa/reduce_run.c: the inner loops, indexed by REDUCE_SUM, REDUCE_MAX and REDUCE_SUM_SQUARES.
 * What the sums of programs must know to give the same bits; sums of arrays, for kernels with parts to add. */
#ifndef KERNELS_REDUCE_ISA_H
#define KERNELS_REDUCE_ISA_H

#include "kernels/reduce.h"

struct reduce_loops {
    float (*run[REDUCE_OPS])(const float *x, int64_t n);                            /* n contiguous elements to one */
    float (*dot)(const float *x, const float *y, int64_t n);                       /* of n products */
    void (*rows[REDUCE_OPS])(float *sum, const float *const *x, int count, int n); /* sum[i] joined with 1 to 4 rows */
};

extern const struct reduce_loops reduce_loops_plain, reduce_loops_avx2, reduce_loops_avx512;

const struct reduce_loops *reduce_loops_of(enum isa isa); /* reduce.c */

/* Elements [begin, end) of the sum of `count` parts, `stride` elements apart, in their order. sum: parts, or apart. */
void reduce_parts(const struct reduce_loops *loops, const float *parts, int64_t stride, int64_t count, int64_t begin,
                  int64_t end, float *sum);

/* How a rows x cols matrix, of more than one column, is summed over its rows: leaves in order, in each groups of
 * REDUCE_GROUP rows, in each the rows by fours. The last leaves may be short or empty. */
enum { REDUCE_GROUP = 64, REDUCE_PIECE = 4096 };
struct reduce_leaves {
    int64_t count, rows;
};
struct reduce_leaves reduce_leaves_of(int64_t rows, int64_t cols);

/* How `count` contiguous elements become one: pieces of REDUCE_PIECE, in each leaf groups of REDUCE_GROUP of them. The
 * last leaves may be short or empty. */
struct reduce_whole {
    int64_t pieces, leaves, leaf_pieces;
};
struct reduce_whole reduce_whole_of(int64_t count);

#endif
