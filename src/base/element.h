/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as elements of a type: what the low bytes of an element are, and back. float16 is binary16 of IEEE 754. Pure
 * functions, any thread. */
#ifndef BASE_ELEMENT_H
#define BASE_ELEMENT_H

#include "graphi/types.h"

#include <string.h>

static inline bool dtype_is_float(graphi_dtype dtype)
{
    return dtype == GRAPHI_F32 || dtype == GRAPHI_BF16 || dtype == GRAPHI_F16 || dtype == GRAPHI_F64;
}

/* float16 to float32, exactly; NaN stays NaN, quiet. */
static inline float half_value(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    const uint32_t u = exponent == 31 ? sign | 0x7f800000 | (fraction ? 0x400000 | fraction << 13 : 0)
                                      : sign | (exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &u, sizeof value);
    const float small = (float)fraction * 0x1p-24f;
    return exponent ? value : sign ? -small : small;
}

/* The nearest float16, of two the even one; NaN stays NaN, quiet. */
uint16_t half_bits(double value);

/* The low bytes are the value as the dtype: integers toward 0, and the nearest in their range; NaN is 0 there. float64
 * becomes bfloat16 through float32. */
uint64_t value_bits(graphi_dtype dtype, double value);

/* The number that the low bytes are in a floating type. */
double float_of_bits(graphi_dtype dtype, uint64_t bits);

#endif
