/* SPDX-License-Identifier: Apache-2.0 */
/* What describes a matrix product. */
#ifndef KERNELS_GEMM_SPEC_H
#define KERNELS_GEMM_SPEC_H

#include "kernels/epilogue.h"
#include "kernels/kernel.h"

enum { GEMM_MAX_PAIRS = 512, GEMM_MAX_LEADS = GRAPHI_MAX_RANK - 2 };

/* Logical shapes: op(A_p) is m x k_p, op(B_p) is k_p x n, C is m x n.
 * trans_a: A_p is stored k x m; trans_b: B_p is stored n x k. Leading dimensions in elements.
 * packed_b: B_p is stored as gemm_pack_bind left it.
 * leads: a batch of independent products over so many dimensions of sizes lead[] (0: one product). Each operand has a
 * stride for each of them, in elements; 0 repeats its matrix, which is read where it lies. bounded: dimension 0 of an
 * A_p is a bound, and its rows at call time decide. That is the first of the leads when there are any, else k_p with
 * trans_a (a weight gradient over the rows there are, of each pair for itself; not with packed_b), else m (taken from
 * A_0). base: a product begun elsewhere goes on here, and has the bits of one that was not interrupted. */
struct gemm_spec {
    int64_t m, n;
    int pairs;
    const int64_t *k, *lda, *ldb; /* one per pair */
    int64_t ldc;
    int leads; /* pairs == 1 only */
    int64_t lead[GEMM_MAX_LEADS], stride_a[GEMM_MAX_LEADS], stride_b[GEMM_MAX_LEADS], stride_c[GEMM_MAX_LEADS];
    bool trans_a, trans_b, packed_b, bounded;
    bool base;            /* the sums begin with a further m x n matrix, not 0; leads == 0 only */
    int64_t ld_base;
    bool batch_rows_of_b; /* with a bounded batch: B's rows tell, since A's do not */
    int threads, cores;   /* most of a call, and of the machine; 0: not known. Size workspace and tiles, no result */
    int64_t rows_per_row; /* matrix rows (or products) that one row of the bounded dimension stands for; 0: 1 */
    graphi_dtype
        multiplicands; /* F32, or BF16: A and B are float32 in memory (a packed B is BF16) and rounded on the way */

    /* On m x n, or on all rows of a batch, whose C must be one matrix then. Its inputs are the kernel's after the
     * matrices; output 0 is C, outputs 1.. are further outputs. */
    struct epilogue_spec epilogue;
};

#endif
