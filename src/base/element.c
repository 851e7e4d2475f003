/* SPDX-License-Identifier: Apache-2.0 */
/* See element.h. Rounding is done on integers, so that no floating-point mode alters it. */
#include "base/element.h"

#include <math.h>

/* `kept` and what is cut off behind it, as a fraction of `one`: rounded to nearest, ties to even. */
static uint64_t nearest(uint64_t kept, uint64_t cut, uint64_t one)
{
    return kept + (2 * cut > one || (2 * cut == one && kept % 2));
}

uint16_t half_bits(double value)
{
    enum { CUT = 42 }; /* of the 52 bits of a float64's fraction */
    const uint64_t fraction_of_half = (UINT64_C(1) << CUT) - 1;
    uint64_t u;
    memcpy(&u, &value, sizeof u);
    const uint16_t sign = (uint16_t)(u >> 48 & 0x8000);
    const double size = fabs(value);
    if (isnan(value))
        return sign | 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-25)
        return sign;
    const uint64_t fraction = u & ((UINT64_C(1) << 52) - 1);
    const int exponent = (int)(u >> 52 & 0x7ff) - 1023;
    if (exponent >= -14)
        return (uint16_t)(sign | nearest((uint64_t)(exponent + 15) << 10 | fraction >> CUT, fraction & fraction_of_half,
                                         UINT64_C(1) << CUT));
    const uint64_t whole = fraction | UINT64_C(1) << 52, one = UINT64_C(1) << (28 - exponent); /* in steps of 2^-24 */
    return (uint16_t)(sign | nearest(whole / one, whole % one, one));
}

uint64_t value_bits(graphi_dtype dtype, double value)
{
    static const struct {
        double least, most;
    } ranges[GRAPHI_DTYPES] = {
        [GRAPHI_I8] = {INT8_MIN, INT8_MAX},    [GRAPHI_U8] = {0, UINT8_MAX},   [GRAPHI_I16] = {INT16_MIN, INT16_MAX},
        [GRAPHI_U16] = {0, UINT16_MAX},        [GRAPHI_U32] = {0, UINT32_MAX}, [GRAPHI_I32] = {INT32_MIN, INT32_MAX},
        [GRAPHI_I64] = {(double)INT64_MIN, 0x1p63}};
    uint64_t bits;
    uint32_t u;
    const float f = (float)value;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&u, &f, sizeof u);
    switch (dtype) {
    case GRAPHI_F64: return bits;
    case GRAPHI_F32: return u;
    case GRAPHI_BF16: return isnan(f) ? 0x7fc0 : (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    case GRAPHI_F16: return half_bits(value);
    case GRAPHI_BOOL: return value != 0;
    case GRAPHI_U64: return value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
    default: break;
    }
    const double limited = isnan(value) ? 0 : fmin(fmax(value, ranges[dtype].least), ranges[dtype].most);
    const int64_t whole = limited >= 0x1p63 ? INT64_MAX : (int64_t)limited;
    const size_t size = 8 * graphi_dtype_size(dtype);
    return size == 64 ? (uint64_t)whole : (uint64_t)whole & ((UINT64_C(1) << size) - 1);
}

double float_of_bits(graphi_dtype dtype, uint64_t bits)
{
    const uint32_t u = dtype == GRAPHI_BF16 ? (uint32_t)bits << 16 : (uint32_t)bits;
    double value;
    float single;
    memcpy(&value, &bits, sizeof value);
    memcpy(&single, &u, sizeof single);
    return dtype == GRAPHI_F64 ? value : dtype == GRAPHI_F16 ? half_value((uint16_t)bits) : single;
}
