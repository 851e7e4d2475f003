/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling, channels-last: x[N,H,W,C] -> y[N,OH,OW,C], and their gradients. Max pooling keeps the places
 * of its maxima, so that its gradient reads a byte where it would read an element of y and a window of x. Pixels may be
 * strided (ld >= C). */
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
    int64_t oh, ow;                    /* filled by pool_shape_finish */
    int64_t ldx, ldy, lddy, lddx, ldp; /* pixel strides in elements, of places last; 0: c */
};

/* Computes oh, ow and missing strides; INVALID with a message when the window or padding does not fit. Windows that
 * would start beyond the image are dropped, as PyTorch does, so every window holds at least one element. */
graphi_status pool_shape_finish(struct pool_shape *shape, const char *where);

/* The place of a maximum is the number of its element in the window, padding counted, row by row: the first that equals
 * it, or the first NaN. Windows of up to 256 elements have bytes, larger ones integers. */
static inline graphi_dtype pool_places_type(const struct pool_shape *shape)
{
    return shape->kh * shape->kw <= 256 ? GRAPHI_U8 : GRAPHI_I32;
}

enum { POOL_MOST_PLACES = 1 << 24 }; /* elements of a window whose places can be kept */

struct pool_spec {
    struct pool_shape shape;
    enum pool_kind kind;
    enum pool_direction direction;
    bool places; /* forward, max: somebody reads them */
    graphi_streaming streaming; /* gradient of max: of dx, where windows of 3 columns lie 2 apart and at most two above
                                   each other, in whole lines */
};

/* Arguments: forward x -> y, for max also the places, which are left alone unless spec.places. Gradient of max: places,
 * dy -> dx, each dy goes to the element at its place. Gradient of average: dy -> dx. NaN in a window gives NaN. N may
 * be bounded: the rows of input 0 count. */
graphi_status pool_bind(const struct pool_spec *spec, enum isa isa, struct kernel *kernel);

/* Along one side: the elements of x under a window, or the windows above an element of x. */
struct pool_span {
    int64_t first, count;
    int64_t place;   /* of the first element in the window, of the element in the first window */
    int64_t divides; /* the size on this side that an average divides by; elements: 0 where windows above them differ in
                        it */
    int64_t alike; /* it and so many next ones lie alike, each a stride further: windows side by side, elements a stride
                      apart */
};
struct pool_spans {
    const struct pool_span *down, *across;
};

/* One block of work, as isa/pool_run.c gets it: rows [begin, end) of n*oh (forward) or of n*h (gradients), channels
 * [c0, c1). */
struct pool_block {
    const struct pool_spec *spec;
    struct pool_spans windows; /* of each window */
    struct pool_spans above;   /* gradients: of each element of x */
    const float *x, *dy;
    void *place; /* NULL: not kept */
    float *out;
    int64_t begin, end, c0, c1;
    bool far; /* out is better written past the caches */
};
typedef void (*pool_function)(const struct pool_block *block);

/* For kernels that pool what they make themselves (conv_pooled.c): the function, and the spans of a finished shape,
 * first those of the windows down, then across, then (gradients) those above the elements. */
pool_function pool_function_of(const struct pool_spec *spec, enum isa isa);
size_t pool_spans(const struct pool_spec *spec);
void pool_fill_spans(const struct pool_spec *spec, struct pool_span *span);

#endif
