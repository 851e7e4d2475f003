/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax, cross-entropy, dropout: kernels against double precision, the same bits on every instruction
 * set and for every order of shares. */
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "kernels/add_n.h"
#include "kernels/cast.h"
#include "kernels/copy.h"
#include "kernels/random.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"

#include "guarded.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint64_t dice_state = 1;
static uint32_t dice(uint32_t n)
{
    return random_philox(5, 0, dice_state++).v[0] % n;
}
static float dice_float(void)
{
    return (random_unit(random_philox(3, 0, dice_state++).v[1]) - 0.5f) * 4;
}

static int64_t span(const struct array_desc *desc)
{
    int64_t last = 0;
    for (int i = 0; i < desc->rank; i++)
        last += (desc->dims[i] - 1) * desc->strides[i];
    return array_count(desc) ? last + 1 : 0;
}

static float *random_array(int64_t count)
{
    float *data = mem_alloc((size_t)count * sizeof *data + 1);
    for (int64_t i = 0; i < count; i++)
        data[i] = dice_float();
    return data;
}

/* Shares of each phase in a random order that starts anywhere. */
static graphi_status run_shuffled(const struct kernel *kernel, struct kernel_call *call)
{
    void *workspace = mem_alloc(kernel->workspace);
    memset(workspace, 0xff, kernel->workspace);
    call->workspace = workspace;
    call->params = kernel->params;
    graphi_status status = GRAPHI_OK;
    for (int phase = 0; phase < kernel->phases; phase++) {
        int shares = kernel->shares[phase], first = (int)dice((uint32_t)shares), down = (int)dice(2);
        assert_true(shares >= 1);
        for (int i = 0; i < shares && status == GRAPHI_OK; i++)
            status = kernel->run(call, phase, (first + (down ? shares - i : i)) % shares);
    }
    mem_free(workspace);
    return status;
}

struct case_of {
    enum reduce_op op;
    unsigned axes;
    struct array_desc in, out;
    int64_t rows;
};

static struct case_of random_case(int round)
{
    struct case_of c = {.op = (enum reduce_op)dice(REDUCE_OPS)};
    int64_t dims[4], kept[4];
    int rank = (int)dice(5), kept_rank = 0;
    for (int i = 0; i < rank; i++)
        dims[i] = dice(12) == 0 ? 0 : dice(4) ? 1 + dice(7) : 1;
    if (rank && round % 2)
        dims[dice((uint32_t)rank)] = 1 + dice(round % 5 ? 300 : 30000);
    c.in = array_dense(GRAPHI_F32, rank, dims);
    if (rank > 1 && dice(2))
        for (int i = rank - 2; i >= 0; i--)
            c.in.strides[i] = (c.in.dims[i + 1] + (i == rank - 2 ? 3 : 0)) * c.in.strides[i + 1];
    c.in.bounded = rank && dice(2);
    c.axes = dice(16) & ((1u << rank) - 1);
    for (int i = 0; i < rank; i++)
        if (!(c.axes >> i & 1))
            kept[kept_rank++] = dims[i];
    c.out = array_dense(GRAPHI_F32, kept_rank, kept);
    c.out.bounded = c.in.bounded && !(c.axes & 1);
    c.rows = c.in.bounded ? dice((uint32_t)dims[0] + 1) : rank ? dims[0] : 1;
    return c;
}

static void exact(const struct case_of *c, const float *x, double *want, double *magnitude)
{
    int64_t count = array_count(&c->in), counted = 1;
    for (int i = 0; i < c->in.rank; i++)
        counted *= !(c->axes >> i & 1) ? 1 : i == 0 ? c->rows : c->in.dims[i];
    for (int64_t i = 0; i < array_count(&c->out); i++) {
        want[i] = c->op == REDUCE_MAX ? -INFINITY : 0;
        magnitude[i] = 0;
    }
    for (int64_t e = 0; e < count; e++) {
        int64_t rest = e, at = 0, to = 0, step = 1, first = 0;
        for (int i = c->in.rank - 1; i >= 0; i--) {
            first = rest % c->in.dims[i];
            rest /= c->in.dims[i];
            at += first * c->in.strides[i];
            if (!(c->axes >> i & 1)) {
                to += first * step;
                step *= c->in.dims[i];
            }
        }
        if (c->in.rank && first >= c->rows)
            continue;
        double v = c->op == REDUCE_SUM_SQUARES ? (double)x[at] * (double)x[at] : (double)x[at];
        want[to] = c->op == REDUCE_MAX ? fmax(want[to], v) : want[to] + v;
        magnitude[to] += fabs(v);
    }
    for (int64_t i = 0; c->op == REDUCE_MEAN && i < array_count(&c->out); i++) {
        want[i] /= (double)counted;
        magnitude[i] /= (double)counted;
    }
}

/* A leaf left out, an axis taken for another, rows beyond the actual ones counted, sums that depend on who ran first.
 */
static void reductions_equal_double(void **state)
{
    for (int round = 0; round < 400; round++) {
        struct case_of c = random_case(round);
        float *x = random_array(span(&c.in)), *first = NULL;
        int64_t results = array_count(&c.out);
        double *want = mem_alloc((size_t)results * 2 * sizeof *want + 1), *magnitude = want + results;
        exact(&c, x, want, magnitude);
        int64_t kept_rows = c.out.bounded ? c.rows * (c.out.dims[0] ? results / c.out.dims[0] : 0) : results;
        for (int isa = 0; isa <= (int)isa_detect(); isa++) {
            struct kernel kernel;
            float *y = mem_zalloc((size_t)results * sizeof *y + 1);
            assert_int_equal(reduce_bind(c.op, &c.in, c.axes, &c.out, isa, &kernel), GRAPHI_OK);
            struct kernel_call call = {.in = &(struct kernel_array){x, c.rows},
                                       .out = &(struct kernel_array){y, c.out.bounded ? c.rows
                                                                        : c.out.rank  ? c.out.dims[0]
                                                                                      : 1}};
            assert_int_equal(run_shuffled(&kernel, &call), GRAPHI_OK);
            for (int64_t i = 0; i < kept_rows; i++)
                if (!(fabs((double)y[i] - want[i]) <= 1e-6 * magnitude[i]) && (double)y[i] != want[i] &&
                    !(isnan(y[i]) && isnan(want[i])))
                    fail_msg("round %d %s op %d: result %d is %g, want %g", round, isa_name(isa), c.op, (int)i,
                             (double)y[i], want[i]);
            if (first)
                assert_memory_equal(first, y, (size_t)results * sizeof *y);
            kernel_fini(&kernel);
            if (first)
                mem_free(y);
            else
                first = y;
        }
        mem_free(first);
        mem_free(want);
        mem_free(x);
    }
}

/* A NaN lost in a maximum hides a broken training run. */
static void maximum_keeps_nan(void **state)
{
    for (int isa = 0; isa <= (int)isa_detect(); isa++)
        for (int64_t n = 1; n < 140; n += 23)
            for (int64_t at = 0; at < n; at += 7) {
                float x[140], y = 0;
                for (int64_t i = 0; i < n; i++)
                    x[i] = (float)i;
                x[at] = NAN;
                struct array_desc in = array_dense(GRAPHI_F32, 1, &n), out = array_dense(GRAPHI_F32, 0, NULL);
                struct kernel kernel;
                assert_int_equal(reduce_bind(REDUCE_MAX, &in, 1, &out, isa, &kernel), GRAPHI_OK);
                struct kernel_call call = {.in = &(struct kernel_array){x, n}, .out = &(struct kernel_array){&y, 1}};
                assert_int_equal(run_shuffled(&kernel, &call), GRAPHI_OK);
                assert_true(isnan(y));
                kernel_fini(&kernel);
            }
}

static void check_softmax(int64_t rows, int64_t cols, int64_t actual, bool logarithm, int isa)
{
    struct array_desc desc = array_dense(GRAPHI_F32, 2, (int64_t[]){rows, cols});
    desc.bounded = true;
    float *x = random_array(rows * cols), *dy = random_array(rows * cols), *y = random_array(rows * cols);
    struct kernel forward, backward, past;
    for (int64_t i = 0; i < rows * cols; i += 3)
        x[i] *= 30;
    assert_int_equal(softmax_bind(logarithm, &desc, &desc, isa, &forward), GRAPHI_OK);
    assert_int_equal(softmax_gradient_bind(logarithm, &desc, &desc, &desc, GRAPHI_STREAM_NEVER, isa, &backward),
                     GRAPHI_OK);
    assert_int_equal(softmax_gradient_bind(logarithm, &desc, &desc, &desc, GRAPHI_STREAM_ALWAYS, isa, &past),
                     GRAPHI_OK);
    float untouched = actual < rows && cols ? y[actual * cols] : 0;
    struct kernel_call call = {.in = &(struct kernel_array){x, actual}, .out = &(struct kernel_array){y, actual}};
    assert_int_equal(run_shuffled(&forward, &call), GRAPHI_OK);
    float *dx = random_array(rows * cols), *same = mem_alloc((size_t)(rows * cols) * sizeof *same + 4);
    memcpy(same, dx, (size_t)(rows * cols) * sizeof *same);
    struct kernel_array in[] = {{y, actual}, {dy, actual}};
    struct kernel_call back = {.in = in, .out = &(struct kernel_array){dx, actual}};
    assert_int_equal(run_shuffled(&backward, &back), GRAPHI_OK);
    back.out = &(struct kernel_array){same, actual};
    assert_int_equal(run_shuffled(&past, &back), GRAPHI_OK);
    assert_memory_equal(dx, same, (size_t)(rows * cols) * sizeof *same);
    for (int64_t r = 0; r < actual; r++) {
        double max = -INFINITY, sum = 0, dot = 0, all = 0;
        for (int64_t c = 0; c < cols; c++)
            max = fmax(max, (double)x[r * cols + c]);
        for (int64_t c = 0; c < cols; c++)
            sum += exp((double)x[r * cols + c] - max);
        for (int64_t c = 0; c < cols; c++) {
            dot += exp((double)x[r * cols + c] - max) / sum * (double)dy[r * cols + c];
            all += (double)dy[r * cols + c];
        }
        for (int64_t i = r * cols; i < (r + 1) * cols; i++) {
            double p = exp((double)x[i] - max) / sum, want = logarithm ? log(p) : p;
            double slope = logarithm ? (double)dy[i] - p * all : p * ((double)dy[i] - dot);
            assert_true(fabs((double)y[i] - want) <=
                        (2e-6 + 0x1p-24 * (max - (double)x[i])) * (logarithm ? 1 + fabs(want) : want) + 1e-37);
            assert_true(fabs((double)dx[i] - slope) <= 1e-5 * (1 + (double)cols / 100));
        }
    }
    assert_true(actual == rows || !cols || y[actual * cols] == untouched);
    kernel_fini(&forward);
    kernel_fini(&backward);
    kernel_fini(&past);
    mem_free(x), mem_free(y), mem_free(dy), mem_free(dx), mem_free(same);
}

/* Kernels without rows, in the bound or in the call, or without columns: a first element would not be theirs. */
static void nothing_is_moved(void **state)
{
    static const int64_t shapes[][2] = {{0, 7}, {4, 7}, {4, 0}};
    for (int isa = 0; isa <= (int)isa_detect(); isa++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const int64_t rows = shapes[i][1] ? 0 : shapes[i][0];
            struct guarded g = guarded_new(0, false);
            struct array_desc f32 = array_dense(GRAPHI_F32, 2, shapes[i]), i32 = array_dense(GRAPHI_I32, 2, shapes[i]);
            struct array_desc terms[3];
            struct kernel kernel[6];
            f32.bounded = i32.bounded = true;
            for (int k = 0; k < 3; k++)
                terms[k] = f32;
            struct copy_part part = {.rank = 2, .dims = {shapes[i][0], shapes[i][1]}, .from = {shapes[i][1], 1},
                                     .to = {1, shapes[i][0]}, .rows = shapes[i][0]};
            assert_int_equal(cast_bind(&i32, &f32, isa, &kernel[0]), GRAPHI_OK);
            assert_int_equal(copy_bind(&(struct copy_spec){"copy", 4, 1, &part, 0}, isa, &kernel[1]), GRAPHI_OK);
            assert_int_equal(fill_bind(&f32, 3, &kernel[2]), GRAPHI_OK);
            assert_int_equal(add_n_bind(3, terms, &f32, isa, &kernel[3]), GRAPHI_OK);
            assert_int_equal(dropout_bind(0.5, 1, 1, &f32, &f32, &f32, isa, &kernel[4]), GRAPHI_OK);
            assert_int_equal(random_fill_bind(RANDOM_UNIFORM, 0, 1, 1, 1, &f32, isa, &kernel[5]), GRAPHI_OK);
            for (int k = 0; k < 6; k++) {
                struct kernel_array all[] = {{g.data, rows}, {g.data, rows}, {g.data, rows}};
                struct kernel_call call = {.in = all, .out = all};
                assert_int_equal(run_shuffled(&kernel[k], &call), GRAPHI_OK);
                kernel_fini(&kernel[k]);
            }
            guarded_free(&g);
        }
}

/* Overflow of e^x, tails of a row, rows beyond the actual ones. */
static void softmax_equals_double(void **state)
{
    static const int64_t sizes[] = {1, 2, 7, 16, 33, 64, 100, 513, 1000, 3000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int isa = 0; isa <= (int)isa_detect(); isa++)
            for (int logarithm = 0; logarithm < 2; logarithm++)
                check_softmax(33, sizes[s], 33 - (int64_t)(s % 3) * 11, logarithm, isa);
}

static float loss_of(const struct kernel *kernel, const float *x, const int32_t *labels, int64_t rows)
{
    float loss = NAN;
    struct kernel_array in[] = {{(void *)(uintptr_t)x, rows}, {(void *)(uintptr_t)labels, rows}};
    struct kernel_call call = {.in = in, .out = &(struct kernel_array){&loss, 1}};
    assert_int_equal(run_shuffled(kernel, &call), GRAPHI_OK);
    return loss;
}

/* Arrays without rows or without classes have no element that may be read or written, and no loss: the bound may be 0,
 * and so may what a call has of it. */
static void softmax_of_nothing(void **state)
{
    struct array_desc one = array_dense(GRAPHI_F32, 0, NULL);
    for (int isa = 0; isa <= (int)isa_detect(); isa++)
        for (int rows = 0; rows < 3; rows += 2) {
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                check_softmax(rows, 0, rows, logarithm, isa);
                check_softmax(rows, 7, 0, logarithm, isa);
            }
            struct array_desc logits = array_dense(GRAPHI_F32, 2, (int64_t[]){rows, 7}),
                              labels = array_dense(GRAPHI_I32, 1, (int64_t[]){rows});
            logits.bounded = labels.bounded = true;
            struct guarded nothing = guarded_new(0, false);
            struct kernel forward, backward;
            float grad = 1;
            assert_int_equal(cross_entropy_bind(&logits, &labels, &one, isa, &forward), GRAPHI_OK);
            assert_int_equal(cross_entropy_gradient_bind(&logits, &labels, &one, &logits, isa, &backward), GRAPHI_OK);
            assert_true(loss_of(&forward, nothing.data, nothing.data, 0) == 0);
            struct kernel_array in[] = {{nothing.data, 0}, {nothing.data, 0}, {&grad, 1}};
            struct kernel_call call = {.in = in, .out = &(struct kernel_array){nothing.data, 0}};
            assert_int_equal(run_shuffled(&backward, &call), GRAPHI_OK);
            kernel_fini(&forward);
            kernel_fini(&backward);
            guarded_free(&nothing);
        }
}

/* The loss of one order of shares differs from another's; a gradient that is not the loss's; a label out of range read
 * as memory. */
static void cross_entropy(void **state)
{
    enum { ROWS = 70, COLS = 601 };
    struct array_desc logits = array_dense(GRAPHI_F32, 2, (int64_t[]){ROWS, COLS});
    struct array_desc labels = array_dense(GRAPHI_I32, 1, (int64_t[]){ROWS}), one = array_dense(GRAPHI_F32, 0, NULL);
    float *x = random_array(ROWS * COLS), *dx = random_array(ROWS * COLS), grad = 3, before = 0;
    int32_t label[ROWS];
    for (int i = 0; i < ROWS; i++)
        label[i] = (int32_t)dice(COLS);
    for (int isa = 0; isa <= (int)isa_detect(); isa++) {
        struct kernel forward, backward;
        assert_int_equal(cross_entropy_bind(&logits, &labels, &one, isa, &forward), GRAPHI_OK);
        assert_int_equal(cross_entropy_gradient_bind(&logits, &labels, &one, &logits, isa, &backward), GRAPHI_OK);
        assert_true(forward.shares[0] > 1);
        double want = 0;
        for (int r = 0; r < ROWS; r++) {
            double sum = 0;
            for (int c = 0; c < COLS; c++)
                sum += exp((double)x[r * COLS + c]);
            want += log(sum) - (double)x[r * COLS + label[r]];
        }
        float loss = loss_of(&forward, x, label, ROWS);
        assert_true(fabs((double)loss - want / ROWS) < 1e-6 * want / ROWS * 4);
        assert_true(loss == loss_of(&forward, x, label, ROWS));
        assert_true(isa <= ISA_AVX2 || loss == before); /* AVX2 and AVX-512 agree */
        before = loss;
        struct kernel_array in[] = {{x, ROWS}, {label, ROWS}, {&grad, 1}};
        struct kernel_call call = {.in = in, .out = &(struct kernel_array){dx, ROWS}};
        assert_int_equal(run_shuffled(&backward, &call), GRAPHI_OK);
        for (int r = 0; r < ROWS; r++) {
            double sum = 0;
            for (int c = 0; c < COLS; c++)
                sum += exp((double)x[r * COLS + c]);
            for (int c = 0; c < COLS; c++) {
                double slope = 3.0 / ROWS * (exp((double)x[r * COLS + c]) / sum - (c == label[r]));
                assert_true(fabs((double)dx[r * COLS + c] - slope) < 1e-8);
            }
        }
        int32_t keep = label[41];
        for (int bad = 0; bad < 2; bad++) {
            label[41] = bad ? COLS : -1;
            assert_int_equal(run_shuffled(&backward, &call), GRAPHI_INVALID);
            assert_non_null(strstr(graphi_message(), bad ? "label 601 in row 41" : "label -1 in row 41"));
            float loss_out;
            struct kernel_call again = {.in = in, .out = &(struct kernel_array){&loss_out, 1}};
            assert_int_equal(run_shuffled(&forward, &again), GRAPHI_INVALID);
        }
        label[41] = keep;
        kernel_fini(&forward);
        kernel_fini(&backward);
    }
    mem_free(x), mem_free(dx);
}

/* A mask that depends on how the batch is split over solvers, or on the order of shares. */
static void dropout_is_keyed_by_sample(void **state)
{
    enum { ROWS = 300, COLS = 37, HALF = 131 };
    struct array_desc whole = array_dense(GRAPHI_F32, 2, (int64_t[]){ROWS, COLS});
    whole.bounded = true;
    static float x[ROWS * COLS], y[ROWS * COLS], mask[ROWS * COLS], y2[ROWS * COLS], mask2[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = 1 + (float)i;
    struct kernel kernel;
    assert_int_equal(dropout_bind(0.75, 99, 1, &whole, &whole, &whole, isa_detect(), &kernel), GRAPHI_OK);
    struct kernel_array out[] = {{y, ROWS}, {mask, ROWS}};
    struct kernel_call call = {
        .in = &(struct kernel_array){x, ROWS}, .out = out, .seed = 1, .step = 5, .first_sample = 1000};
    assert_int_equal(run_shuffled(&kernel, &call), GRAPHI_OK);
    int kept = 0;
    for (int i = 0; i < ROWS * COLS; i++) {
        kept += mask[i] != 0;
        assert_true(mask[i] == 0 || fabsf(mask[i] - 4.0f / 3) < 1e-6f);
        assert_true(y[i] == x[i] * mask[i]);
    }
    assert_in_range(kept, ROWS * COLS * 0.72, ROWS * COLS * 0.78);
    for (int part = 0; part < 2; part++) {
        int64_t first = part ? HALF : 0, rows = part ? ROWS - HALF : HALF;
        struct kernel_array to[] = {{y2 + first * COLS, rows}, {mask2 + first * COLS, rows}};
        struct kernel_call half = {.in = &(struct kernel_array){x + first * COLS, rows},
                                   .out = to,
                                   .seed = 1,
                                   .step = 5,
                                   .first_sample = 1000 + (uint64_t)first};
        assert_int_equal(run_shuffled(&kernel, &half), GRAPHI_OK);
    }
    assert_memory_equal(mask, mask2, sizeof mask);
    assert_memory_equal(y, y2, sizeof y);
    call.step = 6;
    assert_int_equal(run_shuffled(&kernel, &call), GRAPHI_OK);
    assert_memory_not_equal(mask, mask2, sizeof mask);
    kernel_fini(&kernel);
    assert_int_equal(dropout_bind(0, 99, 1, &whole, &whole, &whole, isa_detect(), &kernel), GRAPHI_INVALID);
}

/* Numbers outside their range, or of another mean or spread. */
static void random_arrays(void **state)
{
    enum { N = 100000 };
    static float y[N];
    struct array_desc desc = array_dense(GRAPHI_F32, 1, (int64_t[]){N});
    for (int kind = 0; kind < 2; kind++) {
        struct kernel kernel;
        assert_int_equal(random_fill_bind((enum random_kind)kind, -1, 2, 4, 1, &desc, isa_detect(), &kernel),
                         GRAPHI_OK);
        struct kernel_call call = {.out = &(struct kernel_array){y, N}};
        assert_int_equal(run_shuffled(&kernel, &call), GRAPHI_OK);
        double mean = 0, square = 0;
        for (int i = 0; i < N; i++) {
            assert_true(kind == RANDOM_NORMAL || (y[i] >= -1 && y[i] < 2));
            mean += (double)y[i] / N;
            square += (double)y[i] * (double)y[i] / N;
        }
        assert_true(fabs(mean - (kind == RANDOM_NORMAL ? -1 : 0.5)) < 0.03);
        assert_true(fabs(square - mean * mean - (kind == RANDOM_NORMAL ? 4 : 0.75)) < 0.06);
        kernel_fini(&kernel);
    }
}

/* Blocks of counters must be the generator of base/random.h, also over the end of 32 bits and from any first sample. */
static void blocks_are_the_generator(void **state)
{
    enum { N = 1003 };
    static float y[N];
    struct array_desc desc = array_dense(GRAPHI_F32, 1, (int64_t[]){N});
    for (int isa = 0; isa <= (int)isa_detect(); isa++)
        for (uint64_t first = 0x3fffffe01; first < 0x3fffffe06; first++) {
            struct kernel kernel;
            assert_int_equal(random_fill_bind(RANDOM_UNIFORM, 0, 1, 4, 1, &desc, isa, &kernel), GRAPHI_OK);
            struct kernel_call call = {
                .out = &(struct kernel_array){y, N}, .seed = 11, .step = 1ull << 40 | 3, .first_sample = first};
            assert_int_equal(run_shuffled(&kernel, &call), GRAPHI_OK);
            uint64_t key = hash_u64(hash_u64(HASH_START, 11), 4);
            for (uint64_t i = 0; i < N; i++)
                assert_true(y[i] == random_unit(random_philox(key, call.step, (first + i) >> 2).v[(first + i) & 3]));
            kernel_fini(&kernel);
        }
}

/* A tail that reads or writes past the end of an array stops here. */
static void kernels_stay_inside(void **state)
{
    for (int isa = 0; isa <= (int)isa_detect(); isa++)
        for (int64_t cols = 1; cols <= 70; cols++) {
            struct array_desc desc = array_dense(GRAPHI_F32, 2, (int64_t[]){3, cols});
            struct array_desc rows = array_dense(GRAPHI_F32, 1, (int64_t[]){3}),
                              row = array_dense(GRAPHI_F32, 1, &cols);
            size_t bytes = (size_t)cols * 3 * sizeof(float);
            for (int at_start = 0; at_start < 2; at_start++) {
                struct guarded g[] = {guarded_new(bytes, at_start), guarded_new(bytes, at_start),
                                      guarded_new(bytes, at_start), guarded_new((size_t)cols * 4, at_start),
                                      guarded_new(12, at_start)};
                struct kernel_array in[] = {{g[0].data, 3}, {g[1].data, 3}};
                struct kernel kernel[8];
                int n = 0;
                void *out[8] = {g[2].data, g[2].data, g[2].data, g[2].data, g[2].data, g[3].data, g[4].data, g[3].data};
                memset(g[0].data, 0, bytes);
                memset(g[1].data, 0, bytes);
                assert_int_equal(softmax_bind(false, &desc, &desc, isa, &kernel[n++]), GRAPHI_OK);
                assert_int_equal(softmax_bind(true, &desc, &desc, isa, &kernel[n++]), GRAPHI_OK);
                assert_int_equal(
                    softmax_gradient_bind(false, &desc, &desc, &desc, GRAPHI_STREAM_ALWAYS, isa, &kernel[n++]),
                    GRAPHI_OK);
                assert_int_equal(
                    softmax_gradient_bind(true, &desc, &desc, &desc, GRAPHI_STREAM_ALWAYS, isa, &kernel[n++]),
                    GRAPHI_OK);
                assert_int_equal(random_fill_bind(RANDOM_NORMAL, 0, 1, 1, 1, &desc, isa, &kernel[n++]), GRAPHI_OK);
                assert_int_equal(reduce_bind(REDUCE_SUM_SQUARES, &desc, 1, &row, isa, &kernel[n++]), GRAPHI_OK);
                assert_int_equal(reduce_bind(REDUCE_MAX, &desc, 2, &rows, isa, &kernel[n++]), GRAPHI_OK);
                assert_int_equal(reduce_bind(REDUCE_MAX, &desc, 1, &row, isa, &kernel[n++]), GRAPHI_OK);
                for (int k = 0; k < n; k++) {
                    struct kernel_call call = {.in = in, .out = &(struct kernel_array){out[k], 3}};
                    assert_int_equal(run_shuffled(&kernel[k], &call), GRAPHI_OK);
                    kernel_fini(&kernel[k]);
                }
                for (size_t k = 0; k < sizeof g / sizeof *g; k++)
                    guarded_free(&g[k]);
            }
        }
}

/* More terms than a program takes, the output over one of them. */
static void many_terms(void **state)
{
    enum { TERMS = 40, N = 9001 };
    struct array_desc desc[TERMS];
    struct kernel_array in[TERMS];
    for (int k = 0; k < TERMS; k++) {
        desc[k] = array_dense(GRAPHI_F32, 1, (int64_t[]){N});
        in[k] = (struct kernel_array){mem_alloc(N * sizeof(float)), N};
        for (int i = 0; i < N; i++)
            ((float *)in[k].data)[i] = (float)(i + k);
    }
    struct kernel kernel;
    assert_int_equal(add_n_bind(TERMS, desc, desc, isa_detect(), &kernel), GRAPHI_OK);
    struct kernel_call call = {.in = in, .out = &in[7]};
    assert_int_equal(run_shuffled(&kernel, &call), GRAPHI_OK);
    for (int i = 0; i < N; i++)
        assert_true(((float *)in[7].data)[i] == (float)(i * TERMS + TERMS * (TERMS - 1) / 2));
    kernel_fini(&kernel);
    for (int k = 0; k < TERMS; k++)
        mem_free(in[k].data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_equal_double),
        cmocka_unit_test(maximum_keeps_nan),
        cmocka_unit_test(softmax_equals_double),
        cmocka_unit_test(softmax_of_nothing), cmocka_unit_test(nothing_is_moved),
        cmocka_unit_test(cross_entropy),
        cmocka_unit_test(dropout_is_keyed_by_sample),
        cmocka_unit_test(random_arrays),
        cmocka_unit_test(kernels_stay_inside),
        cmocka_unit_test(blocks_are_the_generator),
        cmocka_unit_test(many_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
