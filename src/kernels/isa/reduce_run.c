/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops of reductions, compiled once per instruction set. The order of operations is the same in all forms: 64
 * lanes, whatever the width of a vector, and rows by fours. */
#include "kernels/reduce_isa.h"

#include "kernels/isa/isa.h"

enum { LANES = 64, VECTORS = LANES / VL };

#define TAKE_SUM(x) (x)
#define TAKE_SQUARE(x) rounded((x) * (x))

/* Keeps a product from being fused with the addition that follows, so that all forms agree. */
#define rounded(product)                                                                                               \
    ({                                                                                                                 \
        __typeof__(product) once = product;                                                                            \
        __asm__("" : ISA_REGISTER(once));                                                                              \
        once;                                                                                                          \
    })
#if defined(__x86_64__)
#define ISA_REGISTER(v) "+v"(v)
#else
#define ISA_REGISTER(v) "+w"(v)
#endif

#define JOIN_ADD(a, b) ((a) + (b))
#define JOIN_MAX(a, b) vmax(a, b)
static inline float one_max(float a, float b)
{
    return a != a || a > b ? a : b;
}
#define ONE_ADD(a, b) ((a) + (b))
#define ONE_MAX(a, b) one_max(a, b)

/* What is reduced, at p by `load`: of a vector, or of one element. */
#define ELEMENT(load, p) load(x + (p))
#define SQUARE(load, p) TAKE_SQUARE(load(x + (p)))
#define PRODUCT(load, p) rounded(load(x + (p)) * load(y + (p)))
static inline float one_load(const float *p)
{
    return *p;
}

/* Lanes first, lanes of what is left over, then a tree of halves: in vectors as far as it goes. */
#define EACH(j, count)                                                                                                 \
    _Pragma("GCC unroll 8") for (int j = 0; j < (count); j++) /* in registers where vectors are few */
#define RUN(name, arguments, take, join, one, start)                                                                   \
    static float name arguments                                                                                        \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        float lane[LANES];                                                                                             \
        if (n < LANES) {                                                                                               \
            float all = start;                                                                                         \
            for (; i < n; i++)                                                                                         \
                all = one(all, take(one_load, i));                                                                     \
            return all;                                                                                                \
        }                                                                                                              \
        vf sum[VECTORS];                                                                                               \
        EACH(j, VECTORS)                                                                                               \
            sum[j] = vset(start);                                                                                      \
        for (; i + LANES <= n; i += LANES)                                                                             \
            EACH(j, VECTORS) {                                                                                         \
                vf v = take(vload, i + j * VL);                                                                        \
                sum[j] = join(sum[j], v);                                                                              \
            }                                                                                                          \
        if (i < n) {                                                                                                   \
            EACH(j, VECTORS)                                                                                           \
                vstore(lane + j * VL, sum[j]);                                                                         \
            for (int j = 0; i < n; i++, j++)                                                                           \
                lane[j] = one(lane[j], take(one_load, i));                                                             \
            EACH(j, VECTORS)                                                                                           \
                sum[j] = vload(lane + j * VL);                                                                         \
        }                                                                                                              \
        _Pragma("GCC unroll 3") for (int half = VECTORS / 2; half; half /= 2)                                          \
            EACH(j, half) sum[j] = join(sum[j], sum[j + half]);                                                        \
        vstore(lane, sum[0]);                                                                                          \
        for (int half = VL / 2; half; half /= 2)                                                                       \
            for (int j = 0; j < half; j++)                                                                             \
                lane[j] = one(lane[j], lane[j + half]);                                                                \
        return lane[0];                                                                                                \
    }

#define ROWS(name, take, join)                                                                                         \
    static inline vf four_##name(vf s, vf a, vf b, vf c, vf d)                                                         \
    {                                                                                                                  \
        return join(s, join(join(take(a), take(b)), join(take(c), take(d))));                                          \
    }                                                                                                                  \
    static void rows_##name(float *sum, const float *const *x, int count, int n)                                       \
    {                                                                                                                  \
        int i = 0;                                                                                                     \
        if (count == 4) {                                                                                              \
            const float *a = x[0], *b = x[1], *c = x[2], *d = x[3];                                                    \
            for (; i + VL <= n; i += VL)                                                                               \
                vstore(sum + i, four_##name(vload(sum + i), vload(a + i), vload(b + i), vload(c + i), vload(d + i)));  \
            int m = n - i;                                                                                             \
            if (m)                                                                                                     \
                vstore_n(sum + i,                                                                                      \
                         four_##name(vload_n(sum + i, m), vload_n(a + i, m), vload_n(b + i, m), vload_n(c + i, m),     \
                                     vload_n(d + i, m)),                                                               \
                         m);                                                                                           \
            return;                                                                                                    \
        }                                                                                                              \
        for (int r = 0; r < count; r++) {                                                                              \
            for (i = 0; i + VL <= n; i += VL) {                                                                        \
                vf v = vload(x[r] + i);                                                                                \
                vstore(sum + i, join(vload(sum + i), take(v)));                                                        \
            }                                                                                                          \
            int m = n - i;                                                                                             \
            if (m) {                                                                                                   \
                vf v = vload_n(x[r] + i, m);                                                                           \
                vstore_n(sum + i, join(vload_n(sum + i, m), take(v)), m);                                              \
            }                                                                                                          \
        }                                                                                                              \
    }

RUN(run_sum, (const float *x, int64_t n), ELEMENT, JOIN_ADD, ONE_ADD, 0)
RUN(run_max, (const float *x, int64_t n), ELEMENT, JOIN_MAX, ONE_MAX, -INFINITY)
RUN(run_squares, (const float *x, int64_t n), SQUARE, JOIN_ADD, ONE_ADD, 0)
RUN(dot, (const float *x, const float *y, int64_t n), PRODUCT, JOIN_ADD, ONE_ADD, 0)
ROWS(sum, TAKE_SUM, JOIN_ADD)
ROWS(max, TAKE_SUM, JOIN_MAX)
ROWS(squares, TAKE_SQUARE, JOIN_ADD)

const struct reduce_loops ISA_NAME(reduce_loops) = {
    .run =
        {[REDUCE_SUM] = run_sum, [REDUCE_MEAN] = run_sum, [REDUCE_MAX] = run_max, [REDUCE_SUM_SQUARES] = run_squares},
    .dot = dot,
    .rows = {[REDUCE_SUM] = rows_sum,
             [REDUCE_MEAN] = rows_sum,
             [REDUCE_MAX] = rows_max,
             [REDUCE_SUM_SQUARES] = rows_squares},
};
