/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over one row of a softmax, compiled once per instruction set. Sums are taken over blocks that are in L1 by the
 * reduction loops, whose order does not depend on the instruction set. */
#include "kernels/softmax_isa.h"

#include "kernels/isa/isa.h"
#include "kernels/isa/vmath.h"
#include "kernels/reduce_isa.h"

enum { BLOCK = 2048 };

#define EACH(n, i, whole, part)                                                                                        \
    do {                                                                                                               \
        int64_t i = 0;                                                                                                 \
        for (; i + VL <= (n); i += VL) {                                                                               \
            whole;                                                                                                     \
        }                                                                                                              \
        if (i < (n)) {                                                                                                 \
            int m = (int)((n)-i);                                                                                      \
            part;                                                                                                      \
        }                                                                                                              \
    } while (0)

#define MAP1(y, x, n, f) EACH(n, i, vstore((y) + i, f(vload((x) + i))), vstore_n((y) + i, f(vload_n((x) + i, m)), m))
#define MAP2(y, a, b, n, f)                                                                                            \
    EACH(n, i, vstore((y) + i, f(vload((a) + i), vload((b) + i))),                                                     \
         vstore_n((y) + i, f(vload_n((a) + i, m), vload_n((b) + i, m)), m))

static float sum_of(const float *x, int64_t n)
{
    return ISA_NAME(reduce_loops).run[REDUCE_SUM](x, n);
}

static float exp_shift(float *y, const float *x, float shift, int64_t n)
{
    vf by = vset(shift);
    float sum = 0;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = n - at < BLOCK ? n - at : BLOCK;
#define F(v) vexp((v)-by)
        MAP1(y + at, x + at, count, F);
#undef F
        sum += sum_of(y + at, count);
    }
    return sum;
}

static float exp_sum(const float *x, float shift, int64_t n)
{
    float block[BLOCK], sum = 0;
    for (int64_t at = 0; at < n; at += BLOCK)
        sum += exp_shift(block, x + at, shift, n - at < BLOCK ? n - at : BLOCK);
    return sum;
}

static void scale(float *y, const float *x, float by, int64_t n)
{
    vf factor = vset(by);
#define F(v) ((v)*factor)
    MAP1(y, x, n, F);
#undef F
}

static void shift_by(float *y, const float *x, float by, int64_t n)
{
    vf amount = vset(by);
#define F(v) ((v)-amount)
    MAP1(y, x, n, F);
#undef F
}

/* Long rows in blocks, so that no lane adds up too many. */
static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
    for (int64_t at = 0; at < n; at += BLOCK)
        sum += ISA_NAME(reduce_loops).dot(a + at, b + at, n - at < BLOCK ? n - at : BLOCK);
    return sum;
}

/* What went past the caches is in memory before others are told that it is there. */
static void settle(void)
{
#if VL > 1
    _mm_sfence();
#endif
}

/* One loop for stores past the caches, one for others. */
#define GRADIENT(dx, y, dy, n, f)                                                                                      \
    do {                                                                                                               \
        if (!past || (uintptr_t)(dx) % 64) {                                                                           \
            MAP2(dx, y, dy, n, f);                                                                                     \
            break;                                                                                                     \
        }                                                                                                              \
        EACH(n, i, vstream((dx) + i, f(vload((y) + i), vload((dy) + i))),                                              \
             vstore_n((dx) + i, f(vload_n((y) + i, m), vload_n((dy) + i, m)), m));                                     \
        settle();                                                                                                      \
    } while (0)

static void gradient(float *dx, const float *y, const float *dy, float total, int64_t n, bool past)
{
    vf by = vset(total);
#define F(v, w) ((v) * ((w)-by))
    GRADIENT(dx, y, dy, n, F);
#undef F
}

static void log_gradient(float *dx, const float *y, const float *dy, float total, int64_t n, bool past)
{
    vf by = vset(total);
#define F(v, w) vfnma(vexp(v), by, w)
    GRADIENT(dx, y, dy, n, F);
#undef F
}

static float log_one(float x)
{
    float all[VL];
    vstore(all, vlog(vset(x)));
    return all[0];
}

const struct softmax_loops ISA_NAME(softmax_loops) = {
    .exp_shift = exp_shift,
    .exp_sum = exp_sum,
    .scale = scale,
    .shift = shift_by,
    .sum = sum_of,
    .dot = dot,
    .gradient = gradient,
    .log_gradient = log_gradient,
    .log = log_one,
};
