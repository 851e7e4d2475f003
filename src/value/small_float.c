/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 4, 6 and 8 bits (small_float.h): one decoder over a table; encoding finds the nearest of the at most 256
 * patterns by bisection over the positive ones, which are in order. Any thread. */
#include "value/small_float.h"

#include <math.h>

enum specials {
    IEEE, /* the largest exponent is infinity and NaN */
    FN,   /* only all ones is NaN */
    UZ,   /* only -0 is NaN */
    FINITE,
};

static const struct format {
    graphi_element type;
    int exponent, fraction, bias;
    enum specials specials;
} formats[] = {
    {GRAPHI_ELEMENT_FLOAT8E4M3FN, 4, 3, 7, FN},   {GRAPHI_ELEMENT_FLOAT8E4M3FNUZ, 4, 3, 8, UZ},
    {GRAPHI_ELEMENT_FLOAT8E5M2, 5, 2, 15, IEEE},  {GRAPHI_ELEMENT_FLOAT8E5M2FNUZ, 5, 2, 16, UZ},
    {GRAPHI_ELEMENT_FLOAT4E2M1, 2, 1, 1, FINITE}, {GRAPHI_ELEMENT_FLOAT6E2M3, 2, 3, 1, FINITE},
    {GRAPHI_ELEMENT_FLOAT6E3M2, 3, 2, 3, FINITE},
};

static const struct format *format_of(graphi_element type)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].type == type)
            return &formats[i];
    return &formats[0];
}

static float decode(const struct format *f, unsigned bits)
{
    const unsigned sign = 1u << (f->exponent + f->fraction), magnitude = bits & (sign - 1);
    const unsigned exponent = magnitude >> f->fraction, fraction = magnitude & ((1u << f->fraction) - 1);
    const unsigned top = (1u << f->exponent) - 1;
    float number = exponent ? ldexpf((float)(fraction | 1u << f->fraction), (int)exponent - f->bias - f->fraction)
                            : ldexpf((float)fraction, 1 - f->bias - f->fraction);
    if (f->specials == UZ && bits == sign)
        return NAN;
    if (f->specials == FN && magnitude == sign - 1)
        number = NAN;
    if (f->specials == IEEE && exponent == top)
        number = fraction ? NAN : INFINITY;
    return bits & sign ? -number : number;
}

static unsigned largest(const struct format *f)
{
    const unsigned ones = (1u << (f->exponent + f->fraction)) - 1;
    return f->specials == IEEE ? ones - (1u << f->fraction) : f->specials == FN ? ones - 1 : ones;
}

float small_float_to(graphi_element type, uint8_t bits)
{
    if (type == GRAPHI_ELEMENT_FLOAT8E8M0) /* a power of two alone */
        return bits == 255 ? NAN : ldexpf(1, (int)bits - 127);
    return decode(format_of(type), bits);
}

static uint8_t encode_power(float number)
{
    if (isnan(number))
        return 255;
    const float magnitude = fabsf(number);
    if (magnitude == 0)
        return 0;
    if (isinf(magnitude))
        return 254;
    const double up = rint(log2(magnitude));
    return (uint8_t)(up < -127 ? 0 : up > 127 ? 254 : up + 127);
}

/* The pattern of the finite magnitude nearest to `number`, ties to the even pattern; past = beyond the largest. */
static unsigned nearest(const struct format *f, float number, bool *past)
{
    unsigned low = 0, high = largest(f);
    const float most = decode(f, high), step = most - decode(f, high - 1);
    *past = high & 1 ? number >= most + step / 2 : number > most + step / 2; /* a tie goes to the even pattern */
    if (number >= most)
        return high;
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        if (decode(f, middle) <= number)
            low = middle;
        else
            high = middle;
    }
    const float below = number - decode(f, low), above = decode(f, high) - number;
    return below < above || (below == above && !(low & 1)) ? low : high;
}

uint8_t small_float_from(graphi_element type, float number, bool saturate)
{
    if (type == GRAPHI_ELEMENT_FLOAT8E8M0)
        return encode_power(number);
    const struct format *f = format_of(type);
    const unsigned sign = 1u << (f->exponent + f->fraction);
    const unsigned negative = signbit(number) ? sign : 0;
    const unsigned none = f->specials == UZ     ? sign
                          : f->specials == FN   ? sign - 1
                          : f->specials == IEEE ? (sign - 1) - ((1u << (f->fraction - 1)) - 1)
                                                : largest(f);
    if (isnan(number))
        return (uint8_t)(f->specials == UZ || f->specials == FINITE ? none : none | negative);
    bool past;
    unsigned bits = nearest(f, fabsf(number), &past);
    if (f->specials != FINITE && !saturate && past) {
        if (f->specials == IEEE)
            bits = ((1u << f->exponent) - 1) << f->fraction;
        else
            return (uint8_t)(f->specials == UZ ? none : none | negative);
    }
    return (uint8_t)(f->specials == UZ && bits == 0 ? 0 : bits | negative);
}
