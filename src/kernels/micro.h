/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel below every product and convolution: one tile of C, kept in registers block by block, over a list of
 * segments that each add op(A_i)[m x k_i] * B_i[k_i x n].
 *
 * A is read one element at a time (broadcast), B and C in rows. So A may be transposed, strided, or given row by row
 * (`rows`: one pointer a row and segment, as a convolution needs at borders), at the same speed. The kernel reads nothing
 * but the elements it multiplies, and each element of C is summed in the order of segments and k, whatever m and n are:
 * results do not depend on how C was cut into tiles.
 *
 * An element is a float, or a pair of bfloat16 (k, k+1) when `pairs` is set: then A, B, k and strides count pairs. */
#ifndef KERNELS_MICRO_H
#define KERNELS_MICRO_H

#include "kernels/kernel.h"

struct micro_call {
    int m, n;             /* of the tile; 0 does nothing */
    int64_t count;        /* segments; 0 with !accumulate clears C */
    const void *const *a; /* [count]: A_i; with `rows`: [count * m], row r of segment i at a[i * m + r] */
    const void *const *b; /* [count] */
    const int32_t *k;     /* [count], or NULL: every segment has `k_all` steps */
    int64_t k_all;
    int64_t row_stride, step_stride; /* of A in elements; row_stride unused with `rows` */
    int64_t ldb, ldc;
    float *c;
    bool rows, accumulate; /* accumulate: C += , else C = */
};

typedef void (*micro_function)(const struct micro_call *call);

/* The kernel for an instruction set (any is accepted; the machine must have it to run it). */
micro_function micro_kernel(enum isa isa, bool pairs);

#endif
