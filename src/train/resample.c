/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear scaling. Usual size: 28×28×1 to 64×64, some ten microseconds an image. */
#include "train/resample.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

static void fill(struct tap *taps, int64_t in, int64_t out)
{
    float scale = (float)in / (float)out;
    for (int64_t i = 0; i < out; i++) {
        float at = ((float)i + 0.5f) * scale - 0.5f;
        if (at < 0)
            at = 0;
        int32_t low = (int32_t)at; /* at most in - 1: the last centre lies half a pixel of either size before the end */
        taps[i] = (struct tap){low, low < in - 1 ? low + 1 : low, at - (float)low};
    }
}

graphi_status resampler_init(struct resampler *r, int64_t in_height, int64_t in_width, int64_t height, int64_t width)
{
    *r = (struct resampler){.in_width = in_width, .height = height, .width = width};
    if (in_height == height && in_width == width)
        return GRAPHI_OK;
    r->rows = mem_zalloc_array((size_t)(height + width), sizeof *r->rows);
    if (!r->rows)
        return fail_memory("image scaling", (size_t)(height + width) * sizeof *r->rows);
    r->columns = r->rows + height;
    fill(r->rows, in_height, height);
    fill(r->columns, in_width, width);
    return GRAPHI_OK;
}

void resample(const struct resampler *r, int64_t channels, const float *in, float *out)
{
    for (int64_t y = 0; y < r->height; y++) {
        const float *above = in + r->rows[y].low * r->in_width * channels;
        const float *below = in + r->rows[y].high * r->in_width * channels;
        float down = r->rows[y].weight, up = 1 - down;
        for (int64_t x = 0; x < r->width; x++) {
            int64_t left = r->columns[x].low * channels, right = r->columns[x].high * channels;
            float to_right = r->columns[x].weight, to_left = 1 - to_right;
            for (int64_t c = 0; c < channels; c++)
                *out++ = up * (to_left * above[left + c] + to_right * above[right + c]) +
                         down * (to_left * below[left + c] + to_right * below[right + c]);
        }
    }
}

void resampler_free(struct resampler *r)
{
    mem_free(r->rows);
    r->rows = r->columns = NULL;
}
