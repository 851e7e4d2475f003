/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel (isa/micro.c) of pairs of bfloat16: by their dot product where there is one, else each half as a
 * float. */
#include "kernels/isa/isa.h"

#if defined(ISA_IS_bf16)
static inline vf multiply_add(vf a, vf b, vf c) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }
#elif !defined(ISA_IS_plain)
#if VL == 16
#define LOW_HALVES(v) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), 16))
#define HIGH_HALVES(v) _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(-65536)))
#else
#define LOW_HALVES(v) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v), 16))
#define HIGH_HALVES(v) _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(-65536)))
#endif
static inline vf multiply_add(vf a, vf b, vf c)
{
    return vfma(HIGH_HALVES(a), HIGH_HALVES(b), vfma(LOW_HALVES(a), LOW_HALVES(b), c));
}
#endif

#define PAIRS 1
#define MULTIPLY_ADD multiply_add
#include "kernels/isa/micro_tile.h"

void ISA_NAME(micro_pairs)(const struct micro_call *call);

void ISA_NAME(micro_pairs)(const struct micro_call *call)
{
    tile(call);
}
