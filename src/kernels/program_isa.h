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

#define PROGRAM_RUN(isa)                                                                                               \
    void program_run_##isa(const struct program_code *code, const struct program_operand *inputs,                      \
                           const struct program_operand *outputs, int64_t rows, int64_t cols);
PROGRAM_RUN(plain)
PROGRAM_RUN(avx2)
PROGRAM_RUN(avx512)
PROGRAM_RUN(bf16)

#endif
