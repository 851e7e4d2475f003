/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops of depthwise convolutions (kernels/depthwise.h), compiled once per instruction set. A vector of channels
 * goes over all pixels of the piece, four at a time, while the weights or sums of nine taps stay in registers, and the
 * lines after the piece's are asked for. Called from any thread; usual call: 9 taps, 26 pixels of one line, 128
 * channels. */
#include "kernels/depthwise.h"

#include "kernels/isa/isa.h"

extern const struct depthwise_functions ISA_NAME(depthwise);

enum {
    NINE = 9, /* taps that are in registers: weights, or sums */
    LINE = 16 /* elements of a cache line */
};

/* To bfloat16 and back: to nearest, ties to even; NaN stays NaN. */
#if VL == 1
INLINE vf rounded(vf v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    vf result;
    memcpy(&result, &bits, sizeof bits);
    return vsel_ne(v, v, v, result);
}
#else
INLINE vf rounded(vf v)
{
    vi bits = vbits(v), odd = vi_and(vi_sar(bits, 16), vi_set(1));
    vf result = vfloat(vi_and(vi_add(vi_add(bits, vi_set(0x7fff)), odd), vi_set(-65536)));
    return vsel_ne(v, v, v, result);
}
#endif

INLINE vf load(const float *from, int lanes, bool round)
{
    vf value = vget(from, lanes);
    return round ? rounded(value) : value;
}

/* What is ahead of the piece, some lines of the cache with each four pixels: in the order of memory, which is what it
 * is fast at, into level 2: in level 1 it was slower, likely since it would not stay. */
struct asking {
    struct depthwise_ahead ahead[2];
    int64_t each[2];
};

INLINE struct asking start_asking(const struct depthwise_piece *p)
{
    const int64_t times = p->pixels / 4 * p->lines * divide_up(p->channels, VL);
    struct asking asking;
    for (int i = 0; i < 2; i++) {
        asking.ahead[i] = p->ahead[i];
        asking.each[i] = times ? divide_up(divide_up(p->ahead[i].to - p->ahead[i].from, LINE), times) : 0;
    }
    return asking;
}

INLINE void ask(struct asking *asking)
{
    for (int i = 0; i < 2; i++) {
        const float *from = asking->ahead[i].from, *to = from + asking->each[i] * LINE;
        asking->ahead[i].from = to = to < asking->ahead[i].to ? to : asking->ahead[i].to;
        for (; from < to; from += LINE)
            __builtin_prefetch(from, 0, 2);
    }
}

/* Which of four pixels meets element j of a line as tap u of three? -1: none. */
INLINE int meets(int j, int u, int reach)
{
    return j >= u && (j - u) % reach == 0 && (j - u) / reach < 4 ? (j - u) / reach : -1;
}

/* --- forward, backward-data: `pixels` sums are in registers --- */

INLINE void gather_block(const struct depthwise_piece *g, int64_t at, const float *weights, float *result, int c,
                         int pixels, int lanes, bool round)
{
    vf sum[4];
#pragma GCC unroll 4
    for (int i = 0; i < pixels; i++)
        sum[i] = vset(0);
    for (int t = 0; t < g->taps; t++) {
        vf w = load(weights + g->tap[t] + c, lanes, round);
#pragma GCC unroll 4
        for (int i = 0; i < pixels; i++)
            sum[i] = vfma(load(g->source[t] + at + i * g->source_step + c, lanes, round), w, sum[i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < pixels; i++)
        vput(result + i * g->result_step, sum[i], lanes);
}

/* Four pixels of three times three taps: the weights are in registers as well, and each element is loaded once for all
 * pixels that it meets. */
INLINE void gather_nine(const struct depthwise_piece *g, int64_t at, const vf *w, float *result, int reach, int lanes)
{
    const int64_t step = g->source_step / reach;
    vf sum[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        sum[i] = vset(0);
#pragma GCC unroll 3
    for (int t = 0; t < NINE; t += 3)
#pragma GCC unroll 9
        for (int j = 0; j < 3 * reach + 3; j++) {
            vf x = load(g->source[t] + at + j * step, lanes, false);
#pragma GCC unroll 3
            for (int u = 0; u < 3; u++)
                if (meets(j, u, reach) >= 0)
                    sum[meets(j, u, reach)] = vfma(x, w[t + u], sum[meets(j, u, reach)]);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        vput(result + i * g->result_step, sum[i], lanes);
}

INLINE void gather_channels(const struct depthwise_piece *g, const float *weights, float *result, int c, int reach,
                            int lanes, bool round, struct asking *asking)
{
    vf w[NINE];
    if (reach)
#pragma GCC unroll 9
        for (int t = 0; t < NINE; t++)
            w[t] = load(weights + g->tap[t] + c, lanes, false);
    int64_t pixel = 0, first = 0;
    for (; pixel + 4 <= g->pixels; pixel += 4, first += 4 * g->source_step)
        for (int64_t line = 0; line < g->lines; line++) {
            int64_t at = first + line * g->source_line;
            float *to = result + pixel * g->result_step + line * g->result_line + c;
            ask(asking);
            if (reach)
                gather_nine(g, at + c, w, to, reach, lanes);
            else
                gather_block(g, at, weights, to, c, 4, lanes, round);
        }
    for (; pixel < g->pixels; pixel++, first += g->source_step)
        for (int64_t line = 0; line < g->lines; line++) {
            float *to = result + pixel * g->result_step + line * g->result_line + c;
            gather_block(g, first + line * g->source_line, weights, to, c, 1, lanes, round);
        }
}

INLINE void gather_all(const struct depthwise_piece *g, const float *weights, float *result, int reach, bool round)
{
    struct asking asking = start_asking(g);
    int c = 0;
    for (; c + VL <= g->channels; c += VL)
        gather_channels(g, weights, result, c, reach, VL, round, &asking);
    if (c < g->channels)
        gather_channels(g, weights, result, c, reach, g->channels - c, round, &asking);
}

static void gather(const struct depthwise_piece *g, const float *weights, float *result)
{
    if (g->round)
        gather_all(g, weights, result, 0, true);
    else if (g->reach == 1 && g->taps == NINE)
        gather_all(g, weights, result, 1, false);
    else if (g->reach == 2 && g->taps == NINE)
        gather_all(g, weights, result, 2, false);
    else
        gather_all(g, weights, result, 0, false);
}

/* --- backward-weights: sums of `taps` taps are in registers --- */

INLINE void sum_pixel(const struct depthwise_piece *s, int tap, int taps, int64_t at, const float *dy, int lanes,
                      bool round, vf *sum)
{
    vf d = load(dy, lanes, round);
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++)
        sum[t] = vfma(load(s->source[tap + t] + at, lanes, round), d, sum[t]);
}

/* Four pixels and threes of taps: each element is loaded once for all taps that it meets. */
INLINE void sum_four(const struct depthwise_piece *s, int tap, int taps, int64_t at, const float *dy, int reach,
                     int lanes, vf *sum)
{
    const int64_t step = s->source_step / reach;
    vf d[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        d[i] = load(dy + i * s->result_step, lanes, false);
#pragma GCC unroll 3
    for (int t = 0; t < taps; t += 3)
#pragma GCC unroll 9
        for (int j = 0; j < 3 * reach + 3; j++) {
            vf x = load(s->source[tap + t] + at + j * step, lanes, false);
#pragma GCC unroll 3
            for (int u = 0; u < 3; u++)
                if (meets(j, u, reach) >= 0)
                    sum[t + u] = vfma(x, d[meets(j, u, reach)], sum[t + u]);
        }
}

INLINE void sum_channels(const struct depthwise_piece *s, const float *dy, float *sums, int tap, int taps, int c,
                         int reach, int lanes, bool round, struct asking *asking)
{
    vf sum[NINE];
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++)
        sum[t] = load(sums + s->tap[tap + t] + c, lanes, false);
    int64_t pixel = 0, at = c;
    const float *from = dy + c;
    for (; reach && pixel + 4 <= s->pixels; pixel += 4, at += 4 * s->source_step, from += 4 * s->result_step)
        for (int64_t line = 0; line < s->lines; line++) {
            ask(asking);
            sum_four(s, tap, taps, at + line * s->source_line, from + line * s->result_line, reach, lanes, sum);
        }
    for (; pixel < s->pixels; pixel++, at += s->source_step, from += s->result_step)
        for (int64_t line = 0; line < s->lines; line++)
            sum_pixel(s, tap, taps, at + line * s->source_line, from + line * s->result_line, lanes, round, sum);
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++)
        vput(sums + s->tap[tap + t] + c, sum[t], lanes);
}

INLINE int sum_some(const struct depthwise_piece *s, const float *dy, float *sums, int tap, int taps, int reach,
                    bool round)
{
    struct asking asking = start_asking(s);
    for (; tap + taps <= s->taps; tap += taps) {
        int c = 0;
        for (; c + VL <= s->channels; c += VL)
            sum_channels(s, dy, sums, tap, taps, c, reach, VL, round, &asking);
        if (c < s->channels)
            sum_channels(s, dy, sums, tap, taps, c, reach, s->channels - c, round, &asking);
    }
    return tap;
}

INLINE void sum_all(const struct depthwise_piece *s, const float *dy, float *sums, int reach, bool round)
{
    int tap = sum_some(s, dy, sums, 0, NINE, reach, round);
    tap = sum_some(s, dy, sums, tap, 6, reach, round);
    tap = sum_some(s, dy, sums, tap, 3, reach, round);
    if (!reach)
        sum_some(s, dy, sums, tap, 1, 0, round);
}

static void sum(const struct depthwise_piece *s, const float *dy, float *sums)
{
    if (s->round)
        sum_all(s, dy, sums, 0, true);
    else if (s->reach == 1)
        sum_all(s, dy, sums, 1, false);
    else if (s->reach == 2)
        sum_all(s, dy, sums, 2, false);
    else
        sum_all(s, dy, sums, 0, false);
}

const struct depthwise_functions ISA_NAME(depthwise) = {gather, sum};
