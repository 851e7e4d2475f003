/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of depthwise convolutions (isa/depthwise.c): vectors along the channels. Taps are summed in the order
 * given, pixels in theirs. round: multiplicands are rounded to bfloat16 on the way. */
#ifndef KERNELS_DEPTHWISE_H
#define KERNELS_DEPTHWISE_H

#include "kernels/kernel.h"

enum { DEPTHWISE_TAPS = 256 };

/* result[i * result_step + c] = sum over t of source[t][i * source_step + c] * weights[t][c], for `pixels` and
 * `channels`. */
struct depthwise_gather {
    int taps, channels;
    int64_t pixels, source_step, result_step;
    const float *source[DEPTHWISE_TAPS], *weights[DEPTHWISE_TAPS];
    float *result;
    bool round;
};

/* sum[c] += sum over i of x[i * x_step + c] * dy[i * dy_step + c]. */
struct depthwise_sum {
    int channels;
    int64_t pixels, x_step, dy_step;
    const float *x, *dy;
    float *sum;
    bool round;
};

struct depthwise_functions {
    void (*gather)(const struct depthwise_gather *call);
    void (*sum)(const struct depthwise_sum *call);
};

const struct depthwise_functions *depthwise_functions(enum isa isa);

#endif
