/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops of depthwise convolutions (kernels/depthwise.h), compiled once per instruction set. Four pixels by one
 * vector of channels are in registers at a time, so that a tap's weights are loaded once for four products. Called from
 * any thread; usual call: 9 taps, 14 to 112 pixels, 32 to 1024 channels. */
#include "kernels/depthwise.h"

#include "kernels/isa/isa.h"

extern const struct depthwise_functions ISA_NAME(depthwise);


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

INLINE void gather_block(const struct depthwise_gather *g, int64_t pixel, int pixels, int c, int lanes, bool round)
{
    vf sum[4];
    for (int i = 0; i < pixels; i++)
        sum[i] = vset(0);
    for (int t = 0; t < g->taps; t++) {
        const float *source = g->source[t] + pixel * g->source_step + c;
        vf weights = load(g->weights[t] + c, lanes, round);
#pragma GCC unroll 4
        for (int i = 0; i < pixels; i++)
            sum[i] = vfma(load(source + i * g->source_step, lanes, round), weights, sum[i]);
    }
    for (int i = 0; i < pixels; i++)
        vput(g->result + (pixel + i) * g->result_step + c, sum[i], lanes);
}

INLINE void gather_pixels(const struct depthwise_gather *g, int c, int lanes, bool round)
{
    int64_t pixel = 0;
    for (; pixel + 4 <= g->pixels; pixel += 4)
        gather_block(g, pixel, 4, c, lanes, round);
    for (; pixel < g->pixels; pixel++)
        gather_block(g, pixel, 1, c, lanes, round);
}

INLINE void gather_channels(const struct depthwise_gather *g, bool round)
{
    int c = 0;
    for (; c + VL <= g->channels; c += VL)
        gather_pixels(g, c, VL, round);
    if (c < g->channels)
        gather_pixels(g, c, g->channels - c, round);
}

static void gather(const struct depthwise_gather *g)
{
    if (g->round)
        gather_channels(g, true);
    else
        gather_channels(g, false);
}

INLINE void sum_block(const struct depthwise_sum *s, int c, int vectors, int lanes, bool round)
{
    vf sum[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        sum[v] = load(s->sum + c + v * VL, lanes, false);
    for (int64_t i = 0; i < s->pixels; i++) {
        const float *x = s->x + i * s->x_step + c, *dy = s->dy + i * s->dy_step + c;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[v] = vfma(load(x + v * VL, lanes, round), load(dy + v * VL, lanes, round), sum[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        vput(s->sum + c + v * VL, sum[v], lanes);
}

INLINE void sum_channels(const struct depthwise_sum *s, bool round)
{
    int c = 0;
    for (; c + 4 * VL <= s->channels; c += 4 * VL)
        sum_block(s, c, 4, VL, round);
    for (; c + VL <= s->channels; c += VL)
        sum_block(s, c, 1, VL, round);
    if (c < s->channels)
        sum_block(s, c, 1, s->channels - c, round);
}

static void sum(const struct depthwise_sum *s)
{
    if (s->round)
        sum_channels(s, true);
    else
        sum_channels(s, false);
}

const struct depthwise_functions ISA_NAME(depthwise) = {gather, sum};
