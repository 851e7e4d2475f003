/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of pooling, once per instruction set: vectors run over channels, a window's elements are combined in registers
 * in window order (row by row), so every form gives the same bits for max, and for averages too (additions only, one division).
 * Writes nothing but its block; reads nothing outside the images. Any thread. */
#include "kernels/pool.h"

#include "kernels/isa/isa.h"

void ISA_NAME(pool_max)(const struct pool_block *b);
void ISA_NAME(pool_average)(const struct pool_block *b);
void ISA_NAME(pool_max_gradient)(const struct pool_block *b);
void ISA_NAME(pool_average_gradient)(const struct pool_block *b);

/* A window's real elements, and the number its average divides by. */
struct window {
    int64_t h0, h1, w0, w1;
    float divisor;
};

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline vf get(const float *p, int n) { return n == VL ? vload(p) : vload_n(p, n); }
static inline void put(float *p, vf v, int n)
{
    if (n == VL)
        vstore(p, v);
    else
        vstore_n(p, v, n);
}

static inline struct window window_at(const struct pool_shape *s, int64_t oh, int64_t ow)
{
    int64_t h = oh * s->stride_h - s->pad_top, w = ow * s->stride_w - s->pad_left;
    struct window v = {most(h, 0), least(h + s->kh, s->h), most(w, 0), least(w + s->kw, s->w), 1};
    if (s->count_include_pad)
        v.divisor = (float)((least(h + s->kh, s->h + s->pad_bottom) - h) * (least(w + s->kw, s->w + s->pad_right) - w));
    else
        v.divisor = (float)((v.h1 - v.h0) * (v.w1 - v.w0));
    return v;
}

static inline vf max_of(const struct pool_shape *s, const struct window *v, const float *image, int n)
{
    vf best = get(image + (v->h0 * s->w + v->w0) * s->ldx, n);
    for (int64_t h = v->h0; h < v->h1; h++)
        for (int64_t w = v->w0; w < v->w1; w++) {
            vf x = get(image + (h * s->w + w) * s->ldx, n);
            best = vsel_ne(x, x, x, vsel_gt(x, best, x, best));
        }
    return best;
}

static inline vf sum_of(const struct pool_shape *s, const struct window *v, const float *image, int n)
{
    vf sum = vset(0);
    for (int64_t h = v->h0; h < v->h1; h++)
        for (int64_t w = v->w0; w < v->w1; w++)
            sum = sum + get(image + (h * s->w + w) * s->ldx, n);
    return sum / vset(v->divisor);
}

#define FORWARD(name, combine)                                                                                         \
    void ISA_NAME(name)(const struct pool_block *b)                                                                    \
    {                                                                                                                  \
        const struct pool_shape *s = &b->spec->shape;                                                                  \
        for (int64_t row = b->begin; row < b->end; row++) {                                                            \
            const float *image = b->x + row / s->oh * s->h * s->w * s->ldx;                                            \
            for (int64_t ow = 0; ow < s->ow; ow++) {                                                                   \
                struct window v = window_at(s, row % s->oh, ow);                                                       \
                float *y = b->out + (row * s->ow + ow) * s->ldy;                                                       \
                int64_t c = b->c0;                                                                                     \
                for (; c + VL <= b->c1; c += VL)                                                                       \
                    vstore(y + c, combine(s, &v, image + c, VL));                                                      \
                if (c < b->c1)                                                                                         \
                    put(y + c, combine(s, &v, image + c, (int)(b->c1 - c)), (int)(b->c1 - c));                         \
            }                                                                                                          \
        }                                                                                                              \
    }
FORWARD(pool_max, max_of)
FORWARD(pool_average, sum_of)

/* Gives dy to the first element that made y. What is left of dy is zero from then on. */
static inline void give(const struct pool_shape *s, const struct window *v, const float *image, vf y, vf left, float *dx,
                        bool store, int n)
{
    vf zero = vset(0);
    for (int64_t h = v->h0; h < v->h1; h++)
        for (int64_t w = v->w0; w < v->w1; w++) {
            int64_t pixel = h * s->w + w;
            vf x = get(image + pixel * s->ldx, n);
            vf taken = vsel_ne(x, x, left, vsel_eq(x, y, left, zero));
            left = vsel_ne(x, x, zero, vsel_eq(x, y, zero, left));
            float *to = dx + pixel * s->lddx;
            if (!store)
                taken = get(to, n) + taken;
            put(to, taken, n);
        }
}

static inline void give_pixel(const struct pool_block *b, int64_t image, int64_t oh, int64_t ow, bool store)
{
    const struct pool_shape *s = &b->spec->shape;
    struct window v = window_at(s, oh, ow);
    const float *x = b->x + image * s->h * s->w * s->ldx;
    int64_t pixel = (image * s->oh + oh) * s->ow + ow;
    const float *y = b->y + pixel * s->ldy, *dy = b->dy + pixel * s->lddy;
    float *dx = b->out + image * s->h * s->w * s->lddx;
    int64_t c = b->c0;
    for (; c + VL <= b->c1; c += VL)
        give(s, &v, x + c, vload(y + c), vload(dy + c), dx + c, store, VL);
    int n = (int)(b->c1 - c);
    if (n > 0)
        give(s, &v, x + c, vload_n(y + c, n), vload_n(dy + c, n), dx + c, store, n);
}

void ISA_NAME(pool_max_gradient)(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    if (pool_exact_tiles(s)) {
        for (int64_t row = b->begin; row < b->end; row++)
            for (int64_t ow = 0; ow < s->ow; ow++)
                give_pixel(b, row / s->oh, row % s->oh, ow, true);
        return;
    }
    for (int64_t image = b->begin; image < b->end; image++) {
        for (int64_t pixel = image * s->h * s->w; pixel < (image + 1) * s->h * s->w && b->c1 > b->c0; pixel++)
            memset(b->out + pixel * s->lddx + b->c0, 0, (size_t)(b->c1 - b->c0) * sizeof(float));
        for (int64_t oh = 0; oh < s->oh; oh++)
            for (int64_t ow = 0; ow < s->ow; ow++)
                give_pixel(b, image, oh, ow, false);
    }
}

/* Windows [*first, *end) of `count` that cover position i. */
static inline void covering(int64_t i, int64_t pad, int64_t kernel, int64_t stride, int64_t count, int64_t *first, int64_t *end)
{
    int64_t low = i + pad - kernel + 1; /* the least start, counted from the padded border */
    *first = low <= 0 ? 0 : (low + stride - 1) / stride;
    *end = least(count, (i + pad) / stride + 1);
}

static inline vf gathered(const struct pool_shape *s, const float *dy, const int64_t *h, const int64_t *w, int n)
{
    vf sum = vset(0);
    for (int64_t oh = h[0]; oh < h[1]; oh++)
        for (int64_t ow = w[0]; ow < w[1]; ow++) {
            struct window v = window_at(s, oh, ow);
            sum = sum + get(dy + (oh * s->ow + ow) * s->lddy, n) / vset(v.divisor);
        }
    return sum;
}

void ISA_NAME(pool_average_gradient)(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    for (int64_t row = b->begin; row < b->end; row++) {
        const float *dy = b->dy + row / s->h * s->oh * s->ow * s->lddy;
        int64_t h[2], w[2];
        covering(row % s->h, s->pad_top, s->kh, s->stride_h, s->oh, &h[0], &h[1]);
        for (int64_t i = 0; i < s->w; i++) {
            covering(i, s->pad_left, s->kw, s->stride_w, s->ow, &w[0], &w[1]);
            float *dx = b->out + (row * s->w + i) * s->lddx;
            int64_t c = b->c0;
            for (; c + VL <= b->c1; c += VL)
                vstore(dx + c, gathered(s, dy + c, h, w, VL));
            int n = (int)(b->c1 - c);
            if (n > 0)
                vstore_n(dx + c, gathered(s, dy + c, h, w, n), n);
        }
    }
}
