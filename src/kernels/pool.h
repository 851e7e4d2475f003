/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling, channels-last: x[N,H,W,C] -> y[N,OH,OW,C], and their gradients. Pixels may be strided (ld >=
 * C). */
#ifndef KERNELS_POOL_H
#define KERNELS_POOL_H

#include "kernels/kernel.h"

enum pool_kind { POOL_MAX, POOL_AVERAGE };
enum pool_direction { POOL_FORWARD, POOL_GRADIENT };

struct pool_shape {
    int64_t n, h, w, c, kh, kw, stride_h, stride_w;
    int64_t pad_top, pad_left, pad_bottom, pad_right; /* each less than the window */
    bool ceil_mode;               /* a last window may hang over the lower or right border (Caffe's rule) */
    bool count_include_pad;       /* averages divide by the window including padding, not by its real elements alone */
    int64_t oh, ow;               /* filled by pool_shape_finish */
    int64_t ldx, ldy, lddy, lddx; /* pixel strides in elements, 0: c */
};

/* Computes oh, ow and missing strides; INVALID with a message when the window or padding does not fit. Windows that
 * would start beyond the image are dropped, as PyTorch does, so every window holds at least one element. */
graphi_status pool_shape_finish(struct pool_shape *shape, const char *where);

struct pool_spec {
    struct pool_shape shape;
    enum pool_kind kind;
    enum pool_direction direction;
};

/* Arguments: forward x -> y. Gradient of max: x, y, dy -> dx; each dy goes to exactly one element, the first of its
 * window (row by row) that equals the maximum, or the first NaN. Gradient of average: dy -> dx. NaN in a window gives
 * NaN. N may be bounded: the rows of input 0 count. */
graphi_status pool_bind(const struct pool_spec *spec, enum isa isa, struct kernel *kernel);

/* One block of work, as isa/pool_run.c gets it: rows [begin, end) of n*oh (forward, gradient of max over exact tiles)
 * or of n*h (gradients otherwise), channels [c0, c1). */
struct pool_block {
    const struct pool_spec *spec;
    const float *x, *y, *dy;
    float *out;
    int64_t begin, end, c0, c1;
};
typedef void (*pool_function)(const struct pool_block *block);

/* Windows that cover the image exactly, each element once: the gradient needs no zeroing and may be cut by rows. */
bool pool_exact_tiles(const struct pool_shape *shape);

#endif
