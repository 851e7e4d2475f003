/* SPDX-License-Identifier: Apache-2.0 */
/* The program that products and convolutions run on each tile of their result while it is in the nearest cache. The
 * result is seen as a rows x cols matrix; operands meet it as program.h says. Immutable after preparing; any thread. */
#ifndef KERNELS_EPILOGUE_H
#define KERNELS_EPILOGUE_H

#include "kernels/program.h"

/* What is asked for: input 0 of the program is the tile; its inputs 1.. meet the result by `broadcast` with rows `ld`
 * apart, its outputs 1.. have rows `output_ld` apart. The arrays start with those. */
struct epilogue_spec {
    const struct program *program; /* NULL: none */
    const enum program_broadcast *broadcast;
    const int64_t *ld, *output_ld;
};

struct epilogue {
    bool present;
    bool local; /* one result, and no operand that differs from row to row: it may run before the rows know their places
                 */
    struct program_code code;
    enum program_broadcast broadcast[PROGRAM_MAX_INPUTS];
    int64_t ld[PROGRAM_MAX_INPUTS];
    int64_t output_ld[PROGRAM_MAX_OUTPUTS];
};

/* Checks and copies. */
graphi_status epilogue_prepare(const struct epilogue_spec *spec, enum isa isa, struct epilogue *out);

/* Runs a local epilogue on the tile alone, in place: rows of `cols` columns, one after the other, for columns from
 * `col` on. */
void epilogue_run_local(const struct epilogue *epilogue, float *tile, int64_t col, int64_t rows, int64_t cols,
                        const struct kernel_array *in);

/* The products of `cols` columns from `col` on of the `rows` rows row, row + row_step, ... of the result. */
struct epilogue_tile {
    float *data;
    int64_t ld; /* its rows are so far apart */
    int64_t row, col, rows, cols, row_step;
    int64_t result_ld; /* rows of out[0] are so far apart */
};

/* Runs on a tile. in: the kernel's inputs from the first epilogue input on; out: the kernel's outputs. */
void epilogue_run(const struct epilogue *epilogue, const struct epilogue_tile *tile, const struct kernel_array *in,
                  const struct kernel_array *out);

#endif
