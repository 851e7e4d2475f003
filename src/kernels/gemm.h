/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = epilogue(sum over p of op(A_p) op(B_p)), row-major, float32 (or bfloat16 multiplicands with
 * float32 accumulation), batched over leading dimensions that broadcast. One driver over the micro-kernel of
 * kernels/micro.h. Each element of C is summed in the order of pairs and of k, whatever the shape. */
#ifndef KERNELS_GEMM_H
#define KERNELS_GEMM_H

#include "kernels/gemm_spec.h"

/* Kernel inputs: A_0, B_0, A_1, B_1, ..., the base if there is one, then epilogue inputs. Outputs: C, then the further
 * outputs. */
graphi_status gemm_bind(const struct gemm_spec *spec, enum isa isa, struct kernel *kernel);

#endif
