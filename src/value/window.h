/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over the spatial dimensions of [N, C, D1, ...]: sizes, strides, dilations, padding by number or by
 * rule, shared by convolutions and pools. */
#ifndef VALUE_WINDOW_H
#define VALUE_WINDOW_H

#include "value/op.h"

enum { WINDOW_RANK = VALUE_RANK - 2 };

struct window {
    int rank; /* spatial dimensions */
    int64_t in[WINDOW_RANK], out[WINDOW_RANK], kernel[WINDOW_RANK], stride[WINDOW_RANK], dilation[WINDOW_RANK],
        before[WINDOW_RANK], after[WINDOW_RANK];
    int64_t ins, outs, taps; /* products of in, out, kernel */
};

/* From the attributes strides, dilations, pads, auto_pad, ceil_mode; `kernel` has x's spatial rank. */
graphi_status window_find(const struct op_call *call, const graphi_tensor *x, const int64_t *kernel, struct window *w);
/* Attributes alone: strides, dilations, pads by number. */
graphi_status window_attributes(const struct op_call *call, struct window *w);
/* Products of the sizes; refuses what is beyond 2^40. */
graphi_status window_count(const struct op_call *call, struct window *w);

/* The place within the image that tap `tap` of the window at `out` (indices) reads, or -1 in the padding. */
int64_t window_place(const struct window *w, const int64_t *out, const int64_t *tap);
/* The next index in C order; false after the last. */
bool window_next(int rank, const int64_t *dims, int64_t *index);

#endif
