/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = epilogue(sum over p of op(A_p) op(B_p)), row-major, float32 (or bfloat16 multiplicands with float32
 * accumulation), batched over leading dimensions. One driver over the micro-kernel of kernels/micro.h. Each element of C is
 * summed in the order of pairs and of k, whatever the shape. */
#ifndef KERNELS_GEMM_H
#define KERNELS_GEMM_H

#include "kernels/kernel.h"
#include "kernels/program.h"

enum { GEMM_MAX_PAIRS = 512 };

/* Logical shapes: op(A_p) is m x k_p, op(B_p) is k_p x n, C is m x n; `batch` independent products (1: none).
 * trans_a: A_p is stored k x m; trans_b: B_p is stored n x k. Leading dimensions in elements.
 * packed_b: B_p is stored as gemm_pack_bind left it.
 * batch strides in elements; 0 broadcasts that operand.
 * bounded: dimension 0 of A_p is a bound, and its rows at call time decide. That is the batch when batch > 1, else k_p with
 * trans_a (a weight gradient over the rows there are; not with packed_b), else m (taken from A_0). */
struct gemm_spec {
    int64_t m, n, batch;
    int pairs;
    const int64_t *k, *lda, *ldb; /* one per pair */
    int64_t ldc;
    int64_t stride_a, stride_b, stride_c; /* batch strides, pairs == 1 only */
    bool trans_a, trans_b, packed_b, bounded;
    bool batch_rows_of_b; /* with a bounded batch: B's rows tell, since A is one matrix for all */
    int64_t rows_per_row; /* matrix rows (or products) that one row of the bounded dimension stands for; 0: 1 */
    graphi_dtype multiplicands; /* F32, or BF16: A and B are float32 in memory (a packed B is BF16) and rounded on the way */

    /* Epilogue: NULL for none. Input 0 of the program is the product tile; inputs 1.. are the kernel's inputs after the 2 *
     * pairs matrices (each FULL, ROW, COLUMN or SCALAR against m x n, or (batch * m) x n when stride_c = m * ldc). Output 0 is C; outputs 1.. are further outputs. */
    const struct program *epilogue;
    const enum program_broadcast *epilogue_broadcast; /* of program inputs 1.. */
    const int64_t *epilogue_ld;
    const int64_t *output_ld; /* of outputs 1.. */
};

/* Kernel inputs: A_0, B_0, A_1, B_1, ..., then epilogue inputs. Outputs: C, then the further outputs. */
graphi_status gemm_bind(const struct gemm_spec *spec, enum isa isa, struct kernel *kernel);

/* Packing of op(B) (k x n) into the blocks the driver reads; `trans`: the source is stored n x k. */
int64_t gemm_packed_count(int64_t k, int64_t n, graphi_dtype dtype);
graphi_status gemm_pack_bind(int64_t k, int64_t n, int64_t ld, bool trans, graphi_dtype packed, enum isa isa,
                             struct kernel *kernel);
/* The same of several sources side by side, each k x part: op(B) is k x (sources * part). More than one need a part that is a
 * multiple of 64 (UNSUPPORTED otherwise), and all have the leading dimension `ld`. Kernel inputs: the sources. */
graphi_status gemm_pack_beside_bind(int sources, int64_t k, int64_t part, int64_t ld, bool trans, graphi_dtype packed,
                                    enum isa isa, struct kernel *kernel);

#endif
