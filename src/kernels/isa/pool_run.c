/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of pooling, once per instruction set: vectors run over channels, a window's elements are combined in
 * registers in window order (row by row), so every form gives the same bits for max, and for averages too (additions
 * only, one division). Writes nothing but its block; reads nothing outside the images. Any thread. */
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

enum { FEW = 4 }; /* vectors combined at a time */

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
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

/* Combines the window for `vectors` vectors, the last of which has n elements; vectors and n are constants but for the
 * tail. */
static inline void max_of(const struct pool_shape *s, const struct window *v, const float *image, float *y, int vectors,
                          int n)
{
    vf best[FEW];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        best[k] = get(image + (v->h0 * s->w + v->w0) * s->ldx + k * VL, n);
    for (int64_t h = v->h0; h < v->h1; h++)
        for (const float *p = image + (h * s->w + v->w0) * s->ldx, *end = p + (v->w1 - v->w0) * s->ldx; p < end;
             p += s->ldx)
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++) {
                vf x = get(p + k * VL, n);
                best[k] = vsel_ne(x, x, x, vsel_gt(x, best[k], x, best[k]));
            }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        put(y + k * VL, best[k], n);
}

static inline void sum_of(const struct pool_shape *s, const struct window *v, const float *image, float *y, int vectors,
                          int n)
{
    vf sum[FEW];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        sum[k] = vset(0);
    for (int64_t h = v->h0; h < v->h1; h++)
        for (const float *p = image + (h * s->w + v->w0) * s->ldx, *end = p + (v->w1 - v->w0) * s->ldx; p < end;
             p += s->ldx)
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++)
                sum[k] = sum[k] + get(p + k * VL, n);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        put(y + k * VL, sum[k] / vset(v->divisor), n);
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
                for (; c + FEW * VL <= b->c1; c += FEW * VL)                                                           \
                    combine(s, &v, image + c, y + c, FEW, VL);                                                         \
                for (; c + VL <= b->c1; c += VL)                                                                       \
                    combine(s, &v, image + c, y + c, 1, VL);                                                           \
                if (c < b->c1)                                                                                         \
                    combine(s, &v, image + c, y + c, 1, (int)(b->c1 - c));                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
FORWARD(pool_max, max_of)
FORWARD(pool_average, sum_of)

/* Exact tiles: gives dy to the first element that made y; what is left of dy is zero from then on. */
static inline void give(const struct pool_shape *s, const struct window *v, const float *image, vf y, vf left,
                        float *dx, int n)
{
    vf zero = vset(0);
    for (int64_t h = v->h0; h < v->h1; h++)
        for (int64_t w = v->w0; w < v->w1; w++) {
            int64_t pixel = h * s->w + w;
            vf x = get(image + pixel * s->ldx, n);
            put(dx + pixel * s->lddx, vsel_ne(x, x, left, vsel_eq(x, y, left, zero)), n);
            left = vsel_ne(x, x, zero, vsel_eq(x, y, zero, left));
        }
}

static void give_row(const struct pool_block *b, int64_t row)
{
    const struct pool_shape *s = &b->spec->shape;
    const float *x = b->x + row / s->oh * s->h * s->w * s->ldx;
    float *dx = b->out + row / s->oh * s->h * s->w * s->lddx;
    for (int64_t ow = 0; ow < s->ow; ow++) {
        struct window v = window_at(s, row % s->oh, ow);
        const float *y = b->y + (row * s->ow + ow) * s->ldy, *dy = b->dy + (row * s->ow + ow) * s->lddy;
        int64_t c = b->c0;
        for (; c + VL <= b->c1; c += VL)
            give(s, &v, x + c, vload(y + c), vload(dy + c), dx + c, VL);
        int n = (int)(b->c1 - c);
        if (n > 0)
            give(s, &v, x + c, vload_n(y + c, n), vload_n(dy + c, n), dx + c, n);
    }
}

/* The place in its window of the element that made y, counted row by row from the window's nominal corner: the first
 * one, found by going backwards. */
static inline void place_of(const struct pool_shape *s, const struct window *v, int64_t oh, int64_t ow,
                            const float *image, const float *y, float *to, int vectors, int n)
{
    vf place[FEW], largest[FEW];
    int64_t top = oh * s->stride_h - s->pad_top, left = ow * s->stride_w - s->pad_left;
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++) {
        place[k] = vset(-1);
        largest[k] = get(y + k * VL, n);
    }
    for (int64_t h = v->h1 - 1; h >= v->h0; h--)
        for (int64_t w = v->w1 - 1; w >= v->w0; w--) {
            vf at = vset((float)((h - top) * s->kw + w - left));
            const float *p = image + (h * s->w + w) * s->ldx;
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++) {
                vf x = get(p + k * VL, n);
                place[k] = vsel_ne(x, x, at, vsel_eq(x, largest[k], at, place[k]));
            }
        }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        put(to + k * VL, place[k], n);
}

/* Places of output row `row` (of all images), for the channels of the block. */
static void find_places(const struct pool_block *b, int64_t row, float *places)
{
    const struct pool_shape *s = &b->spec->shape;
    const float *image = b->x + row / s->oh * s->h * s->w * s->ldx;
    int64_t channels = b->c1 - b->c0;
    for (int64_t ow = 0; ow < s->ow; ow++) {
        struct window v = window_at(s, row % s->oh, ow);
        const float *y = b->y + (row * s->ow + ow) * s->ldy;
        float *to = places + ow * channels - b->c0;
        int64_t c = b->c0;
        for (; c + FEW * VL <= b->c1; c += FEW * VL)
            place_of(s, &v, row % s->oh, ow, image + c, y + c, to + c, FEW, VL);
        for (; c + VL <= b->c1; c += VL)
            place_of(s, &v, row % s->oh, ow, image + c, y + c, to + c, 1, VL);
        if (c < b->c1)
            place_of(s, &v, row % s->oh, ow, image + c, y + c, to + c, 1, (int)(b->c1 - c));
    }
}

/* Windows [*first, *end) of `count` that cover position i. */
static inline void covering(int64_t i, int64_t pad, int64_t kernel, int64_t stride, int64_t count, int64_t *first,
                            int64_t *end)
{
    int64_t low = i + pad - kernel + 1; /* the least start, counted from the padded border */
    *first = low <= 0 ? 0 : (low + stride - 1) / stride;
    *end = least(count, (i + pad) / stride + 1);
}

/* The windows over one element of the image, in order; dx is finished TAPS windows at a time. */
enum { TAPS = 32 };
struct tap {
    const float *dy, *place; /* place NULL: average */
    float at;                /* place of the element in this window; average: the window's divisor */
};

static inline vf taps_sum(const struct tap *tap, int taps, vf sum, int64_t c, int n)
{
    for (int i = 0; i < taps; i++) {
        vf dy = get(tap[i].dy + c, n), at = vset(tap[i].at);
        if (tap[i].place)
            sum = sum + vsel_eq(get(tap[i].place + c, n), at, dy, vset(0));
        else
            sum = sum + dy / at;
    }
    return sum;
}

/* Adds the windows to dx, or starts dx with them. */
static void add_taps(const struct pool_block *b, const struct tap *tap, int taps, float *dx, bool start)
{
    int64_t c = b->c0;
    for (; c + VL <= b->c1; c += VL)
        vstore(dx + c, taps_sum(tap, taps, start ? vset(0) : vload(dx + c), c, VL));
    int n = (int)(b->c1 - c);
    if (n > 0)
        vstore_n(dx + c, taps_sum(tap, taps, start ? vset(0) : vload_n(dx + c, n), c, n), n);
}

/* dx of one element (h, w) of the image whose dy begins at `dy`: windows oh in rows[], ow in columns[]. */
static void gather(const struct pool_block *b, const float *dy, int64_t h, int64_t w, const int64_t *rows,
                   const int64_t *columns, float *dx)
{
    const struct pool_shape *s = &b->spec->shape;
    struct tap tap[TAPS];
    int taps = 0;
    bool start = true;
    for (int64_t oh = rows[0]; oh < rows[1]; oh++)
        for (int64_t ow = columns[0]; ow < columns[1]; ow++) {
            if (taps == TAPS) {
                add_taps(b, tap, taps, dx, start);
                start = false;
                taps = 0;
            }
            int64_t at = (h - oh * s->stride_h + s->pad_top) * s->kw + w - ow * s->stride_w + s->pad_left;
            tap[taps] = (struct tap){.dy = dy + (oh * s->ow + ow) * s->lddy, .at = (float)at};
            if (b->spec->kind == POOL_MAX)
                tap[taps].place = b->places + (oh % b->ring * s->ow + ow) * (b->c1 - b->c0) - b->c0;
            else
                tap[taps].at = window_at(s, oh, ow).divisor;
            taps++;
        }
    add_taps(b, tap, taps, dx, start);
}

/* Windows that overlap or leave gaps: places are found once a row of windows, in a ring of as many rows as cover one
 * row of the image; then each element of dx gathers what is its own, so rows of dx may be computed in any order. */
static void gather_rows(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    int64_t ready = -1; /* rows of windows up to here have their places, counted over all images */
    for (int64_t row = b->begin; row < b->end; row++) {
        int64_t image = row / s->h, h = row % s->h, rows[2], columns[2];
        const float *dy = b->dy + image * s->oh * s->ow * s->lddy;
        covering(h, s->pad_top, s->kh, s->stride_h, s->oh, &rows[0], &rows[1]);
        for (int64_t oh = rows[0]; oh < rows[1]; oh++)
            if (image * s->oh + oh > ready) {
                ready = image * s->oh + oh;
                find_places(b, ready, b->places + oh % b->ring * s->ow * (b->c1 - b->c0));
            }
        for (int64_t w = 0; w < s->w; w++) {
            covering(w, s->pad_left, s->kw, s->stride_w, s->ow, &columns[0], &columns[1]);
            gather(b, dy, h, w, rows, columns, b->out + (row * s->w + w) * s->lddx);
        }
    }
}

void ISA_NAME(pool_max_gradient)(const struct pool_block *b)
{
    if (!pool_exact_tiles(&b->spec->shape))
        gather_rows(b);
    else
        for (int64_t row = b->begin; row < b->end; row++)
            give_row(b, row);
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
            gather(b, dy, row % s->h, i, h, w, b->out + (row * s->w + i) * s->lddx);
        }
    }
}
