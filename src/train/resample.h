/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear scaling with half-pixel centres, as PyTorch's interpolate(mode="bilinear", align_corners=False): output x
 * reads at (x + 0.5) · in / out − 0.5, held at 0 below, and the last pixel repeats. No smoothing when shrinking. */
#ifndef TRAIN_RESAMPLE_H
#define TRAIN_RESAMPLE_H

#include "graphi/types.h"

/* Where an output index reads: (1 − weight) · in[low] + weight · in[high]. */
struct tap {
    int32_t low, high;
    float weight;
};

struct resampler {
    int64_t in_width, height, width;
    struct tap *rows, *columns; /* NULL: the sizes agree, nothing to do */
};

graphi_status resampler_init(struct resampler *r, int64_t in_height, int64_t in_width, int64_t height, int64_t width);

/* in [in_height, in_width, channels] to out [height, width, channels]; not in place. Any thread. */
void resample(const struct resampler *r, int64_t channels, const float *in, float *out);

void resampler_free(struct resampler *r);

#endif
