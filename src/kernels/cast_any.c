/* SPDX-License-Identifier: Apache-2.0 */
/* See cast_any.h. A block of elements is widened to whole numbers of 64 bits or to float64, both exact, and narrowed
 * from there, so that each number is rounded once: twice as many loops as there are types, not their square. */
#include "kernels/cast_any.h"

#include "base/element.h"
#include "base/number.h"

enum { BLOCK = 256 };

union wide {
    int64_t whole[BLOCK]; /* of uint64 its bits */
    uint64_t natural[BLOCK];
    double real[BLOCK];
};

typedef void (*widen_function)(const void *in, union wide *out, int64_t n);
typedef void (*narrow_function)(const union wide *in, void *out, int64_t n);

static double from_bfloat(uint16_t bits) { return float_of_bits(GRAPHI_BF16, bits); }
static uint16_t to_bfloat(double value) { return (uint16_t)value_bits(GRAPHI_BF16, value); }
static uint16_t single_to_half(float value) { return half_bits((double)value); }

/* X(TYPE, C type, member of the union, expression of x) */
#define WIDENED(X)                                                                                                     \
    X(F32, float, real, x)                                                                                             \
    X(BF16, uint16_t, real, from_bfloat(x))                                                                            \
    X(F16, uint16_t, real, (double)half_value(x))                                                                      \
    X(F64, double, real, x)                                                                                            \
    X(BOOL, uint8_t, whole, x != 0)                                                                                    \
    X(I8, int8_t, whole, x)                                                                                            \
    X(U8, uint8_t, whole, x)                                                                                           \
    X(I16, int16_t, whole, x)                                                                                          \
    X(U16, uint16_t, whole, x)                                                                                         \
    X(I32, int32_t, whole, x)                                                                                          \
    X(U32, uint32_t, whole, x)                                                                                         \
    X(I64, int64_t, whole, x)                                                                                          \
    X(U64, uint64_t, natural, x)

#define WIDEN(type, c, member, expression)                                                                             \
    static void widen_##type(const void *in, union wide *out, int64_t n)                                               \
    {                                                                                                                  \
        const c *a = in;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const c x = a[i];                                                                                          \
            out->member[i] = expression;                                                                               \
        }                                                                                                              \
    }
WIDENED(WIDEN)

/* X(TYPE, C type, of a float64, of a whole number) */
#define NARROWED(X)                                                                                                    \
    X(F32, float, (float)x, (float)x)                                                                                  \
    X(BF16, uint16_t, to_bfloat(x), to_bfloat((float)x))                                                               \
    X(F16, uint16_t, half_bits(x), single_to_half((float)x))                                                           \
    X(F64, double, x, (double)x)                                                                                       \
    X(BOOL, uint8_t, x != 0, x != 0)                                                                                   \
    X(I8, int8_t, (int8_t)value_bits(GRAPHI_I8, x), (int8_t)x)                                                         \
    X(U8, uint8_t, (uint8_t)value_bits(GRAPHI_U8, x), (uint8_t)x)                                                      \
    X(I16, int16_t, (int16_t)value_bits(GRAPHI_I16, x), (int16_t)x)                                                    \
    X(U16, uint16_t, (uint16_t)value_bits(GRAPHI_U16, x), (uint16_t)x)                                                 \
    X(I32, int32_t, (int32_t)value_bits(GRAPHI_I32, x), (int32_t)x)                                                    \
    X(U32, uint32_t, (uint32_t)value_bits(GRAPHI_U32, x), (uint32_t)x)                                                 \
    X(I64, int64_t, (int64_t)value_bits(GRAPHI_I64, x), (int64_t)x)                                                    \
    X(U64, uint64_t, value_bits(GRAPHI_U64, x), (uint64_t)x)

#define NARROW(name, c, source, member, expression)                                                                    \
    static void name(const union wide *in, void *out, int64_t n)                                                       \
    {                                                                                                                  \
        c *b = out;                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const source x = in->member[i];                                                                            \
            b[i] = expression;                                                                                         \
        }                                                                                                              \
    }
#define NARROWS(type, c, of_real, of_whole)                                                                            \
    NARROW(real_to_##type, c, double, real, of_real)                                                                   \
    NARROW(whole_to_##type, c, int64_t, whole, of_whole)                                                               \
    NARROW(natural_to_##type, c, uint64_t, natural, of_whole)
NARROWED(NARROWS)

static const widen_function widen[GRAPHI_DTYPES] = {
#define X(type, c, member, expression) [GRAPHI_##type] = widen_##type,
    WIDENED(X)
#undef X
};
static const struct {
    narrow_function real, whole, natural;
} narrow[GRAPHI_DTYPES] = {
#define X(type, c, of_real, of_whole) [GRAPHI_##type] = {real_to_##type, whole_to_##type, natural_to_##type},
    NARROWED(X)
#undef X
};

void cast_any(graphi_dtype from, graphi_dtype to, const void *in, void *out, int64_t n)
{
    const size_t read = graphi_dtype_size(from), written = graphi_dtype_size(to);
    const narrow_function end = dtype_is_float(from)   ? narrow[to].real
                                : from == GRAPHI_U64 ? narrow[to].natural
                                                     : narrow[to].whole;
    if (from == to) {
        memcpy(out, in, (size_t)n * read);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        union wide wide;
        const int64_t count = least(n - i, BLOCK);
        widen[from]((const char *)in + (size_t)i * read, &wide, count);
        end(&wide, (char *)out + (size_t)i * written, count);
    }
}
