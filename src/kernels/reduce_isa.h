/* SPDX-License-Identifier: Apache-2.0 */
/* Between reduce.c and isa/reduce_run.c: the inner loops, indexed by REDUCE_SUM, REDUCE_MAX and REDUCE_SUM_SQUARES. */
#ifndef KERNELS_REDUCE_ISA_H
#define KERNELS_REDUCE_ISA_H

#include "kernels/reduce.h"

struct reduce_loops {
    float (*run[REDUCE_OPS])(const float *x, int64_t n);                            /* n contiguous elements to one */
    float (*dot)(const float *x, const float *y, int64_t n);                       /* of n products */
    void (*rows[REDUCE_OPS])(float *sum, const float *const *x, int count, int n); /* sum[i] joined with 1 to 4 rows */
};

extern const struct reduce_loops reduce_loops_plain, reduce_loops_avx2, reduce_loops_avx512, reduce_loops_bf16;

const struct reduce_loops *reduce_loops_of(enum isa isa); /* reduce.c */

#endif
