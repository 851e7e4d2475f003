/* SPDX-License-Identifier: Apache-2.0 */
/* The program that products and convolutions run on each tile of their result while it is in the nearest cache. The result
 * is seen as a rows x cols matrix; operands meet it as program.h says. Immutable after preparing; any thread. */
#ifndef KERNELS_EPILOGUE_H
#define KERNELS_EPILOGUE_H

#include "kernels/program.h"

struct epilogue {
    bool present;
    bool local; /* one result, and no operand that differs from row to row: it may run before the rows know their places */
    struct program_code code;
    enum program_broadcast broadcast[PROGRAM_MAX_INPUTS];
    int64_t ld[PROGRAM_MAX_INPUTS];
    int64_t output_ld[PROGRAM_MAX_OUTPUTS];
};

/* Checks and copies; program NULL: none. Arrays as in gemm_spec. */
graphi_status epilogue_prepare(const struct program *program, const enum program_broadcast *broadcast, const int64_t *ld,
                               const int64_t *output_ld, enum isa isa, struct epilogue *out);

/* Runs a local epilogue on the tile alone, in place: rows of `cols` columns, one after the other, for columns from `col` on. */
void epilogue_run_local(const struct epilogue *epilogue, float *tile, int64_t col, int64_t rows, int64_t cols,
                        const struct kernel_array *in);

/* Runs on `cols` columns from `col` on of the `rows` rows row, row + row_step, ... of the result. tile: the products,
 * rows `tile_ld` apart. in: the kernel's inputs from the first epilogue input on; out: the kernel's outputs, out[0]
 * with rows `ld` apart. */
void epilogue_run(const struct epilogue *epilogue, float *tile, int64_t tile_ld, int64_t row, int64_t col, int64_t rows,
                  int64_t cols, int64_t row_step, const struct kernel_array *in, const struct kernel_array *out, int64_t ld);

#endif
