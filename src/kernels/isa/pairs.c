/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to pairs of bfloat16 (kernels/pack.h), compiled once per instruction set; blocks of constant length
 * (round.h). Every form gives the same bits. Called from any thread; usual call: 32 to 1024 elements. */
#include "kernels/pack.h"

#include "kernels/isa/round.h"

extern const struct pair_functions ISA_NAME(pairs);

static void interleave(const float *restrict low, const float *restrict high, int64_t count, uint32_t *restrict out)
{
    int64_t i = 0;
    for (; i + ROUND_BLOCK <= count; i += ROUND_BLOCK)
        round_pairs(low + i, high + i, out + i);
    for (; i < count; i++)
        out[i] = round_half(low[i]) | round_half(high[i]) << 16;
}

static void single(const float *restrict low, int64_t count, uint32_t *restrict out)
{
    static const float zeros[ROUND_BLOCK];
    int64_t i = 0;
    for (; i + ROUND_BLOCK <= count; i += ROUND_BLOCK)
        round_pairs(low + i, zeros, out + i);
    for (; i < count; i++)
        out[i] = round_half(low[i]);
}

/* A pair of neighbours is two neighbouring halves, low one first. */
static void neighbours(const float *restrict source, int64_t count, uint32_t *restrict out)
{
    uint16_t *restrict half = (uint16_t *)out;
    int64_t i = 0;
    for (; i + ROUND_BLOCK <= count; i += ROUND_BLOCK)
        round_block(source + i, half + i);
    for (; i < count; i++)
        half[i] = (uint16_t)round_half(source[i]);
    if (count % 2)
        half[count] = 0;
}

static void join(const uint16_t *restrict low, const uint16_t *restrict high, int64_t count, uint32_t *restrict out)
{
    int64_t i = 0;
    for (; i + ROUND_BLOCK <= count; i += ROUND_BLOCK)
        for (int j = 0; j < ROUND_BLOCK; j++)
            out[i + j] = low[i + j] | (uint32_t)high[i + j] << 16;
    for (; i < count; i++)
        out[i] = low[i] | (uint32_t)high[i] << 16;
}

/* One more than an exponent of ones is a carry into the sign's place. */
static inline uint32_t carries(uint32_t pair)
{
    return ((pair & 0x7f807f80u) + 0x00800080u) & 0x80008000u;
}

static bool all_finite(const uint32_t *pairs, int64_t count)
{
    uint32_t found[ROUND_BLOCK] = {0}, any = 0;
    int64_t i = 0;
    for (; i + ROUND_BLOCK <= count; i += ROUND_BLOCK)
        for (int j = 0; j < ROUND_BLOCK; j++)
            found[j] |= carries(pairs[i + j]);
    for (; i < count; i++)
        any |= carries(pairs[i]);
    for (int j = 0; j < ROUND_BLOCK; j++)
        any |= found[j];
    return !any;
}

const struct pair_functions ISA_NAME(pairs) = {interleave, single, neighbours, join, all_finite};
