/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of Winograd's F(4x4, 3x3) (isa/winograd.c): 4 x 4 outputs from 6 x 6 inputs with 36 products instead of 144.
 * Evaluation points 0, +-5/8, +-3/2 and infinity: nearer to 1 than the usual 0, +-1, +-2, which lowers the rounding error.
 * All arrays are float32; vectors run along the channels. */
#ifndef KERNELS_WINOGRAD_H
#define KERNELS_WINOGRAD_H

#include "kernels/kernel.h"

enum { WINOGRAD_OUT = 4, WINOGRAD_IN = 6, WINOGRAD_POINTS = 36 };

/* One tile: v[point * plane + c] from pixels source[y * row + x * pixel + c], of which only y0 <= y < y1, x0 <= x < x1 exist (the
 * others are zero and are not read). */
struct winograd_input {
    const float *source;
    int64_t row, pixel;
    int y0, y1, x0, x1;
    int channels;
    float *v;
    int64_t plane;
};

struct winograd_functions {
    void (*input)(const struct winograd_input *input);
    /* y[(i * row + j) * channels + c] for the 4 x 4 outputs from m[point * plane + c]; row in pixels. */
    void (*output)(const float *m, int64_t plane, int channels, float *y, int64_t row);
    /* u[point * plane + c] from the nine taps w[tap * step + c]. */
    void (*weights)(const float *w, int64_t step, int channels, float *u, int64_t plane);
};

const struct winograd_functions *winograd_functions(enum isa isa);

#endif
