/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to bfloat16, to nearest with ties to even; NaN stays NaN. One number in plain C, and blocks of 16 that give
 * the same bits: with the instruction for it where there is one. That instruction takes numbers below 2^-126 for zero,
 * so a block that has one goes number by number. For files compiled once per instruction set. */
#ifndef KERNELS_ISA_ROUND_H
#define KERNELS_ISA_ROUND_H

#include "kernels/isa/isa.h"

enum { ROUND_BLOCK = 16 };

static inline uint32_t round_half(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16, quiet = (u >> 16) | 0x40;
    return (u & 0x7fffffff) > 0x7f800000 ? quiet : rounded;
}

#if defined(ISA_IS_bf16)
static inline __m256i round_vector(const float *in)
{
    enum { DENORMAL = 0x20 };
    const __m512 v = _mm512_loadu_ps(in);
    if (__builtin_expect(_mm512_fpclass_ps_mask(v, DENORMAL) == 0, 1))
        return (__m256i)_mm512_cvtneps_pbh(v);
    uint16_t half[ROUND_BLOCK];
    for (int j = 0; j < ROUND_BLOCK; j++)
        half[j] = (uint16_t)round_half(in[j]);
    return _mm256_loadu_si256((const __m256i *)half);
}

static inline void round_block(const float *in, uint16_t *out)
{
    _mm256_storeu_si256((__m256i *)out, round_vector(in));
}

/* (low[j], high[j]), the low one in the lower half. */
static inline void round_pairs(const float *low, const float *high, uint32_t *out)
{
    const __m512i upper = _mm512_slli_epi32(_mm512_cvtepu16_epi32(round_vector(high)), 16);
    _mm512_storeu_si512(out, _mm512_or_si512(_mm512_cvtepu16_epi32(round_vector(low)), upper));
}
#else
static inline void round_block(const float *restrict in, uint16_t *restrict out)
{
    for (int j = 0; j < ROUND_BLOCK; j++)
        out[j] = (uint16_t)round_half(in[j]);
}

static inline void round_pairs(const float *restrict low, const float *restrict high, uint32_t *restrict out)
{
    for (int j = 0; j < ROUND_BLOCK; j++)
        out[j] = round_half(low[j]) | round_half(high[j]) << 16;
}
#endif

#endif
