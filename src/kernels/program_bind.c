/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise kernel: a program over arrays of any rank.
 *
 * Binding merges neighbouring dimensions wherever every operand allows it. What remains is walked as regions of the
 * two innermost groups, rows x columns; in the innermost every operand is contiguous or constant. So all numpy
 * broadcasts are taken, and dense operands become one long row. Work is counted in units of one row, or of a piece of
 * a row when rows are long; a share is a range of units. All results are the same bits however it is cut. Usual size:
 * 10^4 to 10^7 elements. */
#include "kernels/program_isa.h"
#include "kernels/program_layout.h"
#include "kernels/program_sums.h"
#include "kernels/shares.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

enum { MAX_OPERANDS = PROGRAM_MAX_INPUTS + PROGRAM_MAX_OUTPUTS };

/* Elements of a row piece, at most: of the one row that dense operands are, pieces that shares can have as many of
 * each; of several rows, those of a few thousand elements are better taken whole. */
enum { ONLY_PIECE = 1 << 10, PIECE = 8 << 10 };

/* Groups of merged dimensions, outermost first; strides in elements, 0 where an operand is constant. */
struct layout {
    int groups, operands;
    bool bounded; /* the outermost group holds a bounded dimension, per_row elements of that group each */
    int64_t per_row;
    int64_t dims[GRAPHI_MAX_RANK];
    int64_t strides[MAX_OPERANDS][GRAPHI_MAX_RANK];
};

struct elementwise {
    struct program_code code; /* first: program_stream finds it there */
    struct layout layout;
};

static bool mergeable(const struct layout *layout, int64_t dim, int axis, int64_t strides[][GRAPHI_MAX_RANK])
{
    for (int k = 0; k < layout->operands; k++)
        if (layout->strides[k][layout->groups - 1] != strides[k][axis] * dim)
            return false;
    return true;
}

/* Dimension by dimension, outermost first: ones vanish, mergeable ones join the group before them. */
static void merge(const struct array_desc *out, int64_t strides[][GRAPHI_MAX_RANK], struct layout *layout)
{
    layout->per_row = 1;
    for (int i = 0; i < out->rank; i++) {
        int64_t dim = out->dims[i];
        if (dim == 1 && !(i == 0 && out->bounded))
            continue;
        bool joins = layout->groups && mergeable(layout, dim, i, strides);
        if (!joins)
            layout->groups++;
        int group = layout->groups - 1;
        layout->dims[group] = joins ? layout->dims[group] * dim : dim;
        if (out->bounded && i > 0 && group == 0)
            layout->per_row *= dim;
        for (int k = 0; k < layout->operands; k++)
            layout->strides[k][group] = strides[k][i];
    }
    layout->bounded = out->bounded;
    bool column = !layout->groups; /* nothing but ones, or a last dimension of 1 over a strided one */
    for (int k = 0; k < layout->operands && !column; k++)
        column = layout->strides[k][layout->groups - 1] > 1 || layout->strides[k][layout->groups - 1] < 0;
    if (column)
        layout->dims[layout->groups++] = 1;
}

/* Rows [first, last) of the flattened outer groups, columns [col, col + cols), in runs of the innermost row group. */
static void run_rows(const struct elementwise *work, const struct kernel_call *call, const int64_t *dims, int64_t first,
                     int64_t last, int64_t col, int64_t cols)
{
    const struct layout *layout = &work->layout;
    int inner = layout->groups - 1, inputs = work->code.program.inputs;
    struct program_operand operand[MAX_OPERANDS];
    while (first < last) {
        int64_t run = inner ? dims[inner - 1] - first % dims[inner - 1] : 1;
        run = run < last - first ? run : last - first;
        for (int k = 0; k < layout->operands; k++) {
            const int64_t *strides = layout->strides[k];
            const struct kernel_array *array = k < inputs ? &call->in[k] : &call->out[k - inputs];
            int64_t offset = col * strides[inner], rest = first;
            for (int g = inner - 1; g >= 0; g--) {
                offset += rest % dims[g] * strides[g];
                rest /= dims[g];
            }
            int64_t row_stride = inner ? strides[inner - 1] : 0;
            operand[k] =
                (struct program_operand){(float *)array->data + offset, row_stride,
                                         k < inputs ? program_broadcast_of(row_stride, strides[inner]) : PROGRAM_FULL};
        }
        program_run(&work->code, operand, operand + inputs, run, cols);
        first += run;
    }
}

static int share_count(const struct elementwise *work, int64_t elements)
{
    return shares_for((double)(elements * work->code.program.outputs) * sizeof(float), elements);
}

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct elementwise *work = call->params;
    const struct layout *layout = &work->layout;
    int64_t dims[GRAPHI_MAX_RANK] = {0}, rows = 1, bound = 1;
    for (int g = 0; g < layout->groups; g++) {
        bound *= layout->dims[g];
        dims[g] = layout->dims[g];
    }
    if (layout->bounded)
        dims[0] = call->out[0].rows * layout->per_row;
    for (int g = 0; g < layout->groups - 1; g++)
        rows *= dims[g];
    int64_t cols = dims[layout->groups - 1];
    if (rows <= 0 || cols <= 0)
        return GRAPHI_OK;
    int shares = share_count(work, bound);
    const int64_t piece = layout->groups == 1 ? ONLY_PIECE : PIECE, pieces = divide_up(cols, piece);
    int64_t begin, end;
    split_range(rows * pieces, shares, share, &begin, &end);
    if (pieces == 1) {
        run_rows(work, call, dims, begin, end, 0, cols);
        return GRAPHI_OK;
    }
    while (begin < end) { /* pieces of one row that follow each other run as one */
        int64_t row = begin / pieces, first = begin % pieces;
        int64_t last = end - row * pieces < pieces ? end - row * pieces : pieces;
        run_rows(work, call, dims, row, row + 1, first * piece, least(last * piece, cols) - first * piece);
        begin += last - first;
    }
    return GRAPHI_OK;
}

static bool same_shape(const struct array_desc *a, const struct array_desc *b)
{
    if (a->rank != b->rank || a->dtype != GRAPHI_F32 || a->bounded != b->bounded)
        return false;
    return !a->rank || !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* A result from this size on is written past the caches: it would have left them before it is read, and an ordinary
 * store reads every line first. From `graphi bench kernels streaming`, 32 MiB of L3: streaming takes 1.3 to 2.1 times
 * as long up to 2 MiB, 0.8 to 2.3 times at 8 MiB, 0.6 to 1.0 times from 32 MiB on, read right after or not, on one
 * core and on two. */
static const double STREAM_BYTES = 32 << 20;

bool program_streams(const struct array_desc *out, graphi_streaming when)
{
    return stores_past(when, (double)array_count(out) * sizeof(float), STREAM_BYTES);
}

void program_stream(struct kernel *kernel, const struct array_desc *out, graphi_streaming when)
{
    ((struct program_code *)kernel->params)->stream = program_streams(out, when);
}

graphi_status program_bind(const struct program *program, const struct array_desc *in, const struct array_desc *out,
                           enum isa isa, struct kernel *kernel)
{
    if (program->sums)
        return program_bind_sums(program, in, out, isa, kernel);
    int64_t strides[MAX_OPERANDS][GRAPHI_MAX_RANK];
    struct program_code code;
    TRY(program_prepare(program, isa, &code));
    int64_t count = array_count(out);
    double bytes = 0;
    for (int k = 0; k < program->inputs; k++) {
        if (!program_accepts(&in[k], out))
            return program_refuse("input", k, &in[k], out);
        program_strides(&in[k], out, strides[k]);
        bytes += (double)array_count(&in[k]) * sizeof(float);
    }
    for (int k = 0; k < program->outputs; k++) {
        if (!same_shape(&out[k], out) || !program_inner_accepted(out, out[k].strides, false))
            return program_refuse("output", k, &out[k], out);
        memcpy(strides[program->inputs + k], out[k].strides, sizeof strides[0]);
        bytes += (double)count * sizeof(float);
    }
    struct elementwise *work = mem_zalloc(sizeof *work);
    if (!work)
        return fail_memory("program", sizeof *work);
    work->code = code;
    work->layout.operands = program->inputs + program->outputs;
    merge(out, strides, &work->layout);
    *kernel = (struct kernel){.name = program->instructions == 1 ? program_op_text(program->code[0].op) : "program",
                              .run = run,
                              .params = work,
                              .params_bytes = sizeof *work,
                              .phases = 1,
                              .shares = {share_count(work, count)},
                              .flops = (double)code.steps * (double)count,
                              .bytes = bytes};
    return GRAPHI_OK;
}
