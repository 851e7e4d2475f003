/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as most tests have them. */
#ifndef TESTS_CONV_SHAPES_H
#define TESTS_CONV_SHAPES_H

#include "kernels/conv.h"

#define CONV_PLAIN .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1

/* Images and results of one side: the pads are those that an odd window needs for it. */
static inline struct conv_shape square_conv(int64_t n, int64_t side, int64_t c, int64_t k, int64_t window)
{
    const int64_t pad = window / 2;
    return (struct conv_shape){.n = n, .h = side, .w = side, .c = c, .k = k, .kh = window, .kw = window, CONV_PLAIN,
                               .pad_top = pad, .pad_left = pad, .pad_bottom = pad, .pad_right = pad};
}

#endif
