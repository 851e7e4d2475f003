/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization, copies, casts, embedding: every form against loops written from the definition, on odd sizes,
 * strided rows, with no elements, shares run backwards, and arrays that end at an unreadable page. */
#include "kernels/cast.h"
#include "kernels/copy.h"
#include "kernels/embedding.h"
#include "kernels/norm.h"
#include "kernels/pool.h"

#include "base/memory.h"
#include "base/status.h"
#include "shares_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* --- normalization --- */

struct norm_case {
    int64_t rows, c, gap;
};
static const struct norm_case norm_cases[] = {{1, 1, 0},     {5, 3, 0},    {37, 16, 0}, {300, 19, 5},
                                              {2000, 70, 2}, {64, 513, 0}, {0, 8, 0},   {4, 0, 0},
                                              {515, 64, 0},  {259, 96, 16}, {131, 80, 4}, {333, 150, 0},
                                              {10000, 470, 0}};

static void naive_batch(const struct norm_case *k, const float *x, const float *scale, const float *bias,
                        const float *dy, float *y, float *mean, float *inv, float *dx, float *dscale, float *dbias)
{
    int64_t m = k->rows, c = k->c;
    for (int64_t j = 0; j < c; j++) {
        double s = 0, v = 0, a = 0, b = 0;
        for (int64_t r = 0; r < m; r++)
            s += x[r * c + j];
        s = m ? s / (double)m : 0;
        for (int64_t r = 0; r < m; r++)
            v += (x[r * c + j] - s) * (x[r * c + j] - s);
        double i = 1 / sqrt((m ? v / (double)m : 0) + 1e-5);
        for (int64_t r = 0; r < m; r++) {
            a += dy[r * c + j];
            b += dy[r * c + j] * (x[r * c + j] - s) * i;
        }
        for (int64_t r = 0; r < m; r++) {
            double hat = (x[r * c + j] - s) * i;
            y[r * c + j] = (float)(hat * scale[j] + bias[j]);
            dx[r * c + j] = (float)(scale[j] * i * (dy[r * c + j] - a / (double)m - hat * b / (double)m));
        }
        mean[j] = (float)s;
        inv[j] = (float)i;
        dscale[j] = (float)b;
        dbias[j] = (float)a;
    }
}

static struct guarded strided(const float *from, int64_t rows, int64_t c, int64_t ld)
{
    struct guarded g = guarded_random(span(rows, c, ld), false);
    if (from)
        spread_rows(g.data, from, rows, c, ld);
    return g;
}

static void check_batch(const struct norm_case *k, enum isa isa, float offset, graphi_streaming streaming)
{
    int64_t m = k->rows, c = k->c, ld = c + k->gap;
    float *mem[10];
    enum { X, SCALE, BIAS, DY, Y, MEAN, INV, DX, DSCALE, DBIAS };
    for (int i = 0; i < 10; i++) {
        mem[i] = malloc(4 * (size_t)(m * c + c + 1));
        fill_random(mem[i], m * c + c);
    }
    for (int64_t i = 0; i < m * c; i++)
        mem[X][i] += offset;
    naive_batch(k, mem[X], mem[SCALE], mem[BIAS], mem[DY], mem[Y], mem[MEAN], mem[INV], mem[DX], mem[DSCALE],
                mem[DBIAS]);
    struct guarded g[10];
    for (int i = 0; i < 10; i++)
        g[i] = i == X || i == DY || i == Y || i == DX ? strided(mem[i], m, c, ld)
                                                      : strided(i < Y ? mem[i] : NULL, 1, c, c);
    gaps(g[Y].data, m, c, ld, false);
    gaps(g[DX].data, m, c, ld, false);
    struct kernel kernel;
    struct norm_spec spec = {.kind = NORM_BATCH, .rows = m, .c = c, .ldx = ld, .lddy = ld, .ldy = ld, .epsilon = 1e-5,
                             .streaming = streaming};
    size_t big = 4 * (size_t)span(m, c, ld), small = 4 * (size_t)c, bytes[] = {k->gap ? 0 : big, small, small};
    struct kernel_array in[] = {{g[X].data, m}, {g[SCALE].data, c}, {g[BIAS].data, c}};
    struct kernel_array out[] = {{g[Y].data, m}, {g[MEAN].data, c}, {g[INV].data, c}};
    assert_int_equal(norm_bind(&spec, isa, &kernel), GRAPHI_OK);
    run_checked(&kernel, in, out, 3, bytes);
    double bound = offset ? 2e-3 : 2e-5;
    assert_near(g[MEAN].data, mem[MEAN], 1, c, c, 1e-6);
    assert_near(g[INV].data, mem[INV], 1, c, c, bound);
    assert_near(g[Y].data, mem[Y], m, c, ld, bound);
    spec.kind = NORM_BATCH_GRADIENT;
    struct kernel_array back[] = {
        {g[X].data, m}, {g[SCALE].data, c}, {g[MEAN].data, c}, {g[INV].data, c}, {g[DY].data, m}};
    struct kernel_array grad[] = {{g[DX].data, m}, {g[DSCALE].data, c}, {g[DBIAS].data, c}};
    assert_int_equal(norm_bind(&spec, isa, &kernel), GRAPHI_OK);
    run_checked(&kernel, back, grad, 3, bytes);
    double scale = m > 1 ? bound * sqrt((double)m) : 1e-2; /* one row: the true gradient is a difference of equals */
    assert_near(g[DSCALE].data, mem[DSCALE], 1, c, c, scale);
    assert_near(g[DBIAS].data, mem[DBIAS], 1, c, c, 1e-5 * sqrt((double)m + 1));
    if (m > 1)
        assert_near(g[DX].data, mem[DX], m, c, ld, 10 * bound);
    gaps(g[Y].data, m, c, ld, true);
    gaps(g[DX].data, m, c, ld, true);
    for (int i = 0; i < 10; i++) {
        guarded_free(&g[i]);
        free(mem[i]);
    }
}

/* Statistics by E[x^2] - E[x]^2 fail with the offset of 1000; leaves or strides mixed up fail without. Stores past the
 * caches of rows that do not lie in whole lines would fault. From 128 channels on one thread goes piece by piece, and
 * three do in the gradient of the last case, whose arrays are more than a cache: neither may show in the bits. */
static void batch_norm_equals_its_definition(void **state)
{
    for (size_t i = 0; i < sizeof norm_cases / sizeof *norm_cases; i++)
        for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
            check_batch(&norm_cases[i], (enum isa)isa, 0, GRAPHI_STREAM_NEVER);
            check_batch(&norm_cases[i], (enum isa)isa, 1000, GRAPHI_STREAM_ALWAYS);
        }
}

/* Given statistics: the variance taken for the deviation, or its row vector made from what others wrote. */
static void batch_norm_by_given_statistics(void **state)
{
    enum { ROWS = 133, C = 37, N = ROWS * C };
    struct guarded x = guarded_random(N, false), y = guarded_random(N, false);
    float scale[C], bias[C], mean[C], var[C];
    fill_random(scale, C);
    fill_random(bias, C);
    fill_random(mean, C);
    fill_random(var, C);
    for (int j = 0; j < C; j++)
        var[j] = fabsf(var[j]);
    const struct norm_spec spec = {
        .kind = NORM_BATCH_INFERENCE, .rows = ROWS, .c = C, .ldx = C, .ldy = C, .epsilon = 1e-3};
    struct kernel_array in[] = {{x.data, ROWS}, {scale, C}, {bias, C}, {mean, C}, {var, C}}, out = {y.data, ROWS};
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
        struct kernel kernel;
        assert_int_equal(norm_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
        run_checked(&kernel, in, &out, 1, &(size_t){4 * N});
        for (int i = 0; i < N; i++) {
            const int j = i % C;
            double expected = (((float *)x.data)[i] - mean[j]) * scale[j] / sqrt(var[j] + 1e-3) + bias[j];
            assert_true(fabs(((float *)y.data)[i] - expected) <= 1e-5 * (1 + fabs(expected)));
        }
    }
    guarded_free(&x);
    guarded_free(&y);
}

/* A call with fewer rows than the bound normalizes with rows that are not there. */
static void batch_norm_of_a_bounded_batch(void **state)
{
    struct norm_case actual = {3 * 50, 24, 0};
    int64_t bound = 8 * 50, n = bound * 24;
    float *mem[10];
    for (int i = 0; i < 10; i++) {
        mem[i] = malloc(4 * (size_t)n);
        fill_random(mem[i], n);
    }
    naive_batch(&actual, mem[0], mem[1], mem[2], mem[3], mem[4], mem[5], mem[6], mem[7], mem[8], mem[9]);
    float *y = malloc(4 * (size_t)n), mean[24], inv[24];
    struct kernel kernel;
    struct norm_spec spec = {
        .kind = NORM_BATCH, .rows = bound, .c = 24, .per_row = 50, .ldx = 24, .ldy = 24, .epsilon = 1e-5};
    assert_int_equal(norm_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
    struct kernel_array in[] = {{mem[0], 3}, {mem[1], 24}, {mem[2], 24}}, out[] = {{y, 3}, {mean, 24}, {inv, 24}};
    size_t bytes[] = {4 * 150 * 24, sizeof mean, sizeof inv};
    run_checked(&kernel, in, out, 3, bytes);
    assert_near(y, mem[4], 150, 24, 24, 1e-5);
    for (int i = 0; i < 10; i++)
        free(mem[i]);
    free(y);
}

static void check_lrn(int64_t rows, int64_t c, int64_t gap, int64_t size, double beta, enum isa isa)
{
    int64_t ld = c + gap, n = rows * c;
    double alpha = 0.5, bias = 1.5;
    float *x = malloc(4 * (size_t)(n + 1)), *dy = malloc(4 * (size_t)(n + 1)), *y = malloc(4 * (size_t)(n + 1)),
          *dx = malloc(4 * (size_t)(n + 1));
    fill_random(x, n);
    fill_random(dy, n);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < c; j++) {
            double out = 0, gradient = 0;
            for (int64_t i = 0; i < c; i++) {
                double s = bias;
                for (int64_t t = 0; t < c; t++)
                    if (t >= i - (size - 1) / 2 && t <= i + size / 2)
                        s += alpha / (double)size * x[r * c + t] * x[r * c + t];
                bool inside = j >= i - (size - 1) / 2 && j <= i + size / 2;
                if (i == j) {
                    out = x[r * c + j] * pow(s, -beta);
                    gradient += dy[r * c + j] * pow(s, -beta);
                }
                if (inside)
                    gradient -= dy[r * c + i] * x[r * c + i] * beta * pow(s, -beta - 1) * 2 * alpha / (double)size *
                                x[r * c + j];
            }
            y[r * c + j] = (float)out;
            dx[r * c + j] = (float)gradient;
        }
    struct guarded gx = strided(x, rows, c, ld), gdy = strided(dy, rows, c, ld), gy = strided(NULL, rows, c, ld),
                   gdx = strided(NULL, rows, c, ld);
    struct norm_spec spec = {.kind = NORM_LRN,
                             .rows = rows,
                             .c = c,
                             .ldx = ld,
                             .lddy = ld,
                             .ldy = ld,
                             .size = size,
                             .alpha = alpha,
                             .beta = beta,
                             .k = bias};
    struct kernel kernel;
    size_t bytes = gap ? 0 : 4 * (size_t)n;
    struct kernel_array in[] = {{gx.data, rows}, {gdy.data, rows}};
    assert_int_equal(norm_bind(&spec, isa, &kernel), GRAPHI_OK);
    run_checked(&kernel, in, &(struct kernel_array){gy.data, rows}, 1, &bytes);
    assert_near(gy.data, y, rows, c, ld, 2e-6);
    spec.kind = NORM_LRN_GRADIENT;
    assert_int_equal(norm_bind(&spec, isa, &kernel), GRAPHI_OK);
    assert_int_equal(kernel.workspace > 0, isa == ISA_PLAIN || (size != 3 && size != 5)); /* others are in registers */
    run_checked(&kernel, in, &(struct kernel_array){gdx.data, rows}, 1, &bytes);
    assert_near(gdx.data, dx, rows, c, ld, 4e-6);
    struct guarded *all[] = {&gx, &gdy, &gy, &gdx};
    for (int i = 0; i < 4; i++)
        guarded_free(all[i]);
    free(x);
    free(dy);
    free(y);
    free(dx);
}

/* Windows cut at the first and last channels, even sizes (not symmetric), windows wider than the array. */
static void lrn_equals_its_definition(void **state)
{
    static const int64_t cases[][4] = {{3, 1, 0, 5},  {5, 16, 0, 5},  {7, 67, 3, 5}, {4, 40, 0, 4},
                                       {2, 9, 0, 30}, {40, 64, 0, 3}, {0, 8, 0, 5},
                                       {2, 40, 0, 1 << 30}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
            check_lrn(cases[i][0], cases[i][1], cases[i][2], cases[i][3], 0.75, (enum isa)isa);
            check_lrn(cases[i][0], cases[i][1], cases[i][2], cases[i][3], 0.6, (enum isa)isa);
        }
}

/* Windows of 3 and 5 channels, kept in registers: a lane taken from the wrong vector beside, of rows that end anywhere
 * in one. */
static void lrn_of_rows_that_end_anywhere(void **state)
{
    for (int64_t c = 1; c <= 50; c++)
        for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
            check_lrn(3, c, c % 3, 5, 0.75, (enum isa)isa);
            check_lrn(2, c, 0, 3, c % 2 ? 0.75 : 0.6, (enum isa)isa);
        }
}

/* s is 0 behind the last channel, whose ratio is then NaN: windows at the border took it in. Or s is infinite: its
 * power times its root was NaN. */
static void lrn_of_responses_without_limits(void **state)
{
    enum { C = 29 };
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++)
        for (int64_t size = 3; size <= 5; size += 2)
            for (int infinite = 0; infinite < 2; infinite++) {
                float x[C], dy[C], y[C], dx[C];
                for (int j = 0; j < C; j++) {
                    x[j] = infinite ? 1e25f : j < C - size / 2 ? 1 : 1e-30f; /* whose square is 0 */
                    dy[j] = 2;
                }
                struct norm_spec spec = {.kind = NORM_LRN, .rows = 1, .c = C, .ldx = C, .lddy = C, .ldy = C,
                                         .size = size, .alpha = 1, .beta = 0.75, .k = 0};
                struct kernel kernel;
                struct kernel_array in[] = {{x, 1}, {dy, 1}};
                assert_int_equal(norm_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
                run_checked(&kernel, in, &(struct kernel_array){y, 1}, 1, &(size_t){sizeof y});
                spec.kind = NORM_LRN_GRADIENT;
                assert_int_equal(norm_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
                run_checked(&kernel, in, &(struct kernel_array){dx, 1}, 1, &(size_t){sizeof dx});
                for (int j = 0; j < C; j++)
                    assert_true(infinite ? y[j] == 0 && dx[j] == 0 : y[j] > 0 && isfinite(dx[j]));
            }
}

/* --- copies --- */

/* A transpose with tiles cut at the border, of every element size, merged and unmerged dimensions; and the same past
 * the caches, in the source's order, of lines that are whole ones in memory and of others. */
static void transposes_move_every_element(void **state)
{
    static const int64_t shapes[][4] = {{1, 1, 37, 41}, {2, 3, 33, 5}, {3, 40, 2, 65}, {5, 1, 64, 32}, {2, 0, 3, 4},
                                         {2, 3, 20, 57}, {1, 2, 70, 131}, {2, 3, 80, 192}};
    enum { SHAPES = sizeof shapes / sizeof *shapes, FORMS = SHAPES * 6 };
    static const int perms[][4] = {{0, 1, 3, 2}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 2, 3}, {0, 1, 2, 3}, {2, 3, 0, 1}};
    for (int i = 0; i < FORMS * 4; i++) {
        const int64_t *d = shapes[i % SHAPES];
        const int *perm = perms[i / SHAPES % 6];
        size_t element = (size_t)1 << i / FORMS;
        struct copy_part part = {.rank = 4};
        int64_t strides[4] = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}, count = d[0] * d[1] * d[2] * d[3], to = 1;
        for (int k = 3; k >= 0; k--) {
            part.dims[k] = d[perm[k]];
            part.from[k] = strides[perm[k]];
            part.to[k] = to;
            to *= part.dims[k];
        }
        size_t bytes = (size_t)count * element;
        struct guarded in = guarded_new(bytes, i & 1), out = guarded_new(bytes, i & 1);
        for (size_t b = 0; b < bytes; b++)
            ((uint8_t *)in.data)[b] = (uint8_t)random_below(256);
        const struct copy_spec specs[] = {{"transpose", element, 1, &part, GRAPHI_STREAM_NEVER},
                                          {"transpose", element, 1, &part, GRAPHI_STREAM_ALWAYS}};
        for (int past = 0; past < 2; past++) {
            struct kernel kernel;
            memset(out.data, 0, bytes);
            assert_int_equal(copy_bind(&specs[past], past ? isa_detect() : ISA_PLAIN, &kernel), GRAPHI_OK);
            run_checked(&kernel, &(struct kernel_array){in.data, d[0]}, &(struct kernel_array){out.data, d[perm[0]]}, 1,
                        &bytes);
            for (int64_t e = 0; e < count; e++) {
                int64_t rest = e, at = 0;
                for (int k = 3; k >= 0; k--) {
                    at += rest % part.dims[k] * part.from[k];
                    rest /= part.dims[k];
                }
                assert_memory_equal((char *)out.data + (size_t)e * element, (char *)in.data + (size_t)at * element,
                                    element);
            }
        }
        guarded_free(&in);
        guarded_free(&out);
    }
}

/* Lines with gaps on both sides, of every element size: a line read or written at another width than its own. */
static void lines_with_gaps_keep_them(void **state)
{
    enum { ROWS = 5, COLUMNS = 19, STEP = 3, GAP = 2 };
    for (size_t element = 1; element <= 8; element *= 2) {
        uint8_t from[ROWS * COLUMNS * STEP * 8], to[ROWS * COLUMNS * GAP * 8];
        const struct copy_part part = {.rank = 2,
                                       .dims = {ROWS, COLUMNS},
                                       .from = {COLUMNS * STEP, STEP},
                                       .to = {COLUMNS * GAP, GAP}};
        struct kernel kernel;
        for (size_t b = 0; b < sizeof from; b++)
            from[b] = (uint8_t)random_below(256);
        memset(to, 0xa5, sizeof to);
        assert_int_equal(copy_bind(&(struct copy_spec){"copy", element, 1, &part, 0}, ISA_PLAIN, &kernel), GRAPHI_OK);
        assert_int_equal(run_order(&kernel, &(struct kernel_array){from, ROWS}, &(struct kernel_array){to, ROWS}, true),
                         GRAPHI_OK);
        kernel_fini(&kernel);
        for (size_t at = 0; at < ROWS * COLUMNS * GAP; at++)
            for (size_t b = 0; b < element; b++)
                assert_int_equal(to[at * element + b], at % GAP ? 0xa5 : from[at / GAP * STEP * element + b]);
    }
}

enum { BOUND = 9, WIDEST = 48 };

/* Rows of two parts, of which the last batch has four. */
static void check_concat(int64_t a, int64_t c, const struct copy_spec *like, enum isa isa)
{
    float left[BOUND * WIDEST], right[BOUND * WIDEST];
    alignas(64) float out[2 * BOUND * WIDEST];
    fill_random(left, BOUND * a);
    fill_random(right, BOUND * c);
    const struct copy_part parts[] = {
        {.input = 0, .rank = 2, .dims = {BOUND, a}, .from = {a, 1}, .to = {a + c, 1}, .rows = BOUND},
        {.input = 1, .rank = 2, .dims = {BOUND, c}, .from = {c, 1}, .to = {a + c, 1}, .to_offset = a, .rows = BOUND},
    };
    struct copy_spec spec = *like;
    struct kernel kernel;
    spec.part = parts;
    assert_int_equal(copy_bind(&spec, isa, &kernel), GRAPHI_OK);
    for (int i = 0; i < BOUND * (a + c); i++)
        out[i] = 7;
    struct kernel_array in[] = {{left, 4}, {right, 4}}, to = {out, 4};
    assert_int_equal(run_order(&kernel, in, &to, true), GRAPHI_OK);
    kernel_fini(&kernel);
    for (int64_t r = 0; r < BOUND; r++)
        for (int64_t j = 0; j < a + c; j++)
            assert_true(out[r * (a + c) + j] == (r >= 4 ? 7 : j < a ? left[r * a + j] : right[r * c + j - a]));
}

/* Parts of a bounded batch: rows beyond the actual number must stay untouched, also where lines go past the caches, of
 * which these have none, whole ones, or some that do not begin one. */
static void concat_of_a_bounded_batch(void **state)
{
    static const int64_t sizes[][2] = {{3, 5}, {16, WIDEST}, {40, 19}};
    static const struct copy_spec plain = {"concat", 4, 2, NULL, GRAPHI_STREAM_NEVER},
                                  past = {"concat", 4, 2, NULL, GRAPHI_STREAM_ALWAYS};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_concat(sizes[i][0], sizes[i][1], &plain, ISA_PLAIN);
        check_concat(sizes[i][0], sizes[i][1], &past, isa_detect());
    }
}

/* Joined rows go past the caches from 32 MiB on, read and written: asked to do so by size, they do what they do always
 * or never. */
static void large_rows_go_past_the_caches(void **state)
{
    enum { LINE = 512, LARGE = (32 << 20) / (4 * LINE * (int)sizeof(float)) };
    for (int64_t rows = LARGE - 1; rows <= LARGE; rows++) {
        const struct copy_part parts[] = {
            {.input = 0, .rank = 2, .dims = {rows, LINE}, .from = {LINE, 1}, .to = {2 * LINE, 1}},
            {.input = 1, .rank = 2, .dims = {rows, LINE}, .from = {LINE, 1}, .to = {2 * LINE, 1}, .to_offset = LINE},
        };
        const graphi_streaming same = rows == LARGE ? GRAPHI_STREAM_ALWAYS : GRAPHI_STREAM_NEVER;
        const struct copy_spec specs[] = {{"concat", 4, 2, parts, GRAPHI_STREAM_BY_SIZE},
                                          {"concat", 4, 2, parts, same}};
        struct kernel kernel[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(copy_bind(&specs[i], isa_detect(), &kernel[i]), GRAPHI_OK);
        assert_memory_equal(kernel[0].params, kernel[1].params, kernel[0].params_bytes);
        kernel_fini(&kernel[0]);
        kernel_fini(&kernel[1]);
    }
}

/* Rows of several outputs, taken together where all have the same lines: lines of another part, shares that skip or
 * repeat rows, a part with fewer rows taken for one of the others. */
static void split_into_rows(void **state)
{
    enum { ROWS = 3001, COLUMNS = 24, OTHERS = 7, A = 9 };
    float *x = malloc(sizeof(float) * ROWS * COLUMNS), *y = malloc(sizeof(float) * ROWS * COLUMNS);
    fill_random(x, ROWS * COLUMNS);
    for (int less = 0; less < 2; less++) {
        const int64_t rows = less ? OTHERS : ROWS;
        struct copy_part parts[] = {
            {.rank = 2, .dims = {ROWS, A}, .from = {COLUMNS, 1}, .to = {A, 1}},
            {.rank = 2, .dims = {rows, COLUMNS - A}, .from = {COLUMNS, 1}, .to = {COLUMNS - A, 1}, .from_offset = A},
        };
        parts[1].to_offset = ROWS * A;
        struct kernel kernel;
        const size_t bytes = sizeof(float) * ROWS * COLUMNS;
        memset(y, 0xff, bytes); /* as run_checked does */
        assert_int_equal(copy_bind(&(struct copy_spec){"split", 4, 2, parts, 0}, ISA_PLAIN, &kernel), GRAPHI_OK);
        run_checked(&kernel, &(struct kernel_array){x, ROWS}, &(struct kernel_array){y, ROWS}, 1, &bytes);
        for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
            const int64_t row = i / COLUMNS, column = i % COLUMNS;
            const int64_t at = column < A ? row * A + column : ROWS * A + row * (COLUMNS - A) + column - A;
            if (column < A || row < rows)
                assert_true(y[at] == x[i]);
        }
    }
    free(x);
    free(y);
}

/* Lines inside and outside the source, all borders, merged dimensions, and the value of each element type. */
static void padding_fills_the_border(void **state)
{
    static const int64_t cases[][3][3] = {
        {{2, 3, 4}, {0, 0, 0}, {0, 0, 0}},
        {{2, 3, 4}, {1, 0, 2}, {0, 2, 1}},
        {{1, 5, 1}, {0, 1, 0}, {3, 0, 0}},
        {{3, 4, 5}, {0, 2, 0}, {0, 1, 0}},
        {{3, 4, 5}, {0, 0, 2}, {0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *d = cases[i][0], *before = cases[i][1], *after = cases[i][2];
        int64_t o[3] = {d[0] + before[0] + after[0], d[1] + before[1] + after[1], d[2] + before[2] + after[2]};
        struct array_desc in = array_dense(GRAPHI_F32, 3, d), out = array_dense(GRAPHI_F32, 3, o);
        struct pad_spec spec = {
            .name = "pad", .in = &in, .out = &out, .before = {before[0], before[1], before[2]}, .value = -2.5};
        struct guarded x = guarded_random(array_count(&in), false), y = guarded_random(array_count(&out), false);
        struct kernel kernel;
        size_t bytes = 4 * (size_t)array_count(&out);
        assert_int_equal(pad_bind(&spec, &kernel), GRAPHI_OK);
        run_checked(&kernel, &(struct kernel_array){x.data, d[0]}, &(struct kernel_array){y.data, o[0]}, 1, &bytes);
        for (int64_t e = 0; e < array_count(&out); e++) {
            int64_t a = e / o[2] / o[1] - before[0], b = e / o[2] % o[1] - before[1], c = e % o[2] - before[2];
            bool inside = a >= 0 && a < d[0] && b >= 0 && b < d[1] && c >= 0 && c < d[2];
            assert_true(((float *)y.data)[e] == (inside ? ((float *)x.data)[(a * d[1] + b) * d[2] + c] : -2.5f));
        }
        guarded_free(&x);
        guarded_free(&y);
    }
    static const struct {
        graphi_dtype dtype;
        double value;
        uint64_t bits;
    } values[] = {{GRAPHI_F32, 1, 0x3f800000},
                  {GRAPHI_BF16, -1, 0xbf80},
                  {GRAPHI_I32, -1, 0xffffffff},
                  {GRAPHI_I32, INT32_MIN, 0x80000000},
                  {GRAPHI_I32, 1e300, INT32_MAX},
                  {GRAPHI_I64, 3, 3},
                  {GRAPHI_I64, -1e300, 1ull << 63},
                  {GRAPHI_I64, 1e300, INT64_MAX},
                  {GRAPHI_U8, -1, 0},
                  {GRAPHI_U8, 300, 255}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int64_t n = 100;
        struct array_desc out = array_dense(values[i].dtype, 1, &n);
        size_t size = graphi_dtype_size(values[i].dtype), bytes = size * (size_t)n;
        struct guarded y = guarded_new(bytes, false);
        struct kernel kernel;
        assert_int_equal(fill_bind(&out, values[i].value, &kernel), GRAPHI_OK);
        run_checked(&kernel, NULL, &(struct kernel_array){y.data, n}, 1, &bytes);
        for (int64_t e = 0; e < n; e++)
            assert_memory_equal((char *)y.data + (size_t)e * size, &values[i].bits, size);
        guarded_free(&y);
    }
}

/* A single number, and the middle of wider rows: what lies beside them is another's. */
static void fills_and_pads_stay_within(void **state)
{
    enum { ROWS = 7, COLUMNS = 5, LD = 9 };
    static const int64_t dims[] = {ROWS, COLUMNS};
    struct array_desc one = array_dense(GRAPHI_F32, 0, NULL), rows = array_dense(GRAPHI_F32, 2, dims);
    float number = 3, out = 0, wide[ROWS * LD];
    struct kernel kernel;
    const struct pad_spec pad = {.name = "pad", .in = &one, .out = &one, .value = 1};
    assert_int_equal(pad_bind(&pad, &kernel), GRAPHI_OK);
    assert_int_equal(run_order(&kernel, &(struct kernel_array){&number, 1}, &(struct kernel_array){&out, 1}, false),
                     GRAPHI_OK);
    assert_true(out == 3);
    kernel_fini(&kernel);
    rows.strides[0] = LD;
    for (int i = 0; i < ROWS * LD; i++)
        wide[i] = 7;
    assert_int_equal(fill_bind(&rows, 1.5, &kernel), GRAPHI_OK);
    assert_int_equal(run_order(&kernel, NULL, &(struct kernel_array){wide, ROWS}, true), GRAPHI_OK);
    kernel_fini(&kernel);
    for (int i = 0; i < ROWS * LD; i++)
        assert_true(wide[i] == (i % LD < COLUMNS ? 1.5f : 7));
}

/* --- casts --- */

static float bf16_value(uint16_t bits)
{
    uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void cast_array(enum isa isa, graphi_dtype from, graphi_dtype to, const void *in, void *out, int64_t n)
{
    struct array_desc a = array_dense(from, 1, &n), b = array_dense(to, 1, &n);
    struct kernel kernel;
    size_t bytes = (size_t)n * graphi_dtype_size(to);
    assert_int_equal(cast_bind(&a, &b, isa, &kernel), GRAPHI_OK);
    run_checked(&kernel, &(struct kernel_array){(void *)in, n}, &(struct kernel_array){out, n}, 1, &bytes);
}

/* Rounding up at ties (bias in every weight), NaN turned into infinity, overflowing conversions to integers (undefined
 * in C). */
static void casts_round_and_clamp(void **state)
{
    enum { N = 65536 };
    static uint16_t all[N], back[N];
    static float floats[N];
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
        for (int i = 0; i < N; i++)
            all[i] = (uint16_t)i;
        cast_array((enum isa)isa, GRAPHI_BF16, GRAPHI_F32, all, floats, N);
        cast_array((enum isa)isa, GRAPHI_F32, GRAPHI_BF16, floats, back, N);
        for (int i = 0; i < N; i++)
            assert_true(back[i] == all[i] || (isnan(bf16_value(all[i])) && back[i] == (all[i] | 0x40)));
        const float odd[] = {1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1.01p-8f, 3.4e38f, -0.0f, 0x1p-149f};
        const uint16_t rounded[] = {0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x8000, 0};
        uint16_t narrow[6];
        cast_array((enum isa)isa, GRAPHI_F32, GRAPHI_BF16, odd, narrow, 6);
        assert_memory_equal(narrow, rounded, sizeof rounded);
        const float wild[] = {NAN, INFINITY, -INFINITY, 1e20f, -1.9f, 2.9f, 255.9f, 300};
        const int32_t i32[] = {0, INT32_MAX, INT32_MIN, INT32_MAX, -1, 2, 255, 300};
        const int64_t i64[] = {0, INT64_MAX, INT64_MIN, INT64_MAX, -1, 2, 255, 300};
        const uint8_t u8[] = {0, 255, 0, 255, 0, 2, 255, 255};
        int32_t a[8];
        int64_t b[8];
        uint8_t c[8];
        cast_array((enum isa)isa, GRAPHI_F32, GRAPHI_I32, wild, a, 8);
        cast_array((enum isa)isa, GRAPHI_F32, GRAPHI_I64, wild, b, 8);
        cast_array((enum isa)isa, GRAPHI_F32, GRAPHI_U8, wild, c, 8);
        assert_memory_equal(a, i32, sizeof i32);
        assert_memory_equal(b, i64, sizeof i64);
        assert_memory_equal(c, u8, sizeof u8);
        static uint8_t bytes[1000];
        static float wide[1000];
        for (int i = 0; i < 1000; i++)
            bytes[i] = (uint8_t)i;
        cast_array((enum isa)isa, GRAPHI_U8, GRAPHI_F32, bytes, wide, 1000);
        for (int i = 0; i < 1000; i++)
            assert_true(wide[i] == (float)(i & 255));
    }
}

/* Rows of wider arrays, and a batch of which a part is there: what lies beside or behind is another's. */
static void casts_of_rows(void **state)
{
    enum { ROWS = 6, HERE = 4, COLUMNS = 5, IN = 9, OUT = 7 };
    static const int64_t dims[] = {ROWS, COLUMNS};
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++)
        for (int gaps = 0; gaps < 2; gaps++)
            for (int rank = 1; rank <= 2; rank++) {
                int64_t ld_in = gaps && rank == 2 ? IN : rank == 2 ? COLUMNS : 1;
                int64_t ld_out = gaps && rank == 2 ? OUT : rank == 2 ? COLUMNS : 1, columns = rank == 2 ? COLUMNS : 1;
                struct array_desc a = array_dense(GRAPHI_I32, rank, dims), b = array_dense(GRAPHI_F32, rank, dims);
                int32_t in[ROWS * IN];
                float out[ROWS * OUT];
                struct kernel kernel;
                a.strides[0] = ld_in;
                b.strides[0] = ld_out;
                a.bounded = b.bounded = true;
                for (int i = 0; i < ROWS * IN; i++)
                    in[i] = i;
                for (int i = 0; i < ROWS * OUT; i++)
                    out[i] = -1;
                assert_int_equal(cast_bind(&a, &b, (enum isa)isa, &kernel), GRAPHI_OK);
                assert_int_equal(run_order(&kernel, &(struct kernel_array){in, HERE}, &(struct kernel_array){out, HERE},
                                           true),
                                 GRAPHI_OK);
                kernel_fini(&kernel);
                for (int64_t i = 0; i < ROWS * OUT; i++) {
                    int64_t r = i / ld_out, c = i % ld_out;
                    assert_true(out[i] == (r < HERE && c < columns ? (float)in[r * ld_in + c] : -1));
                }
            }
}

/* --- embedding --- */

/* Repeated ids added in another order, columns at the border of shares, rows that no id names left unwritten. */
static void embedding_gathers_and_adds_in_order(void **state)
{
    static const int64_t cases[][3] = {{100, 7, 5}, {3000, 50, 300}, {40, 1000, 513}, {9000, 3, 100},
                                       {1, 1, 1},   {0, 5, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
            int64_t count = cases[i][0], rows = cases[i][1], columns = cases[i][2], gap = isa == 1 ? 3 : 0;
            struct guarded table = guarded_random(rows * columns, false), ids = guarded_new((size_t)count * 4, false);
            struct guarded y = guarded_random(span(count, columns, columns + gap), false),
                           dtable = guarded_random(rows * columns, false);
            int32_t *id = ids.data;
            for (int64_t k = 0; k < count; k++)
                id[k] = (int32_t)random_below(rows);
            struct embedding_spec spec = {
                .count = count, .rows = rows, .columns = columns, .ld_table = columns, .ld_y = columns + gap};
            struct kernel kernel;
            assert_int_equal(embedding_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
            struct kernel_array in[] = {{table.data, rows}, {ids.data, count}, {y.data, count}};
            size_t none = 0, bytes = 4 * (size_t)(rows * columns);
            run_checked(&kernel, in, &in[2], 1, &none);
            for (int64_t k = 0; k < count; k++)
                assert_memory_equal((float *)y.data + k * spec.ld_y, (float *)table.data + id[k] * columns,
                                    4 * (size_t)columns);
            fill_random(y.data, span(count, columns, columns + gap));
            assert_int_equal(embedding_gradient_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
            run_checked(&kernel, in + 1, &(struct kernel_array){dtable.data, rows}, 1, &bytes);
            float *want = calloc((size_t)(rows * columns), 4);
            for (int64_t k = 0; k < count; k++)
                for (int64_t j = 0; j < columns; j++)
                    want[id[k] * columns + j] += ((float *)y.data)[k * spec.ld_y + j];
            assert_memory_equal(want, dtable.data, bytes);
            free(want);
            struct guarded *all[] = {&table, &ids, &y, &dtable};
            for (int k = 0; k < 4; k++)
                guarded_free(all[k]);
        }
}

/* An id out of range reads or writes anywhere in memory. */
static void embedding_names_the_bad_id(void **state)
{
    float table[4 * 2] = {0}, y[3 * 2];
    int32_t ids[3] = {1, 4, -1};
    struct embedding_spec spec = {.count = 3, .rows = 4, .columns = 2, .ld_table = 2, .ld_y = 2};
    struct kernel kernel;
    struct kernel_array in[] = {{table, 4}, {ids, 3}, {y, 3}};
    assert_int_equal(embedding_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_OK);
    assert_int_equal(run_order(&kernel, in, &in[2], false), GRAPHI_INVALID);
    assert_string_equal(graphi_message(), "INVALID: embedding: found id 4 at position 1, expected 0 to 3");
    kernel_fini(&kernel);
    ids[1] = 2;
    assert_int_equal(embedding_gradient_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_OK);
    assert_int_equal(run_order(&kernel, in + 1, &in[0], false), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found id -1 at position 2"));
    kernel_fini(&kernel);
    assert_int_equal(one_hot_bind(&(struct embedding_spec){.count = 1, .rows = 2, .ld_y = 2}, ISA_PLAIN, &kernel),
                     GRAPHI_OK);
    assert_int_equal(run_order(&kernel, in + 1, &in[2], false), GRAPHI_OK);
    assert_true(y[0] == 0 && y[1] == 1);
    kernel_fini(&kernel);
}

/* A bind that fails for lack of memory must say so and leave nothing. */
static void binds_survive_allocation_failure(void **state)
{
    int64_t n = 4;
    struct array_desc a = array_dense(GRAPHI_F32, 1, &n);
    struct copy_part part = {.rank = 1, .dims = {4}, .from = {1}, .to = {1}};
    struct pool_spec pool = {.shape = {.n = 1, .h = 2, .w = 2, .c = 1, .kh = 1, .kw = 1, .stride_h = 1, .stride_w = 1}};
    struct norm_spec norm = {.rows = 2, .c = 2, .ldx = 2, .ldy = 2};
    struct embedding_spec embedding = {.count = 1, .rows = 1, .columns = 1};
    struct pad_spec pad = {.name = "pad", .in = &a, .out = &a};
    struct kernel kernel;
    mem_fail_after(0);
    assert_int_equal(pool_bind(&pool, ISA_PLAIN, &kernel), GRAPHI_MEMORY);
    assert_int_equal(norm_bind(&norm, ISA_PLAIN, &kernel), GRAPHI_MEMORY);
    assert_int_equal(copy_bind(&(struct copy_spec){"copy", 4, 1, &part, 0}, ISA_PLAIN, &kernel), GRAPHI_MEMORY);
    assert_int_equal(pad_bind(&pad, &kernel), GRAPHI_MEMORY);
    assert_int_equal(fill_bind(&a, 0, &kernel), GRAPHI_MEMORY);
    assert_int_equal(cast_bind(&a, &a, ISA_PLAIN, &kernel), GRAPHI_MEMORY);
    assert_int_equal(embedding_bind(&embedding, ISA_PLAIN, &kernel), GRAPHI_MEMORY);
    assert_int_equal(embedding_gradient_bind(&embedding, ISA_PLAIN, &kernel), GRAPHI_MEMORY);
    mem_fail_after(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_norm_equals_its_definition),
        cmocka_unit_test(batch_norm_by_given_statistics),
        cmocka_unit_test(batch_norm_of_a_bounded_batch),
        cmocka_unit_test(lrn_equals_its_definition),
        cmocka_unit_test(lrn_of_rows_that_end_anywhere),
        cmocka_unit_test(lrn_of_responses_without_limits),
        cmocka_unit_test(transposes_move_every_element),
        cmocka_unit_test(lines_with_gaps_keep_them),
        cmocka_unit_test(concat_of_a_bounded_batch),
        cmocka_unit_test(large_rows_go_past_the_caches),
        cmocka_unit_test(split_into_rows),
        cmocka_unit_test(padding_fills_the_border),
        cmocka_unit_test(fills_and_pads_stay_within),
        cmocka_unit_test(casts_round_and_clamp),
        cmocka_unit_test(casts_of_rows),
        cmocka_unit_test(embedding_gathers_and_adds_in_order),
        cmocka_unit_test(embedding_names_the_bad_id),
        cmocka_unit_test(binds_survive_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
