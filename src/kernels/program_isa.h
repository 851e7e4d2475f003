/* SPDX-License-Identifier: Apache-2.0 */
/* Between program.c, which prepares programs, and isa/program_run.c, which runs them. */
#ifndef KERNELS_PROGRAM_ISA_H
#define KERNELS_PROGRAM_ISA_H

#include "kernels/program.h"

enum {
    PROGRAM_SCRATCH_GOAL = 8192, /* floats that all slots of a block take, so that they stay in L1 */
    PROGRAM_BLOCK_MIN = 128,
    PROGRAM_SCRATCH = PROGRAM_BLOCK_MIN * PROGRAM_MAX_VALUES,
};

/* Two or three instructions as one step, the results between them in registers: programs are bound by the loads and stores of
 * their steps. X(NAME, arity, expression), of the same roundings as the instructions one by one. Pairs are named after the
 * inner and the outer instruction; R: the inner result is subtracted. ROUNDED keeps a product from
 * being contracted with the sum around it. */
#define PROGRAM_FUSED_LIST(X)                                                                                          \
    X(ADD_ADD, 3, (A + B) + C)                                                                                         \
    X(ADD_SUB, 3, (A + B) - C)                                                                                         \
    X(ADD_RSUB, 3, C - (A + B))                                                                                        \
    X(ADD_MUL, 3, (A + B) * C)                                                                                         \
    X(SUB_ADD, 3, (A - B) + C)                                                                                         \
    X(SUB_SUB, 3, (A - B) - C)                                                                                         \
    X(SUB_RSUB, 3, C - (A - B))                                                                                        \
    X(SUB_MUL, 3, (A - B) * C)                                                                                         \
    X(MUL_ADD, 3, ROUNDED(A * B) + C)                                                                                         \
    X(MUL_SUB, 3, ROUNDED(A * B) - C)                                                                                         \
    X(MUL_RSUB, 3, C - ROUNDED(A * B))                                                                                        \
    X(MUL_MUL, 3, (A * B) * C)                                                                                         \
    X(ADD_SIGMOID, 2, vsigmoid(A + B))                                                                                 \
    X(ADD_TANH, 2, vtanh(A + B))                                                                                       \
    X(ADD_RELU, 2, vmax_x86(ZERO, A + B))                                                                              \
    X(TANH_SLOPE, 3, A * (B - ROUNDED(C * C)))                                                                                  \
    X(SIGMOID_SLOPE, 3, A * ((B - C) * C))

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
PROGRAM_RUN(bf16)

#endif
