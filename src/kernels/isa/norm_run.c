/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of batch normalization, once per instruction set: vectors run over channels. Statistics of a leaf are
 * taken block by block of rows, a few vectors of channels at a time: the mean first, then deviations from it, then both
 * are merged into the leaf's. So each sum has at most 128 terms before it is merged, and x comes from memory once. Any
 * thread; a block owns its rows or its leaf. */
#include "kernels/norm.h"

#include "kernels/isa/isa.h"

void ISA_NAME(norm_batch_leaf)(const struct norm_block *b);
void ISA_NAME(norm_batch_rows)(const struct norm_block *b);
void ISA_NAME(norm_gradient_leaf)(const struct norm_block *b);
void ISA_NAME(norm_gradient_rows)(const struct norm_block *b);

/* Calls body(c, vectors, n) for groups of `most` vectors (4 or 1) of [0, count), of half as many, then for single ones;
 * the last may have n < VL. */
#define GROUPS_OF(c, vectors, n, many, count, body)                                                                    \
    for (; (many) > 0 && c + (many)*VL <= (count); c += (many)*VL) {                                                   \
        enum { vectors = many, n = VL };                                                                               \
        body;                                                                                                          \
    }
#define GROUPS(c, vectors, n, most, count, body)                                                                       \
    do {                                                                                                               \
        int64_t c = 0;                                                                                                 \
        GROUPS_OF(c, vectors, n, most, count, body)                                                                    \
        GROUPS_OF(c, vectors, n, (most) / 2, count, body)                                                              \
        GROUPS_OF(c, vectors, n, (most) / 4, count, body)                                                              \
        if (c < (count)) {                                                                                             \
            enum { vectors = 1 };                                                                                      \
            const int n = (int)((count)-c);                                                                            \
            body;                                                                                                      \
        }                                                                                                              \
    } while (0)
#define CHANNELS(c, n, count, body) GROUPS(c, vectors, n, 1, count, body)

/* --- batch normalization --- */

/* Sums that grow side by side, at least as many as an addition takes cycles: of some vectors, and of every second or
 * fourth row each where those are few. Vectors of a whole piece of channels (norm.h), be they two or four, take as many
 * rows in larger groups, so that each channel's sums are the same in its piece alone. */
enum { TOGETHER = 4, CHAINS = 2 * TOGETHER, ROWS = 4 /* written at a time */ };

INLINE int rows_at_once(int vectors)
{
    return vectors == 1 ? 4 : vectors * VL <= NORM_PIECE && vectors == TOGETHER ? 1 : 2;
}

/* Rows that are asked for ahead, line by line as they lie in memory: pieces of rows are read slower than whole ones.
 * `at` is the channel in `row`, `c` how many there are. Beyond the last row it asks for what is not needed. */
struct asking {
    const float *row;
    int64_t ld, at, c;
};

enum { LINE = 16 }; /* floats */

INLINE void ask(struct asking *a, int lines)
{
#pragma GCC unroll 8
    for (int k = 0; k < lines; k++) {
        __builtin_prefetch(a->row + a->at, 0, 2);
        a->at += LINE;
        if (a->at >= a->c) {
            a->at = 0;
            a->row += a->ld;
        }
    }
}

/* From row r on of x or dy. */
INLINE struct asking rows_from(const struct norm_block *b, const float *x, int64_t ld, int64_t r)
{
    return (struct asking){x ? x + r * ld : NULL, ld, 0, b->spec.c};
}

/* What is known of `vectors` vectors of channels. */
struct sums {
    vf sum[CHAINS], product[CHAINS];
};

/* One row: u and u (x - mean), where u is dy, or x - mean where there is no dy. */
INLINE void add_row(struct sums *s, int chain, const float *x, const float *dy, vf mean, int n)
{
    const vf v = vget(x, n) - mean, u = dy ? vget(dy, n) : v;
    s->sum[chain] = s->sum[chain] + u;
    s->product[chain] = vfma(u, v, s->product[chain]);
}

/* What is asked for while one block is summed: the next one. */
struct soon {
    struct asking x, dy;
};

/* Those of one vector's rows become one. */
INLINE void join_chains(vf *sum, int vectors, int at_once)
{
    if (at_once == 4)
        sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
#pragma GCC unroll 4
    for (int k = 0; k < vectors && at_once == 2; k++)
        sum[k] = sum[k] + sum[k + vectors];
}

/* Sums over rows; meanwhile `halves` halves of as many lines of `soon` are asked for. */
INLINE struct sums add(const float *x, int64_t ldx, const float *dy, int64_t lddy, int64_t rows, const vf *mean,
                       struct soon *soon, int halves, int vectors, int n)
{
    struct sums s;
    const int at_once = rows_at_once(vectors), chains = vectors * at_once, lines = halves * chains * VL / LINE / 2;
    int64_t r = 0;
#pragma GCC unroll 8
    for (int k = 0; k < chains; k++)
        s.sum[k] = s.product[k] = vset(0);
    for (; r + at_once <= rows; r += at_once) {
        ask(&soon->x, lines);
        if (dy)
            ask(&soon->dy, lines);
#pragma GCC unroll 8
        for (int k = 0; k < chains; k++) {
            const int64_t row = r + k / vectors, at = k % vectors * VL;
            add_row(&s, k, x + row * ldx + at, dy ? dy + row * lddy + at : NULL, mean[k % vectors], n);
        }
    }
    for (; r < rows; r++)
#pragma GCC unroll 4
        for (int k = 0; k < vectors; k++)
            add_row(&s, k, x + r * ldx + k * VL, dy ? dy + r * lddy + k * VL : NULL, mean[k], n);
    join_chains(s.sum, vectors, at_once);
    join_chains(s.product, vectors, at_once);
    return s;
}

/* Merges `rows` rows from row r on into means and squared deviations of the leaf's rows before them. */
INLINE void merge_rows(const struct norm_block *b, int64_t c, int64_t r, int64_t rows, struct soon *soon, int halves,
                       int vectors, int n)
{
    const float *x = b->x + r * b->spec.ldx + c;
    const float before = (float)(r - b->begin), count = (float)rows, part = count / (before + count);
    vf mean[TOGETHER] = {vset(0)};
    struct sums s = add(x, b->spec.ldx, NULL, 0, rows, mean, soon, halves - halves / 2, vectors, n);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        mean[k] = s.sum[k] / vset(count);
    s = add(x, b->spec.ldx, NULL, 0, rows, mean, soon, halves / 2, vectors, n);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++) {
        float *means = b->a + c + k * VL, *squares = b->b + c + k * VL;
        if (before > 0) {
            vf old = vget(means, n), delta = mean[k] - old;
            mean[k] = vfma(delta, vset(part), old);
            s.product[k] = s.product[k] + vfma(delta * delta, vset(before * part), vget(squares, n));
        }
        vput(means, mean[k], n);
        vput(squares, s.product[k], n);
    }
}

/* Adds `rows` rows from row r on of dy and dy (x - mean) to the leaf's sums. */
INLINE void add_rows(const struct norm_block *b, int64_t c, int64_t r, int64_t rows, struct soon *soon, int halves,
                     int vectors, int n)
{
    const int64_t ldx = b->spec.ldx, lddy = b->spec.lddy;
    vf mean[TOGETHER];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++)
        mean[k] = vget(b->mean + c + k * VL, n);
    const struct sums s = add(b->x + r * ldx + c, ldx, b->dy + r * lddy + c, lddy, rows, mean, soon, halves,
                              vectors, n);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k++) {
        float *sums = b->a + c + k * VL, *products = b->b + c + k * VL;
        vput(sums, vget(sums, n) + s.sum[k], n);
        vput(products, vget(products, n) + s.product[k], n);
    }
}

INLINE void sum_block(const struct norm_block *block, bool gradient, bool ahead)
{
    const struct norm_block b = *block;
    if (!b.spec.c) /* there are no sums then */
        return;
    const int halves = ahead ? 2 : 0;
    struct soon soon = {rows_from(&b, b.x, b.spec.ldx, b.begin + b.step),
                        rows_from(&b, b.dy, b.spec.lddy, b.begin + b.step)};
    memset(b.a, 0, sizeof *b.a * (size_t)b.spec.c);
    memset(b.b, 0, sizeof *b.b * (size_t)b.spec.c);
    for (int64_t r = b.begin; r < b.end; r += b.step) {
        const int64_t rows = least(b.step, b.end - r);
        if (gradient)
            GROUPS(c, vectors, n, TOGETHER, b.spec.c, add_rows(&b, c, r, rows, &soon, halves, vectors, n));
        else
            GROUPS(c, vectors, n, TOGETHER, b.spec.c, merge_rows(&b, c, r, rows, &soon, halves, vectors, n));
    }
}

/* n channels of `rows` rows, a constant: what all rows need is read once. What goes past the caches asks for the rows
 * that follow. */
INLINE void write_rows(const struct norm_block *b, struct soon *soon, int64_t r, int64_t c, int rows, bool gradient,
                       bool stream, int n)
{
    const struct norm_spec *s = &b->spec;
    const float *x = b->x + r * s->ldx + c, *dy = b->dy + r * s->lddy + c;
    float *y = b->y + r * s->ldy + c;
    const vf mean = vget(b->mean + c, n), slope = vget(b->slope + c, n),
             first = vget((gradient ? b->a : b->bias) + c, n), second = vget((gradient ? b->b : b->bias) + c, n);
    ask(&soon->x, stream ? rows * VL / LINE : 0);
    ask(&soon->dy, stream && gradient ? rows * VL / LINE : 0);
#pragma GCC unroll 4
    for (int k = 0; k < rows; k++) {
        vf v = vget(x + k * s->ldx, n) - mean;
        if (gradient)
            v = slope * vfnma(v, second, vget(dy + k * s->lddy, n) - first);
        else
            v = vfma(v, slope, first);
        if (stream && n == VL)
            vstream(y + k * s->ldy, v);
        else
            vput(y + k * s->ldy, v, n);
    }
}

/* Elements of x and of dy that are asked for before they are read, at least some rows: see `graphi bench kernels "batch
 * norm"`. */
enum { AHEAD = 2048 };

INLINE void write_block(const struct norm_block *block, bool gradient, bool stream)
{
    const struct norm_block b = *block;
    int64_t r = b.begin;
    const int64_t first = r + most(ROWS, AHEAD / most(b.spec.c, 1));
    struct soon soon = {rows_from(&b, b.x, b.spec.ldx, first), rows_from(&b, b.dy, b.spec.lddy, first)};
    for (; r + ROWS <= b.end; r += ROWS)
        CHANNELS(c, n, b.spec.c, write_rows(&b, &soon, r, c, ROWS, gradient, stream, n));
    for (; r < b.end; r++)
        CHANNELS(c, n, b.spec.c, write_rows(&b, &soon, r, c, 1, gradient, stream, n));
#if VL > 1
    if (stream)
        _mm_sfence();
#endif
}

/* Vectors past the caches have to lie in whole lines. */
static bool streams(const struct norm_block *b)
{
    return b->far && ((uintptr_t)b->y | (uintptr_t)(4 * b->spec.ldy)) % 64 == 0;
}

#define BY(constant, call, ...) /* one form of a loop for each value of what is constant in it */                      \
    do {                                                                                                               \
        if (constant)                                                                                                  \
            call(__VA_ARGS__, true);                                                                                   \
        else                                                                                                           \
            call(__VA_ARGS__, false);                                                                                  \
    } while (0)

void ISA_NAME(norm_batch_leaf)(const struct norm_block *b) { BY(b->far, sum_block, b, false); }
void ISA_NAME(norm_gradient_leaf)(const struct norm_block *b) { BY(b->far, sum_block, b, true); }
void ISA_NAME(norm_batch_rows)(const struct norm_block *b) { BY(streams(b), write_block, b, false); }
void ISA_NAME(norm_gradient_rows)(const struct norm_block *b) { BY(streams(b), write_block, b, true); }
