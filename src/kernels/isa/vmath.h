/* SPDX-License-Identifier: Apache-2.0 */
/* Transcendental functions on vectors, our own polynomials (minimax fits over the reduced range). Each element's
 * result depends on that element alone, and is the same on AVX2 and AVX-512: both evaluate the same fused operations
 * in the same order.
 *
 * Error bounds, asserted by tests/test_program.c over all exponents, in units in the last place of the true result (of
 * the least denormal where the result is one): exp 2, log 2, tanh 4, sigmoid 4, softplus 4, erf 2, pow 1. NaN gives
 * NaN, infinities give the limits, denormals are arguments and results like others. The plain form calls the C library.
 */
#ifndef KERNELS_ISA_VMATH_H
#define KERNELS_ISA_VMATH_H

#include "kernels/isa/isa.h"

#if VL == 1
static inline vf vexp(vf x)
{
    return expf(x);
}
static inline vf vlog(vf x)
{
    return logf(x);
}
static inline vf vtanh(vf x)
{
    return tanhf(x);
}
static inline vf vsigmoid(vf x)
{
    float e = expf(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}
static inline vf vsoftplus(vf x)
{
    return (x < 0 ? 0 : x) + log1pf(expf(-fabsf(x)));
}
static inline vf verf(vf x)
{
    return erff(x);
}
static inline vf vpow(vf a, vf b)
{
    return powf(a, b);
}
#else

/* Keeps a product from becoming part of a fused operation. */
static inline vf rounded(vf product)
{
    __asm__("" : "+v"(product));
    return product;
}

/* e^(x - n ln 2) - 1, for |x - n ln 2| <= ln 2 / 2. */
static inline vf vexp_rest(vf x, vf n)
{
    vf r = vfnma(n, vset(0x1.62e4p-1f), x);
    r = vfnma(n, vset(0x1.7f7d1cp-20f), r);
    vf q = vfma(vset(0x1.6db4eap-10f), r, vset(0x1.123bdep-7f));
    q = vfma(q, r, vset(0x1.55545ep-5f));
    q = vfma(q, r, vset(0x1.55548ep-3f));
    q = vfma(q, r, vset(0.5f));
    return vfma(q, r * r, r);
}

/* 2^shift e^x is (1 + the result) times *power, for whole numbers x / ln 2 from -126 - shift to 127 - shift, of which
 * no power is beyond the floats: the last bits of a sum with 1.5 x 2^23 are those of a whole number, here the exponent.
 */
static inline vf vexp_shifted(vf x, int shift, vf *power)
{
    const vf last = vset(0x1.8p23f + (float)(127 + shift));
    vf whole = rounded(x * vset(0x1.715476p+0f)) + last;
    *power = vfloat(vi_shl23(vbits(whole)));
    return vexp_rest(x, whole - last);
}

/* For x of at most 89, or NaN: maxima and minima give their second operand where it is NaN. */
static inline vf vexp(vf x)
{
    x = vmax_x86(vset(-104.0f), vmin_x86(vset(89.0f), x));
    vf n = vround(x * vset(0x1.715476p+0f));
    return vscale(vexp_rest(x, n) + vset(1.0f), n);
}

/* 2^SHIFT e^-|x|, beside which 2^SHIFT stands for 1: nothing is rounded to a denormal before the last division. */
enum { SHIFT = 32 };
#define SHIFTED_ONE vset((float)(1LL << SHIFT))

static inline vf vexp_minus_abs(vf x)
{
    vf power, p = vexp_shifted(vmax_x86(vset(-104.0f), vminus_abs(x)), SHIFT, &power);
    return (p + vset(1.0f)) * power;
}

static inline vf vlog(vf x)
{
    vf tiny = vset(0x1p-126f);
    vf scale = vsel_gt(tiny, x, vset(0x1p24f), vset(1.0f));
    vf bias = vsel_gt(tiny, x, vset(24.0f), vset(0.0f));
    vi bits = vi_sub(vbits(x * scale), vi_set(0x3f3504f3)); /* mantissa into [sqrt(1/2), sqrt(2)) */
    vf e = vconvert(vi_sar(bits, 23)) - bias;
    vf f = vfloat(vi_add(vi_and(bits, vi_set(0x007fffff)), vi_set(0x3f3504f3))) - vset(1.0f);
    vf p = vfma(vset(-0x1.41eddcp-4f), f, vset(0x1.07d0dep-3f));
    p = vfma(p, f, vset(-0x1.0ce07ap-3f));
    p = vfma(p, f, vset(0x1.226e4cp-3f));
    p = vfma(p, f, vset(-0x1.54788cp-3f));
    p = vfma(p, f, vset(0x1.99a596p-3f));
    p = vfma(p, f, vset(-0x1.00022p-2f));
    p = vfma(p, f, vset(0x1.55554ap-2f));
    vf square = f * f;
    vf low = vfma(e, vset(0x1.7f7d1cp-20f), p * (square * f));
    low = vfma(square, vset(-0.5f), low);
    vf y = vfma(e, vset(0x1.62e4p-1f), f + low);
    y = vsel_gt(vset(0.0f), x, vset(NAN), y);
    y = vsel_eq(x, vset(0.0f), vset(-INFINITY), y);
    return vsel_gt(vset(INFINITY), vabs(x), y, vsel_gt(vset(0.0f), x, vset(NAN), x)); /* +inf and NaN come back */
}

/* (e^2t - 1) / (e^2t + 1) with t = |x|, e^2t - 1 computed without cancellation. */
static inline vf vtanh(vf x)
{
    vf power, t = vmin_x86(vset(9.1f), vabs(x)), p = vexp_shifted(t + t, 0, &power);
    vf m = vfma(power, p, power - vset(1.0f));
    return vcopysign(m / (m + vset(2.0f)), x);
}

static inline vf vsigmoid(vf x)
{
    vf e = vexp_minus_abs(x);
    return vsel_negative(x, e, SHIFTED_ONE) / (SHIFTED_ONE + e);
}

/* max(x, 0) + log(1 + e^-|x|), the logarithm as 2 atanh(e / (2 + e)). */
static inline vf vsoftplus(vf x)
{
    vf e = vexp_minus_abs(x);
    vf s = e / (e + vset(2) * SHIFTED_ONE), z = s * s;
    vf p = vfma(vset(0x1.f1ae6cp-3f), z, vset(0x1.b6d6c6p-3f));
    p = vfma(p, z, vset(0x1.25097p-2f));
    p = vfma(p, z, vset(0x1.9996a8p-2f));
    p = vfma(p, z, vset(0x1.555558p-1f));
    return vmax_x86(vset(0.0f), x) + vfma(p, z * s, s + s);
}

/* x + x P(x^2) up to 0.95, 1 - e^-(|x| + Q(|x|)) beyond, where 4 and more give 1. */
static inline vf verf(vf x)
{
    vf t = vmin_x86(vset(4.0f), vabs(x)), z = t * t;
    vf p = vfma(vset(0x1.574ebep-14f), z, vset(-0x1.a88d86p-11f));
    p = vfma(p, z, vset(0x1.549662p-8f));
    p = vfma(p, z, vset(-0x1.b80962p-6f));
    p = vfma(p, z, vset(0x1.ce2dcap-4f));
    p = vfma(p, z, vset(-0x1.812742p-2f));
    p = vfma(p, z, vset(0x1.06eba8p-3f));
    vf q = vfma(vset(-0x1.938bf6p-13f), t, vset(0x1.8a55c4p-9f));
    q = vfma(q, t, vset(-0x1.69e24ap-6f));
    q = vfma(q, t, vset(0x1.a882c2p-4f));
    q = vfma(q, t, vset(0x1.4668a2p-1f));
    q = vfma(q, t, vset(0x1.05119ap-3f));
    q = vfma(q, t, vset(0x1.0099cep-12f));
    vf far = vset(1.0f) - vexp(vneg(t + q));
    return vsel_gt(vset(0.95f), t, vfma(x, p, x), vcopysign(far, x));
}

/* a^b = 2^(b log2 a) in double precision, where all of float's range is easy: log2 by the series of atanh((m - 1) / (m
 * + 1)), m in [sqrt(1/2), sqrt(2)), the power by that of e^x. Bases that are not positive and finite, and exponents
 * that are not finite, go to the C library, each by itself. */
static inline void pow_half(const float *a, const float *b, float *y)
{
    enum { HALF = VL / 2 }; /* doubles that fill a vector */
    typedef double vd __attribute__((vector_size(HALF * 8)));
    typedef int64_t vl __attribute__((vector_size(HALF * 8)));
    typedef uint64_t vu __attribute__((vector_size(HALF * 8)));
    typedef float flat __attribute__((vector_size(HALF * 4)));
    static const double log_series[] = {0x1.71547652b82fep+1, 0x1.ec709dc3a03fdp-1, 0x1.2776c50ef9bfep-1,
                                        0x1.a61762a7aded9p-2, 0x1.484b13d7c02a9p-2, 0x1.0c9a84994022dp-2,
                                        0x1.c68f568d31760p-3, 0x1.89f3b1694cffep-3};
    static const double exp_series[] = {0x1.0000000000000p+0,  0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58ep-3,
                                        0x1.c6b08d704a0bfp-5,  0x1.3b2ab6fba4e77p-7,  0x1.5d87fe78a6730p-10,
                                        0x1.430912f86c786p-13, 0x1.ffcbfc588b0c5p-17, 0x1.62c0223a5c822p-20,
                                        0x1.b5253d395e7c1p-24, 0x1.e4cf5158b8ec7p-28};
    const double shifter = 0x1.8p52;
    flat base, exponent;
    memcpy(&base, a, sizeof base);
    memcpy(&exponent, b, sizeof exponent);
    vd x = __builtin_convertvector(base, vd), by = __builtin_convertvector(exponent, vd);
    vl top = (vl)((vu)x - 0x3fe6a09e667f3bcdull) >> 52;
    vu e = (vu)top + 0x4338000000000000ull; /* as the last bits of a double */
    vd scale = (vd)e - shifter;
    vd m = (vd)((vu)x - (e << 52));
    vd s = (m - 1) / (m + 1), z = s * s, sum = z * log_series[7] + log_series[6];
    for (int i = 5; i >= 0; i--)
        sum = sum * z + log_series[i];
    vd t = by * (scale + s * sum), least = t * 0 - 400.0, most = t * 0 + 400.0;
    vl low = t<least, high = t> most;
    t = (vd)(((vl)t & ~(low | high)) | (low & (vl)least) | (high & (vl)most));
    vd whole = t + shifter, r = t - (whole - shifter), power = r * exp_series[10] + exp_series[9];
    for (int i = 8; i >= 0; i--)
        power = power * r + exp_series[i];
    flat result = __builtin_convertvector((vd)((vu)power + ((vu)whole << 52)), flat);
    memcpy(y, &result, sizeof result);
}

static inline vf vpow(vf a, vf b)
{
    float base[VL], exponent[VL], result[VL], fine[VL];
    vstore(base, a);
    vstore(exponent, b);
    pow_half(base, exponent, result);
    pow_half(base + VL / 2, exponent + VL / 2, result + VL / 2);
    vf least = vset(0x1p-149f), most = vset(0x1.fffffep127f);
    vf usual = vsel_gt(least, a, vset(0), vsel_gt(a, most, vset(0), vsel_ne(a, a, vset(0), vset(1))));
    usual = vsel_gt(vabs(b), most, vset(0), vsel_ne(b, b, vset(0), usual));
    if (vall_less(vset(0), usual))
        return vload(result);
    vstore(fine, usual);
    for (int i = 0; i < VL; i++)
        if (fine[i] == 0)
            result[i] = powf(base[i], exponent[i]);
    return vload(result);
}
#endif

#endif
