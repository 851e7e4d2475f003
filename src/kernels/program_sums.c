/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a program with sums: a matrix of results is made, and some of them are only added up over its rows as
 * they come.
 *
 * Sums have the bits of reduce.c, which made the same matrix from memory: so the leaves are its leaves. A unit of work
 * is a leaf of a few columns; it leaves its sums in the workspace, where the second phase adds the leaves up in order.
 * What a thread has of a leaf it does as one: pieces of many rows each begin a page anew, in every array. Results of
 * the second phase may thus lie in what the first reads. Never bounded. Usual size: 64 x 128 to 64 x 1024, 3 sums
 * beside 6 stored results (the backward pass of a PhasedLSTM's cell). */
#include "kernels/program_sums.h"
#include "kernels/program_isa.h"
#include "kernels/program_layout.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

enum { MAX_OPERANDS = PROGRAM_MAX_INPUTS + PROGRAM_MAX_OUTPUTS, COLUMNS = 32, WIDEST = 512 /* together */ };

struct summing {
    struct program_code code; /* first: program_stream finds it there */
    int64_t rows, cols, width, blocks; /* width: most columns together; blocks: of COLUMNS each */
    struct reduce_leaves leaves;
    int64_t strides[MAX_OPERANDS][2]; /* of inputs, then of stored results */
    int shares;
};

/* The operands from (row, col) on; sums go to `sum`, a block apart. */
static void place(const struct summing *work, const struct kernel_call *call, int64_t row, int64_t col, float *sum,
                  struct program_operand *operand)
{
    int inputs = work->code.program.inputs, stored = work->code.program.outputs - work->code.program.sums;
    for (int k = 0; k < inputs + stored; k++) {
        const struct kernel_array *array = k < inputs ? &call->in[k] : &call->out[k - inputs];
        const int64_t *strides = work->strides[k];
        operand[k] = (struct program_operand){(float *)array->data + row * strides[0] + col * strides[1], strides[0],
                                              k < inputs ? program_broadcast_of(strides[0], strides[1]) : PROGRAM_FULL};
    }
    for (int s = 0; s < work->code.program.sums; s++)
        operand[inputs + stored + s] = (struct program_operand){sum + s * work->width, 0, PROGRAM_ROW};
}

static void run_columns(const struct summing *work, const struct kernel_call *call, int64_t leaf, int64_t col,
                        int64_t cols)
{
    int64_t end = least((leaf + 1) * work->leaves.rows, work->rows);
    int inputs = work->code.program.inputs, sums = work->code.program.sums;
    float group[PROGRAM_MAX_OUTPUTS * WIDEST], *total = (float *)call->workspace + leaf * work->cols + col;
    struct program_operand operand[MAX_OPERANDS];
    for (int s = 0; s < sums; s++)
        memset(total + s * work->leaves.count * work->cols, 0, (size_t)cols * sizeof *total);
    for (int64_t row = leaf * work->leaves.rows; row < end; row += REDUCE_GROUP) {
        memset(group, 0, (size_t)(sums * work->width) * sizeof *group);
        place(work, call, row, col, group, operand);
        program_run(&work->code, operand, operand + inputs, least(REDUCE_GROUP, end - row), cols);
        for (int s = 0; s < sums; s++)
            for (int64_t c = 0; c < cols; c++)
                total[s * work->leaves.count * work->cols + c] += group[s * work->width + c];
    }
}

static void combine(const struct summing *work, const struct kernel_call *call)
{
    int sums = work->code.program.sums, stored = work->code.program.outputs - sums;
    for (int s = 0; s < sums; s++) {
        const float *leaves = (const float *)call->workspace + s * work->leaves.count * work->cols;
        reduce_parts(reduce_loops_of(work->code.isa), leaves, work->cols, work->leaves.count, 0, work->cols,
                     call->out[stored + s].data);
    }
}

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct summing *work = call->params;
    if (phase) {
        combine(work, call);
        return GRAPHI_OK;
    }
    int64_t begin, end;
    if (!share_together(work->blocks * work->leaves.count, work->shares, call->width, share, &begin, &end))
        return GRAPHI_OK;
    while (begin < end) {
        int64_t leaf = begin / work->blocks, col = begin % work->blocks * COLUMNS;
        int64_t blocks = least(least(work->blocks - begin % work->blocks, end - begin), WIDEST / COLUMNS);
        run_columns(work, call, leaf, col, least(blocks * COLUMNS, work->cols - col));
        begin += blocks;
    }
    return GRAPHI_OK;
}

/* The matrix that all inputs broadcast to. */
static struct array_desc matrix_of(int inputs, const struct array_desc *in)
{
    int64_t dims[2] = {1, 1};
    for (int k = 0; k < inputs; k++)
        for (int i = 0; i < in[k].rank && i < 2; i++) {
            int64_t dim = in[k].dims[in[k].rank - 1 - i];
            dims[1 - i] = dim == 1 ? dims[1 - i] : dim;
        }
    return array_dense(GRAPHI_F32, 2, dims);
}

static bool result_fits(const struct array_desc *out, bool sum, const struct array_desc *matrix)
{
    if (out->dtype != GRAPHI_F32 || out->bounded)
        return false;
    if (sum)
        return array_is_dense(out) && out->rank == 1 && out->dims[0] == matrix->dims[1];
    return out->rank == 2 && out->dims[0] == matrix->dims[0] && out->dims[1] == matrix->dims[1] && out->strides[1] == 1;
}

static graphi_status check(const struct program *program, const struct array_desc *in, const struct array_desc *out,
                           const struct array_desc *matrix)
{
    for (int k = 0; k < program->inputs; k++)
        if (in[k].bounded || !program_accepts(&in[k], matrix))
            return program_refuse("input", k, &in[k], matrix);
    for (int k = 0; k < program->outputs; k++)
        if (!result_fits(&out[k], k >= program->outputs - program->sums, matrix))
            return program_refuse("output", k, &out[k], matrix);
    if (matrix->dims[0] > 1 && matrix->dims[1] > 1)
        return GRAPHI_OK;
    return fail(GRAPHI_UNSUPPORTED, "program",
                "found sums over the rows of a %lld x %lld matrix, expected more of both", (long long)matrix->dims[0],
                (long long)matrix->dims[1]);
}

static void cut(struct summing *work)
{
    int64_t stored = work->code.program.outputs - work->code.program.sums;
    work->leaves = reduce_leaves_of(work->rows, work->cols);
    work->width = least(work->cols, WIDEST);
    work->blocks = divide_up(work->cols, COLUMNS);
    work->shares = shares_for((double)(work->rows * work->cols * (stored + 1)) * sizeof(float),
                              work->blocks * work->leaves.count);
}

graphi_status program_bind_sums(const struct program *program, const struct array_desc *in,
                                const struct array_desc *out, enum isa isa, struct kernel *kernel)
{
    struct program_code code;
    TRY(program_prepare(program, isa, &code));
    const struct array_desc matrix = matrix_of(program->inputs, in);
    TRY(check(program, in, out, &matrix));
    struct summing *work = mem_zalloc(sizeof *work);
    if (!work)
        return fail_memory("program", sizeof *work);
    work->code = code;
    work->rows = matrix.dims[0];
    work->cols = matrix.dims[1];
    double bytes = 0, count = (double)array_count(&matrix), sums = program->sums;
    for (int k = 0; k < program->inputs; k++) {
        program_strides(&in[k], &matrix, work->strides[k]);
        bytes += (double)array_count(&in[k]) * sizeof(float);
    }
    for (int k = 0; k < program->outputs; k++) {
        bytes += (double)array_count(&out[k]) * sizeof(float);
        if (k < program->outputs - program->sums)
            memcpy(work->strides[program->inputs + k], out[k].strides, sizeof work->strides[0]);
    }
    cut(work);
    *kernel = (struct kernel){.name = "program",
                              .run = run,
                              .params = work,
                              .params_bytes = sizeof *work,
                              .phases = 2,
                              .shares = {work->shares, 1},
                              .workspace = (size_t)(program->sums * work->leaves.count * work->cols) * sizeof(float),
                              .flops = ((double)work->code.steps + sums) * count,
                              .bytes = bytes};
    return GRAPHI_OK;
}
