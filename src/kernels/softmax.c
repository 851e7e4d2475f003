/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its gradient, and cross-entropy. A share is a range of rows; the loss adds up its rows in leaves whose size
 * follows from the bound of the shape, then the leaves in order. Usual sizes: 64 x 1000 (images), 1280 x 10000
 * (language models). */
#include "kernels/softmax.h"

#include "base/status.h"
#include "kernels/each_isa.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"
#include "kernels/softmax_isa.h"

enum { MAX_ARRAYS = 3 };

/* A gradient that takes that much together with what it reads leaves a cache of 32 MiB before it is read again. */
static const double FAR_BYTES = 40 << 20;

struct rows {
    const struct softmax_loops *loops;
    float (*max)(const float *x, int64_t n);
    bool logarithm, bounded;
    bool past;                   /* the caches: where a gradient is written */
    int64_t rows, per_row, cols; /* per_row: matrix rows for each index of dimension 0 */
    int64_t ld[MAX_ARRAYS];      /* of the matrices, in the order of the arguments; the output last */
    int leaves;
};

static int64_t actual_rows(const struct rows *work, const struct kernel_array *first)
{
    return work->bounded ? first->rows * work->per_row : work->rows;
}

static void row_range(const struct rows *work, const struct kernel_call *call, int share, int64_t *begin, int64_t *end)
{
    split_range(actual_rows(work, &call->in[0]), work->leaves, share, begin, end);
}

static graphi_status softmax_run(const struct kernel_call *call, int phase, int share)
{
    const struct rows *work = call->params;
    int64_t r, end;
    for (row_range(work, call, share, &r, &end); r < end; r++) {
        const float *x = (const float *)call->in[0].data + r * work->ld[0];
        float *y = (float *)call->out[0].data + r * work->ld[1], max = work->max(x, work->cols);
        if (work->logarithm) {
            float sum = work->loops->exp_sum(x, max, work->cols);
            work->loops->shift(y, x, max, work->cols);
            work->loops->shift(y, y, work->loops->log(sum), work->cols);
        } else {
            float sum = work->loops->exp_shift(y, x, max, work->cols);
            work->loops->scale(y, y, 1 / sum, work->cols);
        }
    }
    return GRAPHI_OK;
}

static graphi_status softmax_gradient_run(const struct kernel_call *call, int phase, int share)
{
    const struct rows *work = call->params;
    const void *result = call->out[0].data; /* lines of an argument that it is written over are in the caches */
    const bool past = work->past && result != call->in[0].data && result != call->in[1].data;
    int64_t r, end, n = work->cols;
    for (row_range(work, call, share, &r, &end); r < end; r++) {
        const float *y = (const float *)call->in[0].data + r * work->ld[0];
        const float *dy = (const float *)call->in[1].data + r * work->ld[1];
        float *dx = (float *)call->out[0].data + r * work->ld[2];
        if (work->logarithm) {
            work->loops->log_gradient(dx, y, dy, work->loops->sum(dy, n), n, past);
        } else {
            work->loops->gradient(dx, y, dy, work->loops->dot(y, dy, n), n, past);
        }
    }
    return GRAPHI_OK;
}

static graphi_status label_of(const struct rows *work, const struct kernel_call *call, int64_t row, int32_t *label)
{
    *label = ((const int32_t *)call->in[1].data)[row];
    if (*label >= 0 && *label < work->cols)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "softmax_cross_entropy", "found label %d in row %lld, expected 0 to %lld", *label,
                (long long)row, (long long)work->cols - 1);
}

static graphi_status cross_entropy_run(const struct kernel_call *call, int phase, int share)
{
    const struct rows *work = call->params;
    double *leaf = call->workspace, sum = 0;
    int64_t r, end, count = actual_rows(work, &call->in[0]);
    if (phase == 1) {
        for (int i = 0; i < work->leaves; i++)
            sum += leaf[i];
        *(float *)call->out[0].data = count ? (float)(sum / (double)count) : 0;
        return GRAPHI_OK;
    }
    split_range(work->rows, work->leaves, share, &r, &end);
    for (end = end < count ? end : count; r < end; r++) {
        int32_t label;
        TRY(label_of(work, call, r, &label));
        const float *x = (const float *)call->in[0].data + r * work->ld[0];
        float max = work->max(x, work->cols), total = work->loops->exp_sum(x, max, work->cols);
        sum += (double)work->loops->log(total) - ((double)x[label] - (double)max);
    }
    leaf[share] = sum;
    return GRAPHI_OK;
}

static graphi_status cross_entropy_gradient_run(const struct kernel_call *call, int phase, int share)
{
    const struct rows *work = call->params;
    int64_t r, end, count = actual_rows(work, &call->in[0]);
    float each = count ? *(const float *)call->in[2].data / (float)count : 0;
    for (row_range(work, call, share, &r, &end); r < end; r++) {
        int32_t label;
        TRY(label_of(work, call, r, &label));
        const float *x = (const float *)call->in[0].data + r * work->ld[0];
        float *dx = (float *)call->out[0].data + r * work->ld[1], max = work->max(x, work->cols);
        float sum = work->loops->exp_shift(dx, x, max, work->cols);
        work->loops->scale(dx, dx, each / sum, work->cols);
        dx[label] -= each;
    }
    return GRAPHI_OK;
}

/* What all four share: `arrays` float32 matrices of one shape; leaves by the bytes of one, whose exponentials take as
 * long as the rest of the traffic. */
static graphi_status make(const char *name, int arrays, const struct array_desc *const *array, bool logarithm,
                          enum isa isa, kernel_function run, int passes, struct kernel *kernel)
{
#define ENTRY(isa) &softmax_loops_##isa,
    static const struct softmax_loops *const softmax_loops[] = {EACH_ISA(ENTRY)};
    struct rows draft = {.loops = softmax_loops[isa],
                         .max = reduce_loops_of(isa)->run[REDUCE_MAX],
                         .logarithm = logarithm,
                         .bounded = array[0]->bounded};
    for (int i = 0; i < arrays; i++) {
        int64_t rows, cols;
        if (array[i]->dtype != GRAPHI_F32 || array[i]->rank < 1 ||
            !array_as_matrix(array[i], &rows, &cols, &draft.ld[i]))
            return fail(GRAPHI_UNSUPPORTED, name, "found array %d of another type or layout, expected float32 rows", i);
        if (i && (rows != draft.rows || cols != draft.cols || array[i]->bounded != draft.bounded))
            return fail(GRAPHI_INVALID, name, "found array %d of %lld x %lld, expected %lld x %lld", i, (long long)rows,
                        (long long)cols, (long long)draft.rows, (long long)draft.cols);
        draft.rows = rows;
        draft.cols = cols;
    }
    if (draft.bounded && array[0]->rank < 2)
        return fail(GRAPHI_UNSUPPORTED, name, "found a bounded last dimension, expected a fixed one");
    draft.per_row = array[0]->dims[0] ? draft.rows / array[0]->dims[0] : 0;
    double elements = (double)draft.rows * (double)draft.cols;
    draft.leaves = shares_for(elements * sizeof(float), draft.rows);
    struct kernel like = {.name = name, .run = run, .shares = {draft.leaves}, .flops = passes * elements,
                          .bytes = arrays * elements * sizeof(float)};
    return kernel_make(like, &draft, sizeof draft, kernel);
}

graphi_status softmax_bind(bool logarithm, const struct array_desc *x, const struct array_desc *y, enum isa isa,
                           struct kernel *kernel)
{
    const struct array_desc *const arrays[] = {x, y};
    return make(logarithm ? "log_softmax" : "softmax", 2, arrays, logarithm, isa, softmax_run, 5, kernel);
}

graphi_status softmax_gradient_bind(bool logarithm, const struct array_desc *y, const struct array_desc *dy,
                                    const struct array_desc *dx, graphi_streaming streaming, enum isa isa,
                                    struct kernel *kernel)
{
    const struct array_desc *const arrays[] = {y, dy, dx};
    TRY(make(logarithm ? "log_softmax_gradient" : "softmax_gradient", 3, arrays, logarithm, isa, softmax_gradient_run,
             4, kernel));
    ((struct rows *)kernel->params)->past = stores_past(streaming, kernel->bytes, FAR_BYTES);
    return GRAPHI_OK;
}

static graphi_status check_labels(const struct array_desc *logits, const struct array_desc *labels)
{
    bool fits = labels->dtype == GRAPHI_I32 && labels->rank == logits->rank - 1 && labels->bounded == logits->bounded;
    for (int i = 0; fits && i < labels->rank; i++)
        fits = labels->dims[i] == logits->dims[i];
    if (!fits)
        return fail(GRAPHI_INVALID, "softmax_cross_entropy",
                    "found labels of another type or shape, expected int32, one for each row of the logits");
    if (!array_is_dense(labels))
        return fail(GRAPHI_UNSUPPORTED, "softmax_cross_entropy", "found labels with gaps, expected dense ones");
    return GRAPHI_OK;
}

graphi_status cross_entropy_bind(const struct array_desc *logits, const struct array_desc *labels,
                                 const struct array_desc *loss, enum isa isa, struct kernel *kernel)
{
    TRY(check_labels(logits, labels));
    if (loss->dtype != GRAPHI_F32 || array_count(loss) != 1)
        return fail(GRAPHI_INVALID, "softmax_cross_entropy", "found a loss of %lld elements, expected one float32",
                    (long long)array_count(loss));
    const struct array_desc *const arrays[] = {logits};
    TRY(make("softmax_cross_entropy", 1, arrays, false, isa, cross_entropy_run, 4, kernel));
    kernel->phases = 2;
    kernel->shares[1] = 1;
    kernel->workspace = (size_t)kernel->shares[0] * sizeof(double);
    return GRAPHI_OK;
}

graphi_status cross_entropy_gradient_bind(const struct array_desc *logits, const struct array_desc *labels,
                                          const struct array_desc *gradient, const struct array_desc *dx, enum isa isa,
                                          struct kernel *kernel)
{
    TRY(check_labels(logits, labels));
    if (gradient->dtype != GRAPHI_F32 || array_count(gradient) != 1)
        return fail(GRAPHI_INVALID, "softmax_cross_entropy", "found a gradient of %lld elements, expected one float32",
                    (long long)array_count(gradient));
    const struct array_desc *const arrays[] = {logits, dx};
    return make("softmax_cross_entropy_gradient", 2, arrays, false, isa, cross_entropy_gradient_run, 5, kernel);
}
