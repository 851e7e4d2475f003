/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of depthwise convolutions (isa/depthwise.c): vectors along the channels. Taps are summed in the order
 * given, pixels in theirs, line after line. */
#ifndef KERNELS_DEPTHWISE_H
#define KERNELS_DEPTHWISE_H

#include "kernels/kernel.h"

enum { DEPTHWISE_TAPS = 256 };

/* Elements one after the other in memory, from `from` up to `to`. */
struct depthwise_ahead {
    const float *from, *to;
};

/* A piece of the result, all pixels of which use the same taps. Tap t of pixel i of line l is source[t][l * source_line
 * + i * source_step + c]; the pixel is at l * result_line + i * result_step + c. */
struct depthwise_piece {
    int taps, channels;
    int reach; /* 1 or 2: taps come in threes, neighbours of which read elements source_step / reach apart. 0: else */
    int64_t lines, source_line, result_line, pixels, source_step, result_step;
    const float *source[DEPTHWISE_TAPS];
    int64_t tap[DEPTHWISE_TAPS];     /* from which element on the tap's weights lie */
    struct depthwise_ahead ahead[2]; /* what later lines take of the source, and of the result: asked for meanwhile */
    bool round;                      /* multiplicands to bfloat16, on the way */
};

struct depthwise_functions {
    /* Each pixel of the result becomes the sum over the taps of source times weight. */
    void (*gather)(const struct depthwise_piece *piece, const float *weights, float *result);
    /* To each tap's sums (where its weights would be) add, over the pixels, source times dy. */
    void (*sum)(const struct depthwise_piece *piece, const float *dy, float *sums);
};

const struct depthwise_functions *depthwise_functions(enum isa isa);

#endif
