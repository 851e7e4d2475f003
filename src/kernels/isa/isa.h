/* SPDX-License-Identifier: Apache-2.0 */
/* For files of this folder, which are compiled once per instruction set: names and vectors.
 *
 * ISA_NAME(x) is x_plain, x_avx2, x_avx512 or x_bf16. `vf` is a vector of VL floats; the plain form has VL 1, so that
 * a plain twin is the same loop over single floats. Functions ending in _n touch only the first n elements of memory
 * (n < VL); the other lanes are zero, as are those outside of [from, to) in vload_part. Not of the plain form: vkeep
 * keeps the first n lanes and zeroes the others; vearlierK and vlaterK move lanes K up or down, those that are missing
 * from the vector before or after. Bytes (n <= VL of them):
 * vstore_u8 takes whole numbers from 0 to 255, vadd_where_u8 adds v to sum in the lanes whose byte is x. vsel_over
 * chooses `yes` where a is larger than b, or the first of both to be NaN; vsel_negative where x has its sign bit set.
 * A `vm` tells for each lane whether a is larger than b; a `vp` is a vector of whole numbers from 0 to 255, in whatever
 * form is cheapest to choose by it. */
#ifndef KERNELS_ISA_ISA_H
#define KERNELS_ISA_ISA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define ISA_JOIN_(a, b) a##_##b
#define ISA_JOIN(a, b) ISA_JOIN_(a, b)
#define ISA_NAME(x) ISA_JOIN(x, ISA)

#if defined(__AVX512F__) && !defined(ISA_IS_plain)
#include <immintrin.h>
#define VL 16
typedef __m512 vf;
typedef __m512i vi;
static inline vf vset(float x) { return _mm512_set1_ps(x); }
static inline vf vload(const float *p) { return _mm512_loadu_ps(p); }
static inline void vstore(float *p, vf v) { _mm512_storeu_ps(p, v); }
static inline void vstream(float *p, vf v) { _mm512_stream_ps(p, v); }
static inline vf vload_n(const float *p, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
static inline vf vload_part(const float *p, int from, int to)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << to) - (1u << from)), p);
}
static inline void vstore_n(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v); }
#define VFROM(low, high, lane)                                                                                         \
    _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(high), _mm512_castps_si512(low), lane))
static inline vf vkeep(vf v, int n) { return _mm512_maskz_mov_ps((__mmask16)((1u << n) - 1), v); }
static inline vf vearlier1(vf before, vf v) { return VFROM(before, v, 15); }
static inline vf vearlier2(vf before, vf v) { return VFROM(before, v, 14); }
static inline vf vlater1(vf v, vf after) { return VFROM(v, after, 1); }
static inline vf vlater2(vf v, vf after) { return VFROM(v, after, 2); }
static inline vf vfma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vfnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline vf vsqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf vfloor(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vf vround(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vabs(vf a) { return _mm512_andnot_ps(vset(-0.0f), a); }
static inline vf vneg(vf a) { return _mm512_xor_ps(vset(-0.0f), a); }
static inline vf vcopysign(vf a, vf sign) { return _mm512_or_ps(vabs(a), _mm512_and_ps(vset(-0.0f), sign)); }
static inline vf vmax_x86(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vmin_x86(vf a, vf b) { return _mm512_min_ps(a, b); }
#define VSELECT(name, predicate)                                                                                       \
    static inline vf name(vf a, vf b, vf yes, vf no)                                                                   \
    {                                                                                                                  \
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, predicate), no, yes);                                     \
    }
static inline vf vsel_over(vf a, vf b, vf yes, vf no)
{
    __mmask16 number = _mm512_cmp_ps_mask(b, b, _CMP_ORD_Q);
    return _mm512_mask_blend_ps(_mm512_mask_cmp_ps_mask(number, a, b, _CMP_NLE_UQ), no, yes);
}
static inline int vall_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ) == 0xffff; }
typedef __mmask16 vm;
typedef __m128i vp;
static inline vm vm_over(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
static inline vp vp_set(int x) { return _mm_set1_epi8((char)x); }
static inline vp vp_add(vp a, vp b) { return _mm_add_epi8(a, b); }
static inline vp vp_select(vm where, vp yes, vp no) { return _mm_mask_blend_epi8(where, no, yes); }
static inline void vp_store(uint8_t *p, vp v, int n)
{
    if (n == VL)
        _mm_storeu_si128((__m128i *)p, v);
    else
        _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1), v);
}
static inline void vstore_u8(uint8_t *p, vf v, int n)
{
    _mm512_mask_cvtepi32_storeu_epi8(p, (__mmask16)((1u << n) - 1), _mm512_cvtps_epi32(v));
}
static inline vf vadd_where_u8(vf sum, vf v, const uint8_t *p, int x, int n)
{
    __mmask16 some = (__mmask16)((1u << n) - 1);
    __m128i at = n == VL ? _mm_loadu_si128((const __m128i *)p) : _mm_maskz_loadu_epi8(some, p);
    return _mm512_mask_add_ps(sum, _mm_cmpeq_epi8_mask(at, _mm_set1_epi8((char)x)), sum, v);
}
static inline vf vsel_negative(vf x, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmplt_epi32_mask(_mm512_castps_si512(x), _mm512_setzero_si512()), no, yes);
}
static inline vf vminus_abs(vf a) { return _mm512_or_ps(vset(-0.0f), a); }
static inline vi vbits(vf a) { return _mm512_castps_si512(a); }
static inline vf vfloat(vi a) { return _mm512_castsi512_ps(a); }
static inline vi vint(vf a) { return _mm512_cvtps_epi32(a); }
static inline vf vconvert(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi vi_set(int x) { return _mm512_set1_epi32(x); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_shl23(vi a) { return _mm512_slli_epi32(a, 23); }
static inline vi vi_sar(vi a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
/* 2^n a for whole n from -150 to 129, rounded once. */
static inline vf vscale(vf a, vf n) { return _mm512_scalef_ps(a, n); }

#elif defined(__AVX2__) && !defined(ISA_IS_plain)
#include <immintrin.h>
#define VL 8
typedef __m256 vf;
typedef __m256i vi;
static inline vf vset(float x) { return _mm256_set1_ps(x); }
static inline vf vload(const float *p) { return _mm256_loadu_ps(p); }
static inline void vstore(float *p, vf v) { _mm256_storeu_ps(p, v); }
static inline void vstream(float *p, vf v) { _mm256_stream_ps(p, v); }
static inline vi vmask_n(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf vload_n(const float *p, int n) { return _mm256_maskload_ps(p, vmask_n(n)); }
static inline vf vload_part(const float *p, int from, int to)
{
    return _mm256_maskload_ps(p, _mm256_andnot_si256(vmask_n(from), vmask_n(to)));
}
static inline void vstore_n(float *p, vf v, int n) { _mm256_maskstore_ps(p, vmask_n(n), v); }
#define VFROM(low, high, lane) /* each half holds four lanes of these, from `lane` on */                               \
    _mm256_castsi256_ps(_mm256_alignr_epi8(_mm256_castps_si256(high), _mm256_castps_si256(low), 4 * (lane)))
static inline vf vmiddle(vf low, vf high) { return _mm256_permute2f128_ps(low, high, 0x21); }
static inline vf vkeep(vf v, int n) { return _mm256_and_ps(v, _mm256_castsi256_ps(vmask_n(n))); }
static inline vf vearlier1(vf before, vf v) { return VFROM(vmiddle(before, v), v, 3); }
static inline vf vearlier2(vf before, vf v) { return VFROM(vmiddle(before, v), v, 2); }
static inline vf vlater1(vf v, vf after) { return VFROM(v, vmiddle(v, after), 1); }
static inline vf vlater2(vf v, vf after) { return VFROM(v, vmiddle(v, after), 2); }
static inline vf vfma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vfnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
static inline vf vsqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf vfloor(vf a) { return _mm256_floor_ps(a); }
static inline vf vround(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vabs(vf a) { return _mm256_andnot_ps(vset(-0.0f), a); }
static inline vf vneg(vf a) { return _mm256_xor_ps(vset(-0.0f), a); }
static inline vf vcopysign(vf a, vf sign) { return _mm256_or_ps(vabs(a), _mm256_and_ps(vset(-0.0f), sign)); }
static inline vf vmax_x86(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vmin_x86(vf a, vf b) { return _mm256_min_ps(a, b); }
#define VSELECT(name, predicate)                                                                                       \
    static inline vf name(vf a, vf b, vf yes, vf no)                                                                   \
    {                                                                                                                  \
        return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, predicate));                                              \
    }
static inline vf vsel_over(vf a, vf b, vf yes, vf no)
{
    __m256 over = _mm256_and_ps(_mm256_cmp_ps(b, b, _CMP_ORD_Q), _mm256_cmp_ps(a, b, _CMP_NLE_UQ));
    return _mm256_blendv_ps(no, yes, over);
}
static inline int vall_less(vf a, vf b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)) == 0xff; }
typedef __m256 vm, vp;
static inline vm vm_over(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
static inline vp vp_set(int x) { return _mm256_set1_ps((float)x); }
static inline vp vp_add(vp a, vp b) { return _mm256_add_ps(a, b); }
static inline vp vp_select(vm where, vp yes, vp no) { return _mm256_blendv_ps(no, yes, where); }
static inline void vstore_u8(uint8_t *p, vf v, int n)
{
    __m256i whole = _mm256_cvtps_epi32(v);
    __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(half, half));
    memcpy(p, &bytes, (size_t)n);
}
static inline void vp_store(uint8_t *p, vp v, int n) { vstore_u8(p, v, n); }
static inline vf vadd_where_u8(vf sum, vf v, const uint8_t *p, int x, int n)
{
    uint64_t bytes = 0;
    memcpy(&bytes, p, (size_t)n);
    __m256i at = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
    return sum + _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(at, _mm256_set1_epi32(x))));
}
static inline vf vsel_negative(vf x, vf yes, vf no) { return _mm256_blendv_ps(no, yes, x); }
static inline vf vminus_abs(vf a) { return _mm256_or_ps(vset(-0.0f), a); }
static inline vi vbits(vf a) { return _mm256_castps_si256(a); }
static inline vf vfloat(vi a) { return _mm256_castsi256_ps(a); }
static inline vi vint(vf a) { return _mm256_cvtps_epi32(a); }
static inline vf vconvert(vi a) { return _mm256_cvtepi32_ps(a); }
static inline vi vi_set(int x) { return _mm256_set1_epi32(x); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_shl23(vi a) { return _mm256_slli_epi32(a, 23); }
static inline vi vi_sar(vi a, int n) { return _mm256_srai_epi32(a, n); }
static inline vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
static inline vf vscale(vf a, vf n) /* in two steps: 2^n alone may not be a float */
{
    vi whole = vint(n), half = vi_sar(whole, 1), one = vi_set(127);
    return a * vfloat(vi_shl23(vi_add(half, one))) * vfloat(vi_shl23(vi_add(vi_sub(whole, half), one)));
}

#else
#define VL 1
typedef float vf;
static inline vf vset(float x) { return x; }
static inline vf vload(const float *p) { return *p; }
static inline void vstore(float *p, vf v) { *p = v; }
static inline void vstream(float *p, vf v) { *p = v; }
static inline vf vload_n(const float *p, int n) { return n ? *p : 0; }
static inline vf vload_part(const float *p, int from, int to) { return from < to ? *p : 0; }
static inline void vstore_n(float *p, vf v, int n)
{
    if (n)
        *p = v;
}
static inline vf vfma(vf a, vf b, vf c) { return fmaf(a, b, c); }
static inline vf vfnma(vf a, vf b, vf c) { return fmaf(-a, b, c); }
static inline vf vsqrt(vf a) { return sqrtf(a); }
static inline vf vfloor(vf a) { return floorf(a); }
static inline vf vabs(vf a) { return fabsf(a); }
static inline vf vneg(vf a) { return -a; }
static inline vf vmax_x86(vf a, vf b) { return a > b ? a : b; }
static inline vf vmin_x86(vf a, vf b) { return a < b ? a : b; }
static inline vf vsel_gt(vf a, vf b, vf yes, vf no) { return a > b ? yes : no; }
static inline vf vsel_eq(vf a, vf b, vf yes, vf no) { return a == b ? yes : no; }
static inline vf vsel_ne(vf a, vf b, vf yes, vf no) { return a != b ? yes : no; }
static inline vf vsel_over(vf a, vf b, vf yes, vf no) { return b == b && !(a <= b) ? yes : no; }
static inline int vall_less(vf a, vf b) { return a < b; }
typedef int vm, vp;
static inline vm vm_over(vf a, vf b) { return a > b; }
static inline vp vp_set(int x) { return x; }
static inline vp vp_add(vp a, vp b) { return a + b; }
static inline vp vp_select(vm where, vp yes, vp no) { return where ? yes : no; }
static inline void vp_store(uint8_t *p, vp v, int n)
{
    if (n)
        *p = (uint8_t)v;
}
static inline void vstore_u8(uint8_t *p, vf v, int n)
{
    if (n)
        *p = (uint8_t)v;
}
static inline vf vadd_where_u8(vf sum, vf v, const uint8_t *p, int x, int n) { return sum + (n && *p == x ? v : 0); }
#endif

#ifdef VSELECT
VSELECT(vsel_gt, _CMP_GT_OQ)
VSELECT(vsel_eq, _CMP_EQ_OQ)
VSELECT(vsel_ne, _CMP_NEQ_UQ)
#undef VSELECT
#endif

#define INLINE static inline __attribute__((always_inline)) /* what loops know at compile time reaches what they call */

/* n <= VL elements: without a mask where n is known to be VL. */
INLINE vf vget(const float *p, int n) { return n == VL ? vload(p) : vload_n(p, n); }
INLINE void vput(float *p, vf v, int n)
{
    if (n == VL)
        vstore(p, v);
    else
        vstore_n(p, v, n);
}

/* NaN in either argument gives NaN; of zeros of both signs the second is taken. */
static inline vf vmax(vf a, vf b) { return vsel_ne(a, a, a, vmax_x86(a, b)); }
static inline vf vmin(vf a, vf b) { return vsel_ne(a, a, a, vmin_x86(a, b)); }

#endif
