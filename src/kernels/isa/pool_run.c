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

/* Calls of(.., rows, columns) with a window's size, which is a constant in the usual ones. */
#define SIZED(of, v, ...)                                                                                              \
    do {                                                                                                               \
        if ((v)->h1 - (v)->h0 == 3 && (v)->w1 - (v)->w0 == 3)                                                          \
            of(__VA_ARGS__, 3, 3);                                                                                     \
        else if ((v)->h1 - (v)->h0 == 2 && (v)->w1 - (v)->w0 == 2)                                                     \
            of(__VA_ARGS__, 2, 2);                                                                                     \
        else                                                                                                           \
            of(__VA_ARGS__, (v)->h1 - (v)->h0, (v)->w1 - (v)->w0);                                                     \
    } while (0)

/* Channels [c0, c1) of the block in groups of vectors that stay in registers; vectors and n are constants but for the
 * tail. All groups of a window come before the next window: memory is walked in its order, and a gradient that several
 * windows give to is not read again right after it was written, which would wait for the write. */
#define GROUPS(b, call, ...)                                                                                           \
    do {                                                                                                               \
        int64_t c = (b)->c0;                                                                                           \
        for (; c + FEW * VL <= (b)->c1; c += FEW * VL)                                                                 \
            call(__VA_ARGS__, c, FEW, VL);                                                                             \
        for (; c + VL <= (b)->c1; c += VL)                                                                             \
            call(__VA_ARGS__, c, 1, VL);                                                                               \
        if (c < (b)->c1)                                                                                               \
            call(__VA_ARGS__, c, 1, (int)((b)->c1 - c));                                                               \
    } while (0)

#define INLINE __attribute__((always_inline)) static inline

/* x: the window's first element. */
INLINE void max_of(const struct pool_shape *s, const float *x, float divisor, float *y, int vectors, int n, int64_t rows,
                   int64_t columns)
{
    vf best[FEW];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        best[k] = get(x + k * VL, n);
    for (int64_t h = 0; h < rows; h++)
        for (int64_t w = 0; w < columns; w++)
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++) {
                vf e = get(x + (h * s->w + w) * s->ldx + k * VL, n);
                best[k] = vsel_ne(e, e, e, vmax_x86(e, best[k]));
            }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        put(y + k * VL, best[k], n);
    (void)divisor;
}

INLINE void sum_of(const struct pool_shape *s, const float *x, float divisor, float *y, int vectors, int n, int64_t rows,
                   int64_t columns)
{
    vf sum[FEW];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        sum[k] = vset(0);
    for (int64_t h = 0; h < rows; h++)
        for (int64_t w = 0; w < columns; w++)
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++)
                sum[k] = sum[k] + get(x + (h * s->w + w) * s->ldx + k * VL, n);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        put(y + k * VL, sum[k] / vset(divisor), n);
}

INLINE void combine(const struct pool_shape *s, const struct window *v, bool max, const float *x, float *y, int64_t c,
                    int vectors, int n)
{
    if (max)
        SIZED(max_of, v, s, x + c, v->divisor, y + c, vectors, n);
    else
        SIZED(sum_of, v, s, x + c, v->divisor, y + c, vectors, n);
}

INLINE void forward(const struct pool_block *b, bool max)
{
    const struct pool_shape *s = &b->spec->shape;
    for (int64_t row = b->begin; row < b->end; row++) {
        const float *image = b->x + row / s->oh * s->h * s->w * s->ldx;
        const int64_t oh = row % s->oh;
        for (int64_t ow = 0; ow < s->ow; ow++) {
            const struct window v = window_at(s, oh, ow);
            GROUPS(b, combine, s, &v, max, image + (v.h0 * s->w + v.w0) * s->ldx, b->out + (row * s->ow + ow) * s->ldy);
        }
    }
}

void ISA_NAME(pool_max)(const struct pool_block *b) { forward(b, true); }
void ISA_NAME(pool_average)(const struct pool_block *b) { forward(b, false); }

/* --- gradients: every window gives to the elements under it, in the order of windows ---------------------------------------- */

/* Rows [top, bottom) of an image, which this block makes; others belong to other blocks. */
struct part {
    const float *x, *y, *dy; /* of the image; x, y: max alone */
    float *dx;
    int64_t top, bottom;
};

/* How one window gives: compile-time constants. */
struct manner {
    bool max;     /* to the first element that made y, otherwise equal parts to all */
    bool add;     /* to what earlier windows gave */
    bool careful; /* y may be NaN: then to the first NaN */
};

/* at: the window's place among the image's; from: its first element's place. */
INLINE void give_of(const struct pool_shape *s, const struct window *v, const struct part *part, int64_t at, int64_t from,
                    struct manner how, int64_t c, int vectors, int n, int64_t rows, int64_t columns)
{
    vf largest[FEW], left[FEW];
    const vf zero = vset(0);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++) {
        left[k] = get(part->dy + at * s->lddy + c + k * VL, n);
        if (how.max)
            largest[k] = get(part->y + at * s->ldy + c + k * VL, n);
        else
            left[k] = left[k] / vset(v->divisor);
    }
    for (int64_t h = 0; h < rows; h++) {
        const bool mine = v->h0 + h >= part->top && v->h0 + h < part->bottom;
        for (int64_t w = 0; w < columns; w++) {
            const int64_t pixel = from + h * s->w + w;
            const float *x = how.max ? part->x + pixel * s->ldx + c : NULL;
            float *dx = part->dx + pixel * s->lddx + c;
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++) {
                vf given = left[k];
                if (how.max) {
                    vf e = get(x + k * VL, n);
                    given = vsel_eq(e, largest[k], left[k], zero);
                    vf rest = vsel_eq(e, largest[k], zero, left[k]);
                    if (how.careful) {
                        given = vsel_ne(e, e, left[k], given);
                        rest = vsel_ne(e, e, zero, rest);
                    }
                    left[k] = rest;
                }
                if (mine && how.add)
                    given = given + get(dx + k * VL, n);
                if (mine)
                    put(dx + k * VL, given, n);
            }
        }
    }
}

/* A window's y of this many channels are numbers below infinity, so none of its elements is NaN. */
static inline bool ordinary(const float *y, int vectors, int n)
{
    bool all = true;
    for (int k = 0; k < vectors; k++)
        all &= vall_less(vabs(get(y + k * VL, n)), vset(INFINITY)) != 0;
    return all;
}

INLINE void give(const struct pool_shape *s, const struct window *v, const struct part *part, int64_t at, struct manner how,
                 int64_t c, int vectors, int n)
{
    const struct manner careful = {how.max, how.add, true};
    const int64_t from = v->h0 * s->w + v->w0;
    if (how.max && !ordinary(part->y + at * s->ldy + c, vectors, n))
        give_of(s, v, part, at, from, careful, c, vectors, n, v->h1 - v->h0, v->w1 - v->w0);
    else
        SIZED(give_of, v, s, v, part, at, from, how, c, vectors, n);
}

INLINE void give_row(const struct pool_block *b, const struct part *part, int64_t oh, struct manner how)
{
    const struct pool_shape *s = &b->spec->shape;
    for (int64_t ow = 0; ow < s->ow; ow++) {
        const struct window v = window_at(s, oh, ow);
        GROUPS(b, give, s, &v, part, oh * s->ow + ow, how);
    }
}

static struct part part_of(const struct pool_block *b, int64_t image, int64_t top, int64_t bottom)
{
    const struct pool_shape *s = &b->spec->shape;
    const int64_t pixels = s->h * s->w, windows = s->oh * s->ow;
    const bool max = b->spec->kind == POOL_MAX;
    return (struct part){.x = max ? b->x + image * pixels * s->ldx : NULL,
                         .y = max ? b->y + image * windows * s->ldy : NULL,
                         .dy = b->dy + image * windows * s->lddy,
                         .dx = b->out + image * pixels * s->lddx,
                         .top = top,
                         .bottom = bottom};
}

static void clear_rows(const struct pool_block *b, const struct part *part, int64_t from, int64_t to)
{
    const struct pool_shape *s = &b->spec->shape;
    for (int64_t pixel = from * s->w; pixel < to * s->w; pixel++)
        memset(part->dx + pixel * s->lddx + b->c0, 0, sizeof(float) * (size_t)(b->c1 - b->c0));
}

/* Windows that overlap or leave gaps. A row of dx is cleared just before the first window over it gives. */
INLINE void give_part(const struct pool_block *b, const struct part *part, bool max)
{
    const struct pool_shape *s = &b->spec->shape;
    int64_t clear = part->top, first = part->top + s->pad_top - s->kh + 1, end = (part->bottom - 1 + s->pad_top) / s->stride_h + 1;
    for (int64_t oh = first <= 0 ? 0 : (first + s->stride_h - 1) / s->stride_h; oh < least(end, s->oh); oh++) {
        int64_t reach = most(clear, least(oh * s->stride_h - s->pad_top + s->kh, part->bottom));
        clear_rows(b, part, clear, reach);
        clear = reach;
        give_row(b, part, oh, (struct manner){.max = max, .add = true});
    }
    clear_rows(b, part, clear, part->bottom);
}

/* Rows of n*h: the part of each image that they touch. */
INLINE void give_rows(const struct pool_block *b, bool max)
{
    const int64_t h = b->spec->shape.h;
    for (int64_t row = b->begin; row < b->end;) {
        int64_t image = row / h, bottom = least(h, b->end - image * h);
        const struct part part = part_of(b, image, row - image * h, bottom);
        give_part(b, &part, max);
        row = image * h + bottom;
    }
}

void ISA_NAME(pool_max_gradient)(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    if (!pool_exact_tiles(s)) {
        give_rows(b, true);
        return;
    }
    for (int64_t row = b->begin; row < b->end; row++) { /* windows that cover the image exactly */
        const struct part part = part_of(b, row / s->oh, 0, s->h);
        give_row(b, &part, row % s->oh, (struct manner){.max = true});
    }
}

void ISA_NAME(pool_average_gradient)(const struct pool_block *b) { give_rows(b, false); }
