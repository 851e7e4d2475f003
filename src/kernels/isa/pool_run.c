/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of pooling, once per instruction set: vectors run over channels. A window's elements are combined in
 * registers in window order (row by row), and an element of a gradient is the sum over the windows above it, in their
 * order: so every form gives the same bits (of several NaNs in a window, some NaN), and shares are any rows of it.
 * Maxima are taken as if there were no NaN; windows among which one holds a NaN are then gone over again. Writes
 * nothing but its block; reads nothing outside the images. Any thread. */
#include "kernels/pool.h"

#include "kernels/isa/isa.h"

void ISA_NAME(pool_max)(const struct pool_block *b);
void ISA_NAME(pool_average)(const struct pool_block *b);
void ISA_NAME(pool_max_gradient)(const struct pool_block *b);
void ISA_NAME(pool_average_gradient)(const struct pool_block *b);

/* What they do shows in `graphi bench kernels "max pool" "average pool"`. */
enum {
    FEW = 4,                    /* vectors at a time of an element of a gradient */
    MANY = VL == 16 ? 8 : 4,    /* of a window alone: more in a row are read faster where pixels lie far apart */
    ROLLED = VL == 16 ? 2 : 1,  /* of a window with its neighbours or places: their state takes registers */
    STRIP = 4,                  /* rows of elements between the first windows and the last of those taken at a time */
};

/* What a loop does: compile-time constants. */
struct manner {
    bool max;
    bool places; /* forward: kept, too */
    bool wide;   /* places are integers, not bytes */
    bool whole;  /* gradient of averages: all windows are as large as the kernel */
    bool stream; /* gradient: whole vectors are written past the caches */
    int stride;  /* forward: down, of windows that overlap */
};

/* Bytes of a place. */
static inline int64_t unit(struct manner how)
{
    return how.wide ? 4 : 1;
}

/* Windows of more than 256 elements are too rare for vectors. */
static inline void put_places(char *place, vf v, int n, struct manner how)
{
    if (!how.wide) {
        vstore_u8((uint8_t *)place, v, n);
        return;
    }
    float lane[VL];
    vstore(lane, v);
    for (int i = 0; i < n; i++)
        ((int32_t *)place)[i] = (int32_t)lane[i];
}

static inline vf add_where(vf sum, vf v, const char *place, int64_t is, int n, struct manner how)
{
    if (!how.wide)
        return vadd_where_u8(sum, v, (const uint8_t *)place, (int)is, n);
    float lane[VL] = {0};
    for (int i = 0; i < n; i++)
        lane[i] = ((const int32_t *)place)[i] == is;
    return sum + vsel_eq(vload(lane), vset(1), v, vset(0));
}

/* Channels [c0, c1) of the block in groups of vectors that stay in registers; vectors and n are constants but for the
 * tail. */
#define GROUPS(b, few, call, ...)                                                                                      \
    do {                                                                                                               \
        int64_t c = (b)->c0;                                                                                           \
        for (; c + (few)*VL <= (b)->c1; c += (few)*VL)                                                                 \
            call(__VA_ARGS__, c, few, VL);                                                                             \
        for (; c + VL <= (b)->c1; c += VL)                                                                             \
            call(__VA_ARGS__, c, 1, VL);                                                                               \
        if (c < (b)->c1)                                                                                               \
            call(__VA_ARGS__, c, 1, (int)((b)->c1 - c));                                                               \
    } while (0)

/* Addresses behind it are made from it, instead of a pointer for each of them, which would not fit the registers. */
#define BASE(pointer) __asm__("" : "+r"(pointer))
#define APART __attribute__((noinline)) static

/* --- forward: the rows of a window are reduced first, then their results --- */

/* What the loops know, copied where they are: stores of vectors may alias whatever is behind a pointer. */
struct known {
    struct pool_block b;
    struct pool_shape s;
};

/* Windows of one shape, side by side and one below the other. */
struct windows {
    const float *x;                /* of the first */
    int64_t at;                    /* its number among all */
    int64_t down, across;          /* how many */
    int64_t rows, columns;         /* elements of each */
    int64_t place;                 /* of their first elements */
    float divisor;
};

/* What is known of part of a window. Maxima are those of numbers. */
struct result {
    vf value[MANY];
    vp place[MANY];
};

/* Joins elements whose places are `after` those known for `later`. */
INLINE void join(struct result *r, const struct result *later, vp after, struct manner how, int vectors)
{
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++) {
        vf e = later->value[k], best = r->value[k];
        if (how.places)
            r->place[k] = vp_select(vm_over(e, best), vp_add(later->place[k], after), r->place[k]);
        if (how.max)
            r->value[k] = vmax_x86(e, best);
        else
            r->value[k] = best + e;
    }
}

/* One row of a window, its first place taken for 0. `sum` is that of all elements, NaN if one of them is (or if there
 * are infinities of both signs): additions take less than comparisons would, which are busy with the maxima. */
INLINE void reduce_row(const float *x, int64_t ldx, int64_t columns, struct manner how, vf *sum, int vectors, int n,
                       struct result *r)
{
    struct result next;
    vf part[MANY];
    BASE(x);
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++) {
        r->value[k] = part[k] = vget(x + k * VL, n);
        r->place[k] = vp_set(0);
    }
    vp place = vp_set(1);
#pragma GCC unroll 3
    for (int64_t w = 1; w < columns; w++, place = vp_add(place, vp_set(1))) {
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++) {
            next.value[k] = vget(x + w * ldx + k * VL, n);
            next.place[k] = vp_set(0);
            part[k] = part[k] + next.value[k];
        }
        join(r, &next, place, how, vectors);
    }
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++)
        if (how.max)
            *sum = *sum + part[k];
}

INLINE void put_result(const struct windows *u, float *y, uint8_t *place, const struct result *r, struct manner how,
                       int vectors, int n)
{
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++) {
        vf v = r->value[k];
        if (!how.max)
            v = v / vset(u->divisor);
        vput(y + k * VL, v, n);
        if (how.places)
            vp_store(place + k * VL, vp_add(r->place[k], vp_set((int)u->place)), n);
    }
}

INLINE void finish(const struct known *known, const struct windows *u, int64_t at, const struct result *r,
                   struct manner how, int64_t c, int vectors, int n)
{
    put_result(u, known->b.out + at * known->s.ldy + c, (uint8_t *)known->b.place + at * known->s.ldp + c, r, how,
               vectors, n);
}

/* A column of windows, one by one. */
INLINE void each(const struct known *known, const struct windows *u, const float *x, int64_t at, struct manner how,
                 vf *sum, int64_t rows, int64_t columns, int64_t c, int vectors, int n)
{
    const struct pool_shape *s = &known->s;
    const int64_t next_row = s->w * s->ldx, next = s->stride_h * next_row;
    const vp below = vp_set((int)s->kw);
    for (int64_t i = 0; i < u->down; i++, x += next, at += s->ow) {
        struct result all, later;
        vp after = below;
        reduce_row(x, s->ldx, columns, how, sum, vectors, n, &all);
        for (int64_t h = 1; h < rows; h++, after = vp_add(after, below)) {
            reduce_row(x + h * next_row, s->ldx, columns, how, sum, vectors, n, &later);
            join(&all, &later, after, how, vectors);
        }
        finish(known, u, at, &all, how, c, vectors, n);
    }
}

/* The same for windows of 3 x 3 that overlap: a row is reduced once. */
INLINE void roll(const struct known *known, const struct windows *u, const float *x, int64_t at, struct manner how,
                 vf *sum, int64_t rows, int64_t columns, int64_t c, int vectors, int n)
{
    const struct pool_shape *s = &known->s;
    const int64_t next_row = s->w * s->ldx;
    const vp below = vp_set((int)s->kw);
    struct result first, second, third, all;
    reduce_row(x, s->ldx, 3, how, sum, vectors, n, &first);
    reduce_row(x += next_row, s->ldx, 3, how, sum, vectors, n, &second);
    for (int64_t left = u->down; left > 0; left--, at += s->ow) {
        reduce_row(x += next_row, s->ldx, 3, how, sum, vectors, n, &third);
        all = first;
        join(&all, &second, below, how, vectors);
        join(&all, &third, vp_add(below, below), how, vectors);
        finish(known, u, at, &all, how, c, vectors, n);
        first = how.stride == 1 ? second : third;
        if (how.stride == 1)
            second = third;
        else if (left > 1)
            reduce_row(x += next_row, s->ldx, 3, how, sum, vectors, n, &second);
    }
}

/* A column of windows whose elements may be NaN, of which the first is the maximum, and whose places may be large
 * numbers: two comparisons and two choices an element. */
INLINE void search(const struct known *known, const struct windows *u, const float *x, int64_t at, struct manner how,
                   vf *sum, int64_t rows, int64_t columns, int64_t c, int vectors, int n)
{
    const struct pool_shape *s = &known->s;
    for (int64_t i = 0; i < u->down; i++, x += s->stride_h * s->w * s->ldx, at += s->ow) {
        vf best = vget(x, n), place = vset(0);
        for (int64_t h = 0; h < rows; h++)
            for (int64_t w = 0; w < columns; w++) {
                const vf e = vget(x + (h * s->w + w) * s->ldx, n);
                place = vsel_over(e, best, vset((float)(h * s->kw + w)), place);
                best = vsel_over(e, best, e, best);
            }
        vput(known->b.out + at * s->ldy + c, best, n);
        if (known->b.place)
            put_places((char *)known->b.place + (at * s->ldp + c) * unit(how), place + vset((float)u->place), n, how);
    }
}

typedef void column_function(const struct known *, const struct windows *, const float *, int64_t, struct manner, vf *,
                             int64_t, int64_t, int64_t, int, int);

/* Columns [from, to). */
INLINE void side_by_side(column_function *column, int64_t from, int64_t to, const struct known *known,
                         const struct windows *u, struct manner how, vf *sum, int64_t rows, int64_t columns,
                         int64_t c, int vectors, int n)
{
    const int64_t step = known->s.stride_w * known->s.ldx;
    for (int64_t i = from; i < to; i++)
        column(known, u, u->x + i * step + c, u->at + i, how, sum, rows, columns, c, vectors, n);
}

/* Maxima of 2 x 2, row by row of windows as they lie in memory. The pixels of the next row are asked for: each of its
 * two rows of pixels is a short run that hardware has to find anew. */
INLINE void squares(column_function *column, int64_t from, int64_t to, const struct known *known,
                    const struct windows *u, struct manner how, vf *sum, int64_t rows, int64_t columns, int64_t c,
                    int vectors, int n)
{
    const int64_t ldx = known->s.ldx, line = known->s.w * ldx, step = known->s.stride_w * ldx, ldy = known->s.ldy,
                  ldp = known->s.ldp, ahead = known->s.stride_h * line;
    for (int64_t i = 0; i < u->down; i++) {
        const int64_t at = u->at + i * known->s.ow + from;
        const float *x = u->x + i * ahead + from * step + c, *below = x + line;
        float *y = known->b.out + at * ldy + c;
        uint8_t *place = (uint8_t *)known->b.place + at * ldp + c;
        for (int64_t left = to - from; left > 0; left--) {
            struct result all, later;
            reduce_row(x, ldx, 2, how, sum, vectors, n, &all);
            reduce_row(below, ldx, 2, how, sum, vectors, n, &later);
            join(&all, &later, vp_set((int)known->s.kw), how, vectors);
            put_result(u, y, place, &all, how, vectors, n);
            __builtin_prefetch(x + ahead);
            __builtin_prefetch(x + ldx + ahead);
            __builtin_prefetch(below + ahead);
            __builtin_prefetch(below + ldx + ahead);
            x += step;
            below += step;
            y += ldy;
            place += ldp;
        }
    }
}

/* Windows of one vector are walked by rows, others one by one. False: some element is NaN, so maxima are wrong. */
#define WALK(name, few, narrow, column, rows, columns, ...)                                                            \
    APART bool name(const struct pool_block *b, const struct windows *all)                                             \
    {                                                                                                                  \
        const struct known known = {*b, b->spec->shape};                                                               \
        const struct windows u = *all;                                                                                 \
        const struct manner how = {__VA_ARGS__};                                                                       \
        vf sum = vset(0);                                                                                              \
        if (b->c1 - b->c0 <= VL)                                                                                       \
            GROUPS(&known.b, few, narrow, column, 0, u.across, &known, &u, how, &sum, rows, columns);                  \
        for (int64_t i = 0; i < u.across && b->c1 - b->c0 > VL; i++)                                                   \
            GROUPS(&known.b, few, side_by_side, column, i, i + 1, &known, &u, how, &sum, rows, columns);               \
        return vall_less(vsel_ne(sum, sum, sum, vset(0)), vset(1));                                                    \
    }
typedef bool walk_function(const struct pool_block *, const struct windows *);
struct walks {
    walk_function *any, *two, *three[2]; /* windows of any size, of 2 x 2, of 3 x 3 at stride 1 and 2 */
};
#define WALKS(name, few, squares, ...)                                                                                 \
    WALK(name##_any, few, side_by_side, each, u.rows, u.columns, __VA_ARGS__)                                          \
    WALK(name##_2, few, squares, each, 2, 2, __VA_ARGS__)                                                              \
    WALK(name##_3_1, ROLLED, side_by_side, roll, 3, 3, __VA_ARGS__, .stride = 1)                                       \
    WALK(name##_3_2, ROLLED, side_by_side, roll, 3, 3, __VA_ARGS__, .stride = 2)                                       \
    static const struct walks name = {name##_any, name##_2, {name##_3_1, name##_3_2}};
WALKS(max_alone, MANY, squares, .max = true)
WALKS(max_places, ROLLED, squares, .max = true, .places = true)
WALKS(average, MANY, side_by_side, .max = false)
WALK(search_any, 1, side_by_side, search, u.rows, u.columns, .wide = pool_places_type(&known.s) != GRAPHI_U8)
static const struct walks search_all = {search_any, search_any, {search_any, search_any}};

/* Rows of windows that one walk takes: squares, which it goes over row by row, as many as there are. */
static int64_t strip_of(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    if (b->spec->kind == POOL_MAX && s->kh == 2 && s->kw == 2 && b->c1 - b->c0 <= VL)
        return s->oh;
    return s->stride_h < STRIP ? STRIP / s->stride_h : 1;
}

static void forward(const struct pool_block *b, const struct walks *walks)
{
    const struct pool_shape *s = &b->spec->shape;
    const int64_t strip = strip_of(b);
    for (int64_t row = b->begin; row < b->end;) {
        const int64_t image = row / s->oh, oh = row % s->oh;
        const struct pool_span *down = &b->windows.down[oh];
        struct windows u = {
            .rows = down->count, .at = row * s->ow, .down = least(least(down->alike, strip), b->end - row)};
        const float *x = b->x + (image * s->h + down->first) * s->w * s->ldx;
        for (int64_t ow = 0; ow < s->ow; ow += u.across, u.at += u.across) {
            const struct pool_span *across = &b->windows.across[ow];
            u.x = x + across->first * s->ldx;
            u.across = across->alike;
            u.columns = across->count;
            u.place = down->place * s->kw + across->place;
            u.divisor = (float)(down->divides * across->divides);
            const bool square = u.rows == u.columns;
            walk_function *walk = square && u.rows == 3 && s->stride_h <= 2 ? walks->three[s->stride_h - 1]
                                  : square && u.rows == 2                   ? walks->two
                                                                            : walks->any;
            if (!walk(b, &u))
                search_any(b, &u);
        }
        row += u.down;
    }
}

/* The plain form searches always: it is the oracle. */
void ISA_NAME(pool_max)(const struct pool_block *b)
{
    const bool wide = b->place && pool_places_type(&b->spec->shape) != GRAPHI_U8;
    forward(b, VL == 1 || wide ? &search_all : b->place ? &max_places : &max_alone);
}

void ISA_NAME(pool_average)(const struct pool_block *b) { forward(b, &average); }

/* --- gradients: an element is the sum of what the windows above it give --- */

/* Elements of x in a row, `stride` apart, with windows above them that lie alike. */
struct elements {
    struct pool_span down, across;
    int64_t at, window; /* the number of the first one; of its first window */
};

/* One element of `vectors` vectors of channels; dy and place are its first window's. */
INLINE void gather(const struct known *known, const struct elements *e, float *dx, const float *dy, const char *place,
                   vf part, struct manner how, int64_t rows, int64_t columns, int64_t c, int vectors, int n)
{
    const struct pool_shape *s = &known->s;
    const struct pool_span *down = known->b.windows.down + e->down.first,
                           *across = known->b.windows.across + e->across.first;
    int64_t is = e->down.place * s->kw + e->across.place;
    vf sum[FEW];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        sum[k] = vset(0);
    dy += c;
    place += c * unit(how);
#pragma GCC unroll 3
    for (int64_t i = 0; i < rows; i++) {
        BASE(dy);
        BASE(place);
#pragma GCC unroll 3
        for (int64_t j = 0; j < columns; j++) {
            if (!how.max && !how.whole)
                part = vset(1 / (float)(down[i].divides * across[j].divides));
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++) {
                vf given = vget(dy + j * s->lddy + k * VL, n);
                if (how.max)
                    sum[k] = add_where(sum[k], given, place + (j * s->ldp + k * VL) * unit(how), is - j * s->stride_w,
                                       n, how);
                else
                    sum[k] = vfma(given, part, sum[k]);
            }
        }
        dy += s->ow * s->lddy;
        place += s->ow * s->ldp * unit(how);
        is -= s->stride_h * s->kw;
    }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        if (how.stream && n == VL)
            vstream(dx + c + k * VL, sum[k]);
        else
            vput(dx + c + k * VL, sum[k], n);
}

#define GATHER(name, how, rows, columns)                                                                               \
    APART void name(const struct pool_block *b, const struct elements *all)                                            \
    {                                                                                                                  \
        const struct known known = {*b, b->spec->shape};                                                               \
        const struct elements e = *all;                                                                                \
        const vf part = vset(1 / (float)(known.s.kh * known.s.kw));                                                    \
        const float *dy = b->dy + e.window * known.s.lddy;                                                             \
        const char *place = (const char *)b->place + e.window * known.s.ldp * unit(how);                               \
        float *dx = b->out + e.at * known.s.lddx;                                                                      \
        for (int64_t i = 0; i < e.across.alike; i++) {                                                                 \
            GROUPS(&known.b, FEW, gather, &known, &e, dx, dy, place, part, how, rows, columns);                        \
            dy += known.s.lddy;                                                                                        \
            place += known.s.ldp * unit(how);                                                                          \
            dx += known.s.stride_w * known.s.lddx;                                                                     \
        }                                                                                                              \
    }
typedef void gather_function(const struct pool_block *, const struct elements *);
#define GATHERS(name, ...)                                                                                             \
    GATHER(name##_any, ((struct manner){__VA_ARGS__}), e.down.count, e.across.count)                                   \
    GATHER(name##_1, ((struct manner){__VA_ARGS__, .whole = true}), 1, 1)                                              \
    GATHER(name##_2, ((struct manner){__VA_ARGS__, .whole = true}), 2, 2)                                              \
    GATHER(name##_3, ((struct manner){__VA_ARGS__, .whole = true}), 3, 3)                                              \
    static gather_function *const name[] = {name##_any, name##_1, name##_2, name##_3};
GATHERS(gather_max, .max = true)
GATHERS(gather_average, .max = false)
/* Elements in pairs side by side, of which windows of 3 columns at stride 2 share the first: the second element is in
 * the next window, too. One element after the other, as they lie in memory. */
#define PAIRS(name, rows, ...)                                                                                         \
    APART void name(const struct pool_block *b, const struct elements *all)                                            \
    {                                                                                                                  \
        const struct known known = {*b, b->spec->shape};                                                               \
        const struct elements e = *all;                                                                                \
        const struct manner how = {.max = true, __VA_ARGS__};                                                          \
        const vf part = vset(0);                                                                                       \
        struct elements next = e;                                                                                      \
        next.across.place++;                                                                                           \
        const float *dy = b->dy + e.window * known.s.lddy;                                                             \
        const char *place = (const char *)b->place + e.window * known.s.ldp;                                           \
        float *dx = b->out + e.at * known.s.lddx;                                                                      \
        for (int64_t i = 0; i < e.across.alike; i++) {                                                                 \
            GROUPS(&known.b, FEW, gather, &known, &e, dx, dy, place, part, how, rows, 1);                              \
            GROUPS(&known.b, FEW, gather, &known, &next, dx + known.s.lddx, dy, place, part, how, rows, 2);            \
            dy += known.s.lddy;                                                                                        \
            place += known.s.ldp;                                                                                      \
            dx += 2 * known.s.lddx;                                                                                    \
        }                                                                                                              \
    }
PAIRS(pairs_1, 1, .stream = false)
PAIRS(pairs_2, 2, .stream = false)
PAIRS(pairs_1_past, 1, .stream = true)
PAIRS(pairs_2_past, 2, .stream = true)
static gather_function *const gather_pairs[2][2] = {{pairs_1, pairs_2}, {pairs_1_past, pairs_2_past}};
GATHER(gather_any_wide, ((struct manner){.max = true, .wide = true}), e.down.count, e.across.count)
static gather_function *const gather_wide[] = {gather_any_wide, gather_any_wide, gather_any_wide, gather_any_wide};

/* Elements that lie alike are taken together, unless they are far apart: memory is then better walked in its order. */
static void backward(const struct pool_block *b, gather_function *const *gathers)
{
    const struct pool_shape *s = &b->spec->shape;
    const bool max = b->spec->kind == POOL_MAX, together = s->stride_w == 1 || b->c1 - b->c0 < FEW * VL;
    const int64_t step = together ? s->stride_w : 1, phases = least(step, s->w);
    for (int64_t row = b->begin; row < b->end; row++) {
        struct elements e = {.down = b->above.down[row % s->h]};
        const int64_t first = (row / s->h * s->oh + e.down.first) * s->ow;
        for (int64_t phase = 0; phase < phases; phase++)
            for (int64_t w = phase; w < s->w; w += e.across.alike * step) {
                e.across = b->above.across[w];
                e.across.alike = together ? e.across.alike : 1;
                e.window = first + e.across.first;
                e.at = row * s->w + w;
                bool usual = e.down.count == e.across.count && e.down.count <= 3 &&
                             (max || (e.down.divides && e.across.divides));
                gathers[usual ? e.down.count : 0](b, &e);
            }
    }
}

/* Vectors past the caches have to lie in whole lines. */
static bool streams(const struct pool_block *b)
{
    const int64_t step = b->spec->shape.lddx | b->c0 | b->c1;
    return b->far && (((uintptr_t)b->out | (uintptr_t)(4 * step)) & 63) == 0;
}

/* Windows of 3 columns at stride 2: elements by pairs in memory's order, the others at the sides one by one. Vertically
 * there are one or two windows above each, or none. */
static void in_pairs(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    const bool stream = streams(b);
    for (int64_t row = b->begin; row < b->end; row++) {
        struct elements e = {.down = b->above.down[row % s->h]};
        const int64_t first = (row / s->h * s->oh + e.down.first) * s->ow;
        for (int64_t w = 0; w < s->w;) {
            const struct pool_span *across = &b->above.across[w], *next = across + 1;
            const bool pair =
                e.down.count && w + 1 < s->w && across->count == 1 && across->place == 1 && next->count == 2;
            e.across = *across;
            e.across.alike = pair ? least(across->alike, next->alike) : 1;
            e.window = first + across->first;
            e.at = row * s->w + w;
            (pair ? gather_pairs[stream][e.down.count - 1] : gather_max[0])(b, &e);
            w += pair ? 2 * e.across.alike : 1;
        }
    }
#if VL > 1
    if (stream)
        _mm_sfence();
#endif
}

/* --- gradient of max pooling where each window begins at the end of another: dy is read once --- */

/* Part of a window, whose first element's place is e's: what is not at the place of the maximum gets 0. */
INLINE void spread(const struct known *known, const struct elements *e, float *dx, const float *dy, const char *place,
                   struct manner how, int64_t rows, int64_t columns, int64_t c, int vectors, int n)
{
    const struct pool_shape *s = &known->s;
    const int64_t first = e->down.place * s->kw + e->across.place;
    vf given[FEW];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        given[k] = vget(dy + c + k * VL, n);
#pragma GCC unroll 2
    for (int64_t i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int64_t j = 0; j < columns; j++)
#pragma GCC unroll 4
            for (int k = 0; k < vectors; k++) {
                const char *at = place + (c + k * VL) * unit(how);
                vput(dx + (i * s->w + j) * s->lddx + c + k * VL,
                    add_where(vset(0), given[k], at, first + i * s->kw + j, n, how), n);
            }
}

/* As many windows as lie alike, across and down. */
#define SPREAD(name, rows, columns)                                                                                    \
    APART void name(const struct pool_block *b, const struct elements *all)                                            \
    {                                                                                                                  \
        const struct known known = {*b, b->spec->shape};                                                               \
        const struct elements e = *all;                                                                                \
        const struct manner how = {.max = true};                                                                       \
        for (int64_t i = 0; i < e.down.alike; i++) {                                                                   \
            const int64_t window = e.window + i * known.s.ow, at = e.at + i * (rows) * known.s.w;                      \
            const float *dy = b->dy + window * known.s.lddy;                                                           \
            const char *place = (const char *)b->place + window * known.s.ldp;                                         \
            float *dx = b->out + at * known.s.lddx;                                                                    \
            for (int64_t j = 0; j < e.across.alike; j++) {                                                             \
                GROUPS(&known.b, FEW, spread, &known, &e, dx, dy, place, how, rows, columns);                          \
                dy += known.s.lddy;                                                                                    \
                place += known.s.ldp;                                                                                  \
                dx += known.s.stride_w * known.s.lddx;                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
SPREAD(spread_any, e.down.count, e.across.count)
SPREAD(spread_2, 2, 2)

/* Elements [from, to) of a row, which no window covers. */
static void clear(const struct pool_block *b, int64_t row, int64_t from, int64_t to)
{
    const struct pool_shape *s = &b->spec->shape;
    for (int64_t w = from; w < to; w++)
        memset(b->out + (row * s->w + w) * s->lddx + b->c0, 0, sizeof(float) * (size_t)(b->c1 - b->c0));
}

/* Rows of the block by the windows above them, of which its ends may cut some. */
static void apart(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    const struct pool_span *last = &b->windows.across[s->ow - 1];
    const bool whole = b->begin < b->end && b->windows.across->alike == s->ow &&
                       s->ow * b->windows.across->count == s->w; /* fill rows; without channels there are no spans */
    for (int64_t row = b->begin; row < b->end;) {
        const struct pool_span *above = &b->above.down[row % s->h], *down = &b->windows.down[above->first];
        struct elements e = {.down = *above, .at = row * s->w};
        e.down.count = above->count ? least(down->first + down->count - row % s->h, b->end - row) : 1;
        e.down.alike = 1;
        if (whole && above->count && e.down.count == s->kh)
            e.down.alike = least(down->alike, (b->end - row) / s->kh);
        e.window = (row / s->h * s->oh + above->first) * s->ow;
        for (int64_t ow = 0; ow < s->ow && above->count; ow += e.across.alike) {
            e.across = b->windows.across[ow];
            (e.down.count == 2 && e.across.count == 2 ? spread_2 : spread_any)(b, &e);
            e.at += e.across.alike * e.across.count;
            e.window += e.across.alike;
        }
        for (int64_t i = 0; i < e.down.count; i++)
            clear(b, row + i, above->count ? last->first + last->count : 0, s->w);
        row += e.down.count * e.down.alike;
    }
}

void ISA_NAME(pool_max_gradient)(const struct pool_block *b)
{
    const struct pool_shape *s = &b->spec->shape;
    const bool bytes = pool_places_type(s) == GRAPHI_U8;
    if (bytes && s->stride_h == s->kh && s->stride_w == s->kw)
        apart(b);
    else if (bytes && s->kw == 3 && s->stride_w == 2 && s->kh <= 2 * s->stride_h)
        in_pairs(b);
    else
        backward(b, bytes ? gather_max : gather_wide);
}

void ISA_NAME(pool_average_gradient)(const struct pool_block *b) { backward(b, gather_average); }
