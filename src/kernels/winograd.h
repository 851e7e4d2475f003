/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's transforms (isa/winograd.c): m outputs of a correlation with r taps from n = m + r - 1 inputs with n
 * products, in two dimensions m x m outputs with n x n products instead of m*m * r*r.
 *
 * Schemes of one n share their points and the transform of the inputs: 4 points 0, +-1, infinity; 6 points 0, +-5/8,
 * +-3/2, infinity; 8 points 0, +-1/2, +-1, +-2, infinity. The 6 points are nearer to 1 than the usual 0, +-1, +-2,
 * which lowers the rounding error. For a forward or backward-data convolution the taps are the weights; for the
 * weights' gradient they are the gradients of r x r result pixels, and the m x m outputs are the window. All arrays are
 * float32 unless said otherwise; vectors run along the channels. */
#ifndef KERNELS_WINOGRAD_H
#define KERNELS_WINOGRAD_H

#include "kernels/kernel.h"

enum { WINOGRAD_OUTPUTS_MAX = 6 };

/* One tile of inputs or taps: v[point * plane + c] from source[y * row + x * pixel + c], of which only y0 <= y < y1,
 * x0 <= x < x1 exist (the others are zero and are not read). Another tile, `ahead` floats on, is asked for into the
 * level-2 cache meanwhile; 0: nothing new, past the end of memory: nothing happens. */
struct winograd_source {
    const float *source;
    int64_t row, pixel;
    int y0, y1, x0, x1;
    int channels;
    int64_t ahead;
    float *v;
    int64_t plane;
};

struct winograd_scheme {
    int points, outputs, taps; /* n, m, r of one dimension */
    void (*input)(const struct winograd_source *source);
    /* The same rounded to bfloat16: halves at (uint16_t *)v + 2 * point * plane + c. NULL but with bfloat16
     * instructions. */
    void (*input_halves)(const struct winograd_source *source);
    void (*tap)(const struct winograd_source *source);
    /* y[i * row + j * pixel + c] for the m x m outputs from products[point * plane + c]. */
    void (*output)(const float *products, int64_t plane, int channels, float *y, int64_t row, int64_t pixel);
};

/* F(outputs, taps) in the form of the instruction set; NULL when there is none. */
const struct winograd_scheme *winograd_scheme(enum isa isa, int outputs, int taps);

#endif
