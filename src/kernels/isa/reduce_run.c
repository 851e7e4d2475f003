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

#define RUN(name, take, join, one, start)                                                                              \
    static float run_##name(const float *x, int64_t n)                                                                 \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        float lane[LANES];                                                                                             \
        if (n < LANES) {                                                                                               \
            float all = start;                                                                                         \
            for (; i < n; i++)                                                                                         \
                all = one(all, take(x[i]));                                                                            \
            return all;                                                                                                \
        }                                                                                                              \
        vf sum[VECTORS];                                                                                               \
        for (int j = 0; j < VECTORS; j++)                                                                              \
            sum[j] = vset(start);                                                                                      \
        for (; i + LANES <= n; i += LANES)                                                                             \
            for (int j = 0; j < VECTORS; j++) {                                                                        \
                vf v = vload(x + i + j * VL);                                                                          \
                sum[j] = join(sum[j], take(v));                                                                        \
            }                                                                                                          \
        for (int j = 0; j < VECTORS; j++)                                                                              \
            vstore(lane + j * VL, sum[j]);                                                                             \
        for (int j = 0; i < n; i++, j++)                                                                               \
            lane[j] = one(lane[j], take(x[i]));                                                                        \
        for (int half = LANES / 2; half; half /= 2)                                                                    \
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

RUN(sum, TAKE_SUM, JOIN_ADD, ONE_ADD, 0)
RUN(max, TAKE_SUM, JOIN_MAX, ONE_MAX, -INFINITY)
RUN(squares, TAKE_SQUARE, JOIN_ADD, ONE_ADD, 0)
ROWS(sum, TAKE_SUM, JOIN_ADD)
ROWS(max, TAKE_SUM, JOIN_MAX)
ROWS(squares, TAKE_SQUARE, JOIN_ADD)

const struct reduce_loops ISA_NAME(reduce_loops) = {
    .run =
        {[REDUCE_SUM] = run_sum, [REDUCE_MEAN] = run_sum, [REDUCE_MAX] = run_max, [REDUCE_SUM_SQUARES] = run_squares},
    .rows = {[REDUCE_SUM] = rows_sum,
             [REDUCE_MEAN] = rows_sum,
             [REDUCE_MAX] = rows_max,
             [REDUCE_SUM_SQUARES] = rows_squares},
};
