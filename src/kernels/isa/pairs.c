/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to pairs of bfloat16 (kernels/pack.h), compiled once per instruction set; blocks of constant length, which the compiler
 * vectorises. Every form gives the same bits. Called from any thread; usual call: 32 to 1024 elements. */
#include "kernels/pack.h"

#include "kernels/isa/isa.h"

extern const struct pair_functions ISA_NAME(pairs);

static inline uint32_t narrow(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16, quiet = (u >> 16) | 0x40;
    return (u & 0x7fffffff) > 0x7f800000 ? quiet : rounded;
}

static void interleave(const float *restrict low, const float *restrict high, int64_t count, uint32_t *restrict out)
{
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int j = 0; j < 16; j++)
            out[i + j] = narrow(low[i + j]) | narrow(high[i + j]) << 16;
    for (; i < count; i++)
        out[i] = narrow(low[i]) | narrow(high[i]) << 16;
}

static void single(const float *restrict low, int64_t count, uint32_t *restrict out)
{
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int j = 0; j < 16; j++)
            out[i + j] = narrow(low[i + j]);
    for (; i < count; i++)
        out[i] = narrow(low[i]);
}

/* A pair of neighbours is two neighbouring halves, low one first. */
static void neighbours(const float *restrict source, int64_t count, uint32_t *restrict out)
{
    uint16_t *restrict half = (uint16_t *)out;
    int64_t i = 0;
    for (; i + 32 <= count; i += 32)
        for (int j = 0; j < 32; j++)
            half[i + j] = (uint16_t)narrow(source[i + j]);
    for (; i < count; i++)
        half[i] = (uint16_t)narrow(source[i]);
    if (count % 2)
        half[count] = 0;
}

const struct pair_functions ISA_NAME(pairs) = {interleave, single, neighbours};
