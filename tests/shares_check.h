/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as tests run them: every share of every phase, in both orders, on arrays of rows with gaps between them. */
#ifndef TESTS_SHARES_CHECK_H
#define TESTS_SHARES_CHECK_H

#include "guarded.h"
#include "kernels/kernel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* How the engine may run a kernel. Joined: each phase is in pieces, as many as it has shares but `width` at most. */
struct run_way {
    int width;
    bool backwards, joined;
};

/* Runs all shares, backwards within each phase or forwards. The workspace is filled with NaN first: nothing may be read
 * unwritten. */
static inline graphi_status run_as(const struct kernel *kernel, const struct kernel_array *in,
                                   const struct kernel_array *out, struct run_way way)
{
    struct guarded workspace = guarded_new(kernel->workspace, false);
    memset(workspace.data, 0xff, kernel->workspace);
    struct kernel_call call = {
        .in = in, .out = out, .params = kernel->params, .workspace = kernel->workspace ? workspace.data : NULL};
    graphi_status status = GRAPHI_OK;
    for (int phase = 0; phase < kernel->phases; phase++) {
        const int shares = kernel->shares[phase];
        call.width = way.joined && shares < way.width ? shares : way.width;
        for (int i = 0; i < shares && status == GRAPHI_OK; i++)
            status = kernel->run(&call, phase, way.backwards ? shares - 1 - i : i);
    }
    guarded_free(&workspace);
    return status;
}

/* Forwards as of one thread, or backwards as of three. */
static inline graphi_status run_order(const struct kernel *kernel, const struct kernel_array *in,
                                      const struct kernel_array *out, bool backwards)
{
    return run_as(kernel, in, out, (struct run_way){.width = backwards ? 3 : 1, .backwards = backwards});
}

/* Runs both orders, share by share, and in pieces that others join into out[0..outputs) and asserts the same bits.
 * Leaves the result. */
static inline void run_checked(struct kernel *kernel, const struct kernel_array *in, const struct kernel_array *out,
                        int outputs, const size_t *bytes)
{
    static const struct run_way others[] = {{3, true, false}, {0, false, false}, {32, true, true}};
    void *first[4];
    for (int phase = 0; phase < kernel->phases; phase++)
        assert_in_range(kernel->shares[phase], 1, 64);
    assert_int_equal(run_order(kernel, in, out, false), GRAPHI_OK);
    for (int i = 0; i < outputs; i++) {
        first[i] = malloc(bytes[i] + 1);
        memcpy(first[i], out[i].data, bytes[i]);
    }
    for (size_t way = 0; way < sizeof others / sizeof *others; way++) {
        for (int i = 0; i < outputs; i++)
            memset(out[i].data, 0xff, bytes[i]);
        assert_int_equal(run_as(kernel, in, out, others[way]), GRAPHI_OK);
        for (int i = 0; i < outputs; i++)
            assert_memory_equal(first[i], out[i].data, bytes[i]);
    }
    for (int i = 0; i < outputs; i++)
        free(first[i]);
    kernel_fini(kernel);
}

static inline void assert_near(const float *a, const float *b, int64_t rows, int64_t c, int64_t ld, double bound)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < c; j++) {
            double x = a[r * ld + j], y = b[r * c + j];
            if (x != y && !(fabs(x - y) <= bound * (1 + fabs(y))) && !(isnan(x) && isnan(y)))
                fail_msg("row %lld column %lld: found %.9g, expected %.9g", (long long)r, (long long)j, x, y);
        }
}

/* Elements of a row-strided array of rows x c that ends at the last element. */
static inline int64_t span(int64_t rows, int64_t c, int64_t ld)
{
    return rows && c ? (rows - 1) * ld + c : 0;
}

/* What lies between the rows of a strided output belongs to others: marked before, found unchanged after. */
static inline void gaps(float *a, int64_t rows, int64_t c, int64_t ld, bool check)
{
    for (int64_t r = 0; r + 1 < rows && c; r++)
        for (int64_t j = c; j < ld; j++) {
            if (check)
                assert_true(a[r * ld + j] == 12345);
            a[r * ld + j] = 12345;
        }
}

static inline void spread_rows(float *to, const float *from, int64_t rows, int64_t c, int64_t ld)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < c; j++)
            to[r * ld + j] = from[r * c + j];
}

#endif
