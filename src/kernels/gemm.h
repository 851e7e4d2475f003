/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = epilogue(sum over p of op(A_p) op(B_p)), row-major, float32 (or bfloat16 multiplicands with
 * float32 accumulation), batched over leading dimensions that broadcast. One driver over the micro-kernel of
 * kernels/micro.h. Each element of C is summed in the order of pairs and of k, whatever the shape. */
#ifndef KERNELS_GEMM_H
#define KERNELS_GEMM_H

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

/* Kernel inputs: A_0, B_0, A_1, B_1, ..., the base if there is one, then epilogue inputs. Outputs: C, then the further
 * outputs. */
graphi_status gemm_bind(const struct gemm_spec *spec, enum isa isa, struct kernel *kernel);

/* Packing of op(B) into the blocks the driver reads, from sources side by side, each k x part: op(B) is k x (sources *
 * part). `trans`: they are stored part x k. More than one need a part that is a multiple of 64 (UNSUPPORTED otherwise),
 * and all have the leading dimension `ld`. Kernel inputs: the sources. gemm_packed_count: elements of the result. */
int64_t gemm_packed_count(int64_t k, int64_t n, graphi_dtype dtype);
graphi_status gemm_pack_bind(int sources, int64_t k, int64_t part, int64_t ld, bool trans, graphi_dtype packed,
                             enum isa isa, struct kernel *kernel);

#endif
