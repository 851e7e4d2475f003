/* SPDX-License-Identifier: Apache-2.0 */
/* Elements between memory and domains (element.h): a function for each pair, made by macros. Any thread. */
#include "value/element.h"

#include "value/small_float.h"

#include <math.h>
#include <string.h>

enum domain element_domain(graphi_element type)
{
    if (type == T_F64)
        return DOMAIN_F64;
    if (type == T_U64)
        return DOMAIN_U64;
    return element_is_float(type) ? DOMAIN_F32 : DOMAIN_I64;
}

float half_to_float(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float number = exponent == 0    ? ldexpf((float)fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexpf((float)(fraction | 1024), exponent - 25);
    return bits & 0x8000 ? -number : number;
}

uint16_t half_from_double(double number)
{
    const uint16_t sign = signbit(number) ? 0x8000 : 0;
    const double magnitude = fabs(number);
    int exponent;
    if (isnan(number))
        return sign | 0x7e00;
    if (magnitude >= 65520)
        return sign | 0x7c00;
    if (magnitude < 0x1p-14)
        return sign | (uint16_t)rint(magnitude * 0x1p24);
    frexp(magnitude, &exponent);                                   /* magnitude = 0.5 to 1 times 2^exponent */
    const double fraction = rint(ldexp(magnitude, 11 - exponent)); /* 1024 to 2048: the latter carries */
    return sign | (uint16_t)(((exponent + 14) << 10) + (int)fraction - 1024);
}

float bfloat_to_float(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

uint16_t bfloat_from_float(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (isnan(number))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define SAME(x) (x)

#define LOAD_ROWS(DOMAIN)                                                                                              \
    ROW(T_F32, float, SAME, DOMAIN)                                                                                    \
    ROW(T_F64, double, SAME, DOMAIN)                                                                                   \
    ROW(T_U8, uint8_t, SAME, DOMAIN)                                                                                   \
    ROW(T_I8, int8_t, SAME, DOMAIN)                                                                                    \
    ROW(T_U16, uint16_t, SAME, DOMAIN)                                                                                 \
    ROW(T_I16, int16_t, SAME, DOMAIN)                                                                                  \
    ROW(T_U32, uint32_t, SAME, DOMAIN)                                                                                 \
    ROW(T_I32, int32_t, SAME, DOMAIN)                                                                                  \
    ROW(T_U64, uint64_t, SAME, DOMAIN)                                                                                 \
    ROW(T_I64, int64_t, SAME, DOMAIN)                                                                                  \
    ROW(T_BOOL, uint8_t, SAME, DOMAIN)                                                                                 \
    ROW(T_F16, uint16_t, half_to_float, DOMAIN)                                                                        \
    ROW(T_BF16, uint16_t, bfloat_to_float, DOMAIN)                                                                     \
    ROW(GRAPHI_ELEMENT_UINT4, uint8_t, SAME, DOMAIN)                                                                   \
    ROW(GRAPHI_ELEMENT_UINT2, uint8_t, SAME, DOMAIN)                                                                   \
    ROW(GRAPHI_ELEMENT_INT4, int8_t, SAME, DOMAIN)                                                                     \
    ROW(GRAPHI_ELEMENT_INT2, int8_t, SAME, DOMAIN)

/* A float as an integer of 64 bits: C leaves open what is beyond. */
static int64_t to_i64(double number)
{
    if (isnan(number))
        return 0;
    return number >= 0x1p63 ? INT64_MAX : number < -0x1p63 ? INT64_MIN : (int64_t)number;
}
static uint64_t to_u64(double number)
{
    if (isnan(number))
        return 0;
    return number >= 0x1p64 ? UINT64_MAX : number < 0 ? (uint64_t)to_i64(number) : (uint64_t)number;
}

#define INTO_F32(x) ((float)(x))
#define INTO_F64(x) ((double)(x))
#define INTO_I64(x) _Generic((x), float : to_i64((double)(x)), double : to_i64((double)(x)), default : (int64_t)(x))
#define INTO_U64(x) _Generic((x), float : to_u64((double)(x)), double : to_u64((double)(x)), default : (uint64_t)(x))

#define LOADER(DOMAIN, TYPE)                                                                                           \
    static void load_##DOMAIN(graphi_element type, const void *from, int64_t stride, int64_t n, TYPE *to)              \
    {                                                                                                                  \
        switch ((int)type) {                                                                                           \
            LOAD_ROWS(DOMAIN)                                                                                          \
        default:                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[i] = INTO_##DOMAIN(small_float_to(type, ((const uint8_t *)from)[i * stride]));                      \
        }                                                                                                              \
    }
#define ROW(NAME, TYPE, DECODE, DOMAIN)                                                                                \
    case NAME:                                                                                                         \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = INTO_##DOMAIN(DECODE(((const TYPE *)from)[i * stride]));                                           \
        break;
LOADER(F32, float)
LOADER(F64, double)
LOADER(I64, int64_t)
LOADER(U64, uint64_t)
#undef ROW

const void *element_load(enum domain domain, graphi_element type, const void *from, int64_t stride, int64_t n,
                         void *room)
{
    static const graphi_element plain[] = {
        [DOMAIN_F32] = T_F32, [DOMAIN_F64] = T_F64, [DOMAIN_I64] = T_I64, [DOMAIN_U64] = T_U64};
    if (plain[domain] == type && stride == 1 && n > 1)
        return from;
    switch (domain) {
    case DOMAIN_F32:
        load_F32(type, from, stride, n, room);
        break;
    case DOMAIN_F64:
        load_F64(type, from, stride, n, room);
        break;
    case DOMAIN_I64:
        load_I64(type, from, stride, n, room);
        break;
    default:
        load_U64(type, from, stride, n, room);
    }
    return room;
}

/* Floats round and stay within the type, as ONNX's reference has it for types of fewer than 8 bits. */
static uint8_t round_to_bits(double number, int bits, bool has_sign)
{
    const double most = has_sign ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = has_sign ? -(1 << (bits - 1)) : 0;
    return isnan(number) ? 0 : (uint8_t)(int)rint(fmin(fmax(number, least), most));
}

static uint8_t to_bits(int64_t number, int bits, bool has_sign)
{
    const int64_t low = number & ((1 << bits) - 1);
    return (uint8_t)(has_sign && low >> (bits - 1) ? low - (1 << bits) : low);
}

/* Integers wrap; of floats the part before the point is taken. */
#define WRAP(TYPE, x) ((TYPE)INTO_I64(x))
#define BITS(x, bits, has_sign)                                                                                        \
    _Generic((x), float                                                                                                \
             : round_to_bits((double)(x), bits, has_sign), double                                                      \
             : round_to_bits((double)(x), bits, has_sign), default                                                     \
             : to_bits((int64_t)(x), bits, has_sign))
#define STORE_ROWS(DOMAIN)                                                                                             \
    ROW(T_F32, float, (float)x)                                                                                        \
    ROW(T_F64, double, (double)x)                                                                                      \
    ROW(T_U8, uint8_t, WRAP(uint8_t, x))                                                                               \
    ROW(T_I8, int8_t, WRAP(int8_t, x))                                                                                 \
    ROW(T_U16, uint16_t, WRAP(uint16_t, x))                                                                            \
    ROW(T_I16, int16_t, WRAP(int16_t, x))                                                                              \
    ROW(T_U32, uint32_t, WRAP(uint32_t, x))                                                                            \
    ROW(T_I32, int32_t, WRAP(int32_t, x))                                                                              \
    ROW(T_U64, uint64_t, INTO_U64(x))                                                                                  \
    ROW(T_I64, int64_t, INTO_I64(x))                                                                                   \
    ROW(T_BOOL, uint8_t, x != 0)                                                                                       \
    ROW(T_F16, uint16_t, half_from_double((double)x))                                                                  \
    ROW(T_BF16, uint16_t, bfloat_from_float((float)x))                                                                 \
    ROW(GRAPHI_ELEMENT_UINT4, uint8_t, BITS(x, 4, false))                                                              \
    ROW(GRAPHI_ELEMENT_UINT2, uint8_t, BITS(x, 2, false))                                                              \
    ROW(GRAPHI_ELEMENT_INT4, uint8_t, BITS(x, 4, true))                                                                \
    ROW(GRAPHI_ELEMENT_INT2, uint8_t, BITS(x, 2, true))

#define STORER(DOMAIN, DTYPE)                                                                                          \
    static void store_##DOMAIN(graphi_element type, const DTYPE *from, int64_t n, void *to)                            \
    {                                                                                                                  \
        switch ((int)type) {                                                                                           \
            STORE_ROWS(DOMAIN)                                                                                         \
        default:                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                            \
                ((uint8_t *)to)[i] = small_float_from(type, (float)from[i], true);                                     \
        }                                                                                                              \
    }
#define ROW(NAME, TYPE, EXPRESSION)                                                                                    \
    case NAME:                                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            __typeof__(*from) x = from[i];                                                                             \
            ((TYPE *)to)[i] = EXPRESSION;                                                                              \
        }                                                                                                              \
        break;
STORER(F32, float)
STORER(F64, double)
STORER(I64, int64_t)
STORER(U64, uint64_t)
#undef ROW

void element_store(enum domain domain, graphi_element type, const void *room, int64_t n, void *to)
{
    switch (domain) {
    case DOMAIN_F32:
        store_F32(type, room, n, to);
        break;
    case DOMAIN_F64:
        store_F64(type, room, n, to);
        break;
    case DOMAIN_I64:
        store_I64(type, room, n, to);
        break;
    default:
        store_U64(type, room, n, to);
    }
}
