/* SPDX-License-Identifier: Apache-2.0 */
/* One loop for each pair of element types, once per instruction set: the compiler vectorises the blocks of constant
 * length. */
#include "kernels/cast.h"

#include "kernels/isa/round.h"

void ISA_NAME(cast_run)(graphi_dtype from, graphi_dtype to, const void *in, void *out, int64_t n);

typedef struct bf16 {
    uint16_t bits;
} bf16;

static inline float widen(bf16 x)
{
    uint32_t u = (uint32_t)x.bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline bf16 narrow(float f) { return (bf16){(uint16_t)round_half(f)}; }

/* Limits are the largest floats that fit. */
static inline int32_t to_i32(float f)
{
    return f != f ? 0 : f >= 2147483648.0f ? INT32_MAX : f < -2147483648.0f ? INT32_MIN : (int32_t)f;
}
static inline int64_t to_i64(float f)
{
    return f != f ? 0 : f >= 9223372036854775808.0f ? INT64_MAX : f < -9223372036854775808.0f ? INT64_MIN : (int64_t)f;
}
static inline uint8_t to_u8(float f)
{
    return f > 255 ? 255 : f > 0 ? (uint8_t)f : 0;
}

/* X(name, from, to, expression of x) */
#define PAIRS(X)                                                                                                       \
    X(f32_i32, float, int32_t, to_i32(x))                                                                              \
    X(f32_i64, float, int64_t, to_i64(x))                                                                              \
    X(f32_u8, float, uint8_t, to_u8(x))                                                                                \
    X(bf16_f32, bf16, float, widen(x))                                                                                 \
    X(bf16_i32, bf16, int32_t, to_i32(widen(x)))                                                                       \
    X(bf16_i64, bf16, int64_t, to_i64(widen(x)))                                                                       \
    X(bf16_u8, bf16, uint8_t, to_u8(widen(x)))                                                                         \
    X(i32_f32, int32_t, float, (float)x)                                                                               \
    X(i32_bf16, int32_t, bf16, narrow((float)x))                                                                       \
    X(i32_i64, int32_t, int64_t, x)                                                                                    \
    X(i32_u8, int32_t, uint8_t, (uint8_t)x)                                                                            \
    X(i64_f32, int64_t, float, (float)x)                                                                               \
    X(i64_bf16, int64_t, bf16, narrow((float)x))                                                                       \
    X(i64_i32, int64_t, int32_t, (int32_t)x)                                                                           \
    X(i64_u8, int64_t, uint8_t, (uint8_t)x)                                                                            \
    X(u8_f32, uint8_t, float, x)                                                                                       \
    X(u8_bf16, uint8_t, bf16, narrow(x))                                                                               \
    X(u8_i32, uint8_t, int32_t, x)                                                                                     \
    X(u8_i64, uint8_t, int64_t, x)

#define LOOP(name, source, target, expression)                                                                         \
    static void cast_##name(const void *restrict in, void *restrict out, int64_t n)                                    \
    {                                                                                                                  \
        const source *restrict a = in;                                                                                 \
        target *restrict b = out;                                                                                      \
        int64_t i = 0;                                                                                                 \
        for (; i + 64 <= n; i += 64)                                                                                   \
            for (int j = 0; j < 64; j++) {                                                                             \
                source x = a[i + j];                                                                                   \
                b[i + j] = expression;                                                                                 \
            }                                                                                                          \
        for (; i < n; i++) {                                                                                           \
            source x = a[i];                                                                                           \
            b[i] = expression;                                                                                         \
        }                                                                                                              \
    }
PAIRS(LOOP)

static void cast_f32_bf16(const void *restrict in, void *restrict out, int64_t n)
{
    const float *restrict a = in;
    bf16 *restrict b = out;
    int64_t i = 0;
    for (; i + ROUND_BLOCK <= n; i += ROUND_BLOCK)
        round_block(a + i, &b[i].bits);
    for (; i < n; i++)
        b[i] = narrow(a[i]);
}

void ISA_NAME(cast_run)(graphi_dtype from, graphi_dtype to, const void *in, void *out, int64_t n)
{
    static void (*const loops[5][5])(const void *restrict, void *restrict, int64_t) = {
        [GRAPHI_F32] = {NULL, cast_f32_bf16, cast_f32_i32, cast_f32_i64, cast_f32_u8},
        [GRAPHI_BF16] = {cast_bf16_f32, NULL, cast_bf16_i32, cast_bf16_i64, cast_bf16_u8},
        [GRAPHI_I32] = {cast_i32_f32, cast_i32_bf16, NULL, cast_i32_i64, cast_i32_u8},
        [GRAPHI_I64] = {cast_i64_f32, cast_i64_bf16, cast_i64_i32, NULL, cast_i64_u8},
        [GRAPHI_U8] = {cast_u8_f32, cast_u8_bf16, cast_u8_i32, cast_u8_i64, NULL},
    };
    if (from == to)
        memcpy(out, in, (size_t)n * graphi_dtype_size(from));
    else
        loops[from][to](in, out, n);
}
