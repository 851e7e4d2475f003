/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization over channels-last arrays seen as rows x c: batch normalization and cross-channel local response (LRN).
 *
 * Batch statistics are reduced over fixed leaves: the bound of the shape cuts the rows into leaves, each leaf is summed
 * block by block, and leaves are combined in order. So the bits depend on nothing but the shape. Variance is biased
 * (divided by the rows), from deviations, never as E[x^2] - E[x]^2. */
#ifndef KERNELS_NORM_H
#define KERNELS_NORM_H

#include "kernels/kernel.h"

enum norm_kind {
    NORM_BATCH,           /* x, scale[c], bias[c] -> y, mean[c], inv_std[c] */
    NORM_BATCH_GRADIENT,  /* x, scale, mean, inv_std, dy -> dx, dscale[c], dbias[c] */
    NORM_BATCH_INFERENCE, /* x, scale, bias, mean, var -> y */
    NORM_LRN,             /* x -> y = x s^-beta, s = k + alpha / size * sum of x^2 over the window around the channel */
    NORM_LRN_GRADIENT,    /* x, dy -> dx */
    NORM_KINDS
};

struct norm_spec {
    enum norm_kind kind;
    int64_t rows, c;
    int64_t per_row;        /* rows of the matrix one row of dimension 0 has, where rows are bounded */
    int64_t ldx, lddy, ldy; /* of x, dy, and of y or dx */
    double epsilon;         /* batch: inv_std = 1 / sqrt(var + epsilon) */
    graphi_streaming streaming; /* batch: of y or dx */
    int64_t size;           /* LRN: channels i - (size - 1) / 2 .. i + size / 2, as ONNX */
    double alpha, beta, k;
};

graphi_status norm_bind(const struct norm_spec *spec, enum isa isa, struct kernel *kernel);

/* --- shared by norm.c, isa/norm_run.c and isa/lrn_run.c --- */

/* Channels of a piece that is done for itself: 128 bytes of a row, which memory gives as fast as whole rows. Longer
 * pieces have the processor read on past their ends: 256 bytes take twice as long. */
enum { NORM_PIECE = 32 };

struct norm_block {
    struct norm_spec spec; /* a copy: stores of vectors may alias what is behind a pointer */
    const float *x, *dy, *mean, *bias;
    float *y; /* or dx */
    /* Row vectors [c] of y = (x - mean) slope + bias and dx = slope (dy - a - (x - mean) b). Of a leaf a and b are the
     * sums [c]: mean and squared deviations; dy and dy (x - mean). LRN's gradient: scratch [c], but where
     * its windows stay in registers. */
    float *slope, *a, *b;
    int64_t begin, end; /* rows */
    int64_t step;       /* of a leaf: rows summed before they are merged */
    bool far;           /* not in the caches: rows are asked for ahead, y is written past them */
};
typedef void (*norm_function)(const struct norm_block *block);

/* The params of a kernel that norm_bind made. */
struct norm_params {
    struct norm_spec spec;
    int leaves, parts;
    int64_t step;       /* of its blocks */
    int64_t pieces;     /* of channels that may be done one by one; 0: it would not help */
    double piece_bytes, near_bytes; /* what x, and dy, of a piece take; of a cache, at most */
    bool far;           /* of its blocks */
    norm_function leaf, rows;
};

#endif
