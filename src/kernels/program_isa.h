/* SPDX-License-Identifier: Apache-2.0 */
/* Between program.c, which prepares programs, isa/program_run.c, which runs them, and the two files that make kernels
 * of them. */
#ifndef KERNELS_PROGRAM_ISA_H
#define KERNELS_PROGRAM_ISA_H

#include "kernels/program.h"

enum {
    PROGRAM_SCRATCH_GOAL = 8192, /* floats that all slots of a block take, so that they stay in L1 */
    PROGRAM_BLOCK_MIN = 128,
    PROGRAM_SCRATCH = PROGRAM_BLOCK_MIN * PROGRAM_MAX_VALUES,
};

static inline enum program_broadcast program_broadcast_of(int64_t row_stride, int64_t col_stride)
{
    if (col_stride)
        return row_stride ? PROGRAM_FULL : PROGRAM_ROW;
    return row_stride ? PROGRAM_COLUMN : PROGRAM_SCALAR;
}

/* Several instructions as one step, the results between them in registers: programs are bound by the loads and stores
 * of their steps. X(NAME, arity, expression), of the same roundings as the instructions one by one. They are named
 * after the inner and the outer step, which may be such a step itself; R: the inner result is subtracted. ROUNDED keeps
 * a product from being contracted with the sum around it. */
#define PROGRAM_FUSED_LIST(X)                                                                                          \
    X(ADD_ADD, 3, (A + B) + C)                                                                                         \
    X(ADD_ADD_ADD, 4, ((A + B) + C) + D)                                                                               \
    X(ADD_ADD_ADD_ADD, 5, (((A + B) + C) + D) + E)                                                                     \
    X(ADD_SUB, 3, (A + B) - C)                                                                                         \
    X(ADD_RSUB, 3, C - (A + B))                                                                                        \
    X(ADD_MUL, 3, (A + B) * C)                                                                                         \
    X(SUB_ADD, 3, (A - B) + C)                                                                                         \
    X(SUB_SUB, 3, (A - B) - C)                                                                                         \
    X(SUB_RSUB, 3, C - (A - B))                                                                                        \
    X(SUB_MUL, 3, (A - B) * C)                                                                                         \
    X(MUL_ADD, 3, ROUNDED(A *B) + C)                                                                                   \
    X(MUL_SUB, 3, ROUNDED(A *B) - C)                                                                                   \
    X(MUL_RSUB, 3, C - ROUNDED(A * B))                                                                                 \
    X(MUL_MUL, 3, (A * B) * C)                                                                                         \
    X(MUL_DIV, 3, (A * B) / C)                                                                                         \
    X(MUL_MUL_ADD, 4, ROUNDED(A *B) + ROUNDED(C * D))                                                                  \
    X(MUL_MUL_MUL_ADD, 5, ROUNDED((A * B) * C) + ROUNDED(D * E))                                                       \
    X(ADD_SIGMOID, 2, vsigmoid(A + B))                                                                                 \
    X(ADD_TANH, 2, vtanh(A + B))                                                                                       \
    X(ADD_RELU, 2, vmax_x86(ZERO, A + B))                                                                              \
    X(FMA_RELU, 3, vmax_x86(ZERO, vfma(A, B, C)))                                                                      \
    X(FLOOR_RSUB, 2, B - vfloor(A))                                                                                    \
    X(TANH_MUL, 2, vtanh(A) * B)                                                                                       \
    X(SQRT_ADD, 2, vsqrt(A) + B)                                                                                       \
    X(OVER_ROOT, 3, C / (vsqrt(A) + B))                                                                                \
    X(OVER_ROOT_MUL_RSUB, 5, E - ROUNDED((C / (vsqrt(A) + B)) * D))                                                    \
    X(TANH_SLOPE, 3, C *(B - ROUNDED(A * A)))                                                                          \
    X(TANH_SLOPE_ADD, 4, ROUNDED(C * (B - ROUNDED(A * A))) + D)                                                        \
    X(MUL_TANH_SLOPE, 4, (A * B) * (D - ROUNDED(C * C)))                                                               \
    X(MUL_TANH_SLOPE_ADD, 5, ROUNDED((A * B) * (D - ROUNDED(C * C))) + E)                                              \
    X(SIGMOID_SLOPE, 3, C *((A - B) * B))                                                                              \
    X(MUL_SIGMOID_SLOPE, 4, (A * B) * ((C - D) * D))

enum program_fused {
    PROGRAM_FUSED_FIRST = PROGRAM_OPS - 1,
#define X(name, arity, expression) PROGRAM_##name,
    PROGRAM_FUSED_LIST(X)
#undef X
        PROGRAM_STEP_OPS
};

#define PROGRAM_RUN(isa)                                                                                               \
    void program_run_##isa(const struct program_code *code, const struct program_operand *inputs,                      \
                           const struct program_operand *outputs, int64_t rows, int64_t cols);
PROGRAM_RUN(plain)
PROGRAM_RUN(avx2)
PROGRAM_RUN(avx512)

#endif
