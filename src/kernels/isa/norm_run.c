/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of normalization, once per instruction set: vectors run over channels. Statistics of a leaf are taken
 * block by block of rows that fit in L1 (16 KB): the mean first, then deviations from it, then both are merged into the
 * leaf's. So each sum has at most 64 terms before it is merged, and x comes from memory once. Any thread; a block owns
 * its rows or its leaf. */
#include "kernels/norm.h"

#include "kernels/isa/vmath.h"

void ISA_NAME(norm_batch_leaf)(const struct norm_block *b);
void ISA_NAME(norm_batch_rows)(const struct norm_block *b);
void ISA_NAME(norm_gradient_leaf)(const struct norm_block *b);
void ISA_NAME(norm_gradient_rows)(const struct norm_block *b);
void ISA_NAME(norm_inference_rows)(const struct norm_block *b);
void ISA_NAME(norm_lrn_rows)(const struct norm_block *b);
void ISA_NAME(norm_lrn_gradient_rows)(const struct norm_block *b);

static inline vf get(const float *p, int n)
{
    return n == VL ? vload(p) : vload_n(p, n);
}
static inline void put(float *p, vf v, int n)
{
    if (n == VL)
        vstore(p, v);
    else
        vstore_n(p, v, n);
}
static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Calls body(c, n) for each vector of [0, count); the last may have n < VL. */
#define CHANNELS(c, n, count, body)                                                                                    \
    do {                                                                                                               \
        int64_t c = 0;                                                                                                 \
        for (; c + VL <= (count); c += VL) {                                                                           \
            enum { n = VL };                                                                                           \
            body;                                                                                                      \
        }                                                                                                              \
        if (c < (count)) {                                                                                             \
            const int n = (int)((count)-c);                                                                            \
            body;                                                                                                      \
        }                                                                                                              \
    } while (0)

/* Rows a block: 16 KB of x, 8 to 64 rows. Depends on c alone, as the rounding does. */
static inline int64_t block_rows(int64_t c)
{
    return most(8, least(64, 4096 / most(c, 1)));
}

/* Merges rows [r0, r1) of n channels at x into mean and deviations of the `before` rows merged so far. */
static inline void merge_rows(const float *x, int64_t ld, int64_t r0, int64_t r1, int64_t before, float *mean,
                              float *deviations, int n)
{
    float count = (float)(r1 - r0);
    vf sum = vset(0), square = vset(0);
    for (int64_t r = r0; r < r1; r++)
        sum = sum + get(x + r * ld, n);
    vf m = sum / vset(count);
    for (int64_t r = r0; r < r1; r++) {
        vf d = get(x + r * ld, n) - m;
        square = vfma(d, d, square);
    }
    if (before) {
        float total = (float)before + count;
        vf delta = m - get(mean, n);
        m = vfma(delta, vset(count / total), get(mean, n));
        square = square + vfma(delta * delta, vset((float)before * count / total), get(deviations, n));
    }
    put(mean, m, n);
    put(deviations, square, n);
}

void ISA_NAME(norm_batch_leaf)(const struct norm_block *b)
{
    const struct norm_spec *s = b->spec;
    int64_t step = block_rows(s->c);
    for (int64_t r = b->begin; r < b->end; r += step) {
        int64_t end = least(r + step, b->end);
        CHANNELS(c, n, s->c, merge_rows(b->x + c, s->ldx, r, end, r - b->begin, b->a + c, b->b + c, n));
    }
}

void ISA_NAME(norm_batch_rows)(const struct norm_block *b)
{
    const struct norm_spec *s = b->spec;
    for (int64_t r = b->begin; r < b->end; r++) {
        const float *x = b->x + r * s->ldx;
        float *y = b->y + r * s->ldy;
        CHANNELS(c, n, s->c, {
            vf a = get(b->scale + c, n) * get(b->inv_std + c, n);
            put(y + c, vfma(get(x + c, n) - get(b->mean + c, n), a, get(b->bias + c, n)), n);
        });
    }
}

/* Adds rows [r0, r1) of dy and dy (x - mean) to the leaf's sums, or starts them. */
static inline void add_rows(const struct norm_block *b, int64_t c, int64_t r0, int64_t r1, int n)
{
    const struct norm_spec *s = b->spec;
    vf sum = vset(0), product = vset(0), mean = get(b->mean + c, n);
    for (int64_t r = r0; r < r1; r++) {
        vf dy = get(b->dy + r * s->lddy + c, n);
        sum = sum + dy;
        product = vfma(dy, get(b->x + r * s->ldx + c, n) - mean, product);
    }
    if (r0 > b->begin) {
        sum = sum + get(b->a + c, n);
        product = product + get(b->b + c, n);
    }
    put(b->a + c, sum, n);
    put(b->b + c, product, n);
}

void ISA_NAME(norm_gradient_leaf)(const struct norm_block *b)
{
    int64_t step = block_rows(2 * b->spec->c);
    for (int64_t r = b->begin; r < b->end; r += step)
        CHANNELS(c, n, b->spec->c, add_rows(b, c, r, least(r + step, b->end), n));
}

void ISA_NAME(norm_gradient_rows)(const struct norm_block *b)
{
    const struct norm_spec *s = b->spec;
    for (int64_t r = b->begin; r < b->end; r++) {
        const float *x = b->x + r * s->ldx, *dy = b->dy + r * s->lddy;
        float *dx = b->y + r * s->ldy;
        CHANNELS(c, n, s->c, {
            vf slope = get(b->scale + c, n) * get(b->inv_std + c, n);
            vf centred = get(dy + c, n) - get(b->a + c, n);
            put(dx + c, slope * vfnma(get(x + c, n) - get(b->mean + c, n), get(b->b + c, n), centred), n);
        });
    }
}

void ISA_NAME(norm_inference_rows)(const struct norm_block *b)
{
    const struct norm_spec *s = b->spec;
    vf epsilon = vset((float)s->epsilon);
    for (int64_t r = b->begin; r < b->end; r++) {
        const float *x = b->x + r * s->ldx;
        float *y = b->y + r * s->ldy;
        CHANNELS(c, n, s->c, {
            vf a = get(b->scale + c, n) / vsqrt(get(b->inv_std + c, n) + epsilon);
            put(y + c, vfma(get(x + c, n) - get(b->mean + c, n), a, get(b->bias + c, n)), n);
        });
    }
}

/* --- local response: s = k + alpha / size * sum over channels [c - low, c + high] of x^2 --- */

/* Channels at .. at + n - 1 of a row of `count`; zero outside of it. */
static inline vf neighbours(const float *row, int64_t at, int n, int64_t count)
{
    if (at >= 0 && at + n <= count)
        return get(row + at, n);
    int to = (int)most(0, least(n, count - at));
    return vload_part(row + at, (int)least(to, most(0, -at)), to);
}

/* s for channels c .. c + n - 1. */
static inline vf response(const struct norm_spec *s, const float *x, int64_t c, int n)
{
    vf sum = vset(0);
    const int64_t from = most(-((s->size - 1) / 2), -(c + n - 1)), to = least(s->size / 2, s->c - 1 - c);
    for (int64_t t = from; t <= to; t++) {
        vf v = neighbours(x, c + t, n, s->c);
        sum = vfma(v, v, sum);
    }
    return vfma(sum, vset((float)(s->alpha / (double)s->size)), vset((float)s->k));
}

/* s^-beta. The usual beta 0.75 is two square roots. */
static inline vf power(const struct norm_spec *s, vf v)
{
    if (s->beta == 0.75) {
        vf root = vsqrt(v);
        return vset(1) / (root * vsqrt(root));
    }
    return vexp(vset((float)-s->beta) * vlog(v));
}

void ISA_NAME(norm_lrn_rows)(const struct norm_block *b)
{
    const struct norm_spec *s = b->spec;
    for (int64_t r = b->begin; r < b->end; r++) {
        const float *x = b->x + r * s->ldx;
        float *y = b->y + r * s->ldy;
        CHANNELS(c, n, s->c, put(y + c, get(x + c, n) * power(s, response(s, x, c, n)), n));
    }
}

/* Sum of ratio over the channels whose window holds c + lane: [c - high, c + low]. */
static inline vf spread(const struct norm_spec *s, const float *ratio, int64_t c, int n)
{
    vf sum = vset(0);
    const int64_t from = most(-(s->size / 2), -(c + n - 1)), to = least((s->size - 1) / 2, s->c - 1 - c);
    for (int64_t t = from; t <= to; t++)
        sum = sum + neighbours(ratio, c + t, n, s->c);
    return sum;
}

void ISA_NAME(norm_lrn_gradient_rows)(const struct norm_block *b)
{
    const struct norm_spec *s = b->spec;
    vf factor = vset((float)(-2 * s->alpha * s->beta / (double)s->size));
    for (int64_t r = b->begin; r < b->end; r++) {
        const float *x = b->x + r * s->ldx, *dy = b->dy + r * s->lddy;
        float *dx = b->y + r * s->ldy;
        CHANNELS(c, n, s->c, {
            vf scale = response(s, x, c, n);
            vf direct = get(dy + c, n) * power(s, scale);
            put(b->a + c, direct, n);
            put(b->b + c, direct * get(x + c, n) / scale, n);
        });
        CHANNELS(c, n, s->c, put(dx + c, vfma(factor * get(x + c, n), spread(s, b->b, c, n), get(b->a + c, n)), n));
    }
}
