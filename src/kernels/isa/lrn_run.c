/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalization across channels, once per instruction set: s = k + alpha / size * sum over channels
 * [c - (size - 1) / 2, c + size / 2] of x^2, y = x s^-beta. Vectors run along a row of channels. The usual windows, of
 * 3 and 5 channels, meet only the vectors beside one, which stay in registers; others, and the plain form, read
 * neighbours from memory. Usual size: 32x32x32 rows of 64 to 192 channels. Any thread; a block owns its rows. */
#include "kernels/norm.h"

#include "kernels/isa/vmath.h"

#include <float.h>

void ISA_NAME(norm_lrn_rows)(const struct norm_block *b);
void ISA_NAME(norm_lrn_gradient_rows)(const struct norm_block *b);

/* What all vectors need, made once and kept where no store of vectors may reach. */
struct terms {
    int64_t c, low, high; /* channels of a row; of a window before and after its own */
    bool roots;           /* beta is 0.75 */
    vf part, k, beta, slope;
    float *direct, *ratio; /* rows of scratch */
};

static struct terms terms_of(const struct norm_block *b)
{
    const struct norm_spec *s = &b->spec;
    const double part = s->alpha / (double)s->size;
    return (struct terms){.c = s->c,
                          .low = (s->size - 1) / 2,
                          .high = s->size / 2,
                          .roots = s->beta == 0.75,
                          .part = vset((float)part),
                          .k = vset((float)s->k),
                          .beta = vset((float)-s->beta),
                          .slope = vset((float)(-2 * part * s->beta)),
                          .direct = b->a,
                          .ratio = b->b};
}

/* s^-beta and s^-1 of the sum of squares. */
struct powers {
    vf beta, one;
};

/* The usual beta 0.75 takes two square roots and one division; the reciprocal is made of them, 0 of an infinite s. */
INLINE struct powers powers(const struct terms *t, vf sum)
{
    const vf s = vfma(sum, t->part, t->k);
    if (t->roots) {
        const vf root = vsqrt(s), power = vset(1) / (root * vsqrt(root));
        return (struct powers){power, power * vmin_x86(vset(FLT_MAX), root) * power};
    }
    return (struct powers){vexp(t->beta * vlog(s)), vset(1) / s};
}

/* One row: of y, or of dx where there is dy. */
typedef void row_function(const struct terms *t, const float *x, const float *dy, float *y);

INLINE void each_row(const struct norm_block *b, row_function *row)
{
    const struct norm_spec s = b->spec;
    const struct terms t = terms_of(b);
    const int64_t end = b->end;
    const float *x = b->x, *dy = b->dy;
    float *y = b->y;
    for (int64_t r = b->begin; r < end; r++)
        row(&t, x + r * s.ldx, dy ? dy + r * s.lddy : NULL, y + r * s.ldy);
}

/* --- windows of any size: neighbours are read where they lie --- */

/* Channels at .. at + n - 1 of a row of `count`; zero outside of it. */
static inline vf neighbours(const float *row, int64_t at, int n, int64_t count)
{
    if (at >= 0 && at + n <= count)
        return vget(row + at, n);
    int to = (int)most(0, least(n, count - at));
    return vload_part(row + at, (int)least(to, most(0, -at)), to);
}

/* Sum over the windows of channels c .. c + n - 1, `low` and `high` to their sides, of the row or its squares. */
INLINE vf sum_around(const float *row, int64_t c, int n, int64_t count, int64_t low, int64_t high, bool squares)
{
    vf sum = vset(0);
    const int64_t from = most(-low, -(c + n - 1)), to = least(high, count - 1 - c);
    for (int64_t i = from; i <= to; i++) {
        const vf v = neighbours(row, c + i, n, count);
        if (squares)
            sum = vfma(v, v, sum);
        else
            sum = sum + v;
    }
    return sum;
}

static void wide(const struct terms *t, const float *x, const float *dy, float *y)
{
    for (int64_t c = 0; c < t->c; c += VL) {
        const int n = (int)least(VL, t->c - c);
        vput(y + c, vget(x + c, n) * powers(t, sum_around(x, c, n, t->c, t->low, t->high, true)).beta, n);
    }
}

/* The windows that hold a channel reach as far to its other sides. */
static void wide_gradient(const struct terms *t, const float *x, const float *dy, float *dx)
{
    for (int64_t c = 0; c < t->c; c += VL) {
        const int n = (int)least(VL, t->c - c);
        const struct powers p = powers(t, sum_around(x, c, n, t->c, t->low, t->high, true));
        const vf direct = vget(dy + c, n) * p.beta;
        vput(t->direct + c, direct, n);
        vput(t->ratio + c, direct * vget(x + c, n) * p.one, n);
    }
    for (int64_t c = 0; c < t->c; c += VL) {
        const int n = (int)least(VL, t->c - c);
        const vf sum = sum_around(t->ratio, c, n, t->c, t->high, t->low, false);
        vput(dx + c, vfma(t->slope * vget(x + c, n), sum, vget(t->direct + c, n)), n);
    }
}

/* --- windows that reach one or two channels to each side: `reach` is a constant --- */

#if VL > 1
/* A vector of channels and those beside it; zero outside of the row. */
struct beside {
    vf before, at, after;
};

INLINE struct beside move(struct beside v, vf next)
{
    return (struct beside){v.at, v.after, next};
}

/* Sums of squares over the windows, in the order of the channels. */
INLINE vf sum_squares(const struct beside *x, int reach)
{
    const vf first = vearlier2(x->before, x->at), second = vearlier1(x->before, x->at),
             fourth = vlater1(x->at, x->after), fifth = vlater2(x->at, x->after);
    vf sum = vset(0);
    if (reach == 2)
        sum = first * first;
    sum = vfma(fourth, fourth, vfma(x->at, x->at, vfma(second, second, sum)));
    return reach == 2 ? vfma(fifth, fifth, sum) : sum;
}

INLINE vf sum_lanes(const struct beside *v, int reach)
{
    vf sum = vearlier1(v->before, v->at);
    if (reach == 2)
        sum = vearlier2(v->before, v->at) + sum;
    sum = sum + v->at + vlater1(v->at, v->after);
    if (reach == 2)
        sum = sum + vlater2(v->at, v->after);
    return sum;
}

/* Channels from c on. */
INLINE vf channels(const float *row, int64_t c, int64_t count)
{
    return c + VL <= count ? vload(row + c) : c < count ? vload_n(row + c, (int)(count - c)) : vset(0);
}

INLINE void put_channels(float *row, int64_t c, int64_t count, vf v)
{
    vput(row + c, v, (int)least(VL, count - c));
}

INLINE void near(const struct terms *t, const float *x, float *y, int reach)
{
    struct beside v = {vset(0), vset(0), channels(x, 0, t->c)};
    for (int64_t c = 0; c < t->c; c += VL) {
        v = move(v, channels(x, c + VL, t->c));
        put_channels(y, c, t->c, v.at * powers(t, sum_squares(&v, reach)).beta);
    }
}

/* The ratio dy x s^(-beta - 1) of a vector completes the windows above the one before it, whose gradient is then
 * written. */
INLINE void near_gradient(const struct terms *t, const float *x, const float *dy, float *dx, int reach)
{
    struct beside v = {vset(0), vset(0), channels(x, 0, t->c)}, ratio = {vset(0), vset(0), vset(0)};
    vf direct = vset(0);
    int64_t c = 0;
    for (; c < t->c; c += VL) {
        v = move(v, channels(x, c + VL, t->c));
        const struct powers p = powers(t, sum_squares(&v, reach));
        const vf next = channels(dy, c, t->c) * p.beta;
        ratio = move(ratio, next * v.at * p.one);
        if (c + VL > t->c) /* of lanes that are no channels it may be NaN */
            ratio.after = vkeep(ratio.after, (int)(t->c - c));
        if (c > 0)
            vstore(dx + c - VL, vfma(t->slope * v.before, sum_lanes(&ratio, reach), direct));
        direct = next;
    }
    ratio = move(ratio, vset(0));
    if (c > 0)
        put_channels(dx, c - VL, t->c, vfma(t->slope * v.at, sum_lanes(&ratio, reach), direct));
}

#define NEAR(reach)                                                                                                    \
    INLINE void near_##reach(const struct terms *t, const float *x, const float *dy, float *y)                         \
    {                                                                                                                  \
        near(t, x, y, reach);                                                                                          \
    }                                                                                                                  \
    INLINE void near_gradient_##reach(const struct terms *t, const float *x, const float *dy, float *dx)               \
    {                                                                                                                  \
        near_gradient(t, x, dy, dx, reach);                                                                            \
    }
NEAR(1)
NEAR(2)

void ISA_NAME(norm_lrn_rows)(const struct norm_block *b)
{
    if (b->spec.size == 5)
        each_row(b, near_2);
    else if (b->spec.size == 3)
        each_row(b, near_1);
    else
        each_row(b, wide);
}

void ISA_NAME(norm_lrn_gradient_rows)(const struct norm_block *b)
{
    if (b->spec.size == 5)
        each_row(b, near_gradient_2);
    else if (b->spec.size == 3)
        each_row(b, near_gradient_1);
    else
        each_row(b, wide_gradient);
}
#else
void ISA_NAME(norm_lrn_rows)(const struct norm_block *b) { each_row(b, wide); }
void ISA_NAME(norm_lrn_gradient_rows)(const struct norm_block *b) { each_row(b, wide_gradient); }
#endif
