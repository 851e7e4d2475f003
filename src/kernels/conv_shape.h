/* SPDX-License-Identifier: Apache-2.0 */
/* What the algorithms of convolutions share: coordinates, and how work is cut. */
#ifndef KERNELS_CONV_SHAPE_H
#define KERNELS_CONV_SHAPE_H

#include "kernels/conv_spec.h"

enum {
    CONV_MAX_TAPS = 64,      /* along one dimension */
    CONV_TOGETHER_MAX = 768, /* rows of dw of a tile with all window rows: dy is then read once for all of them */
    CONV_FAR_BYTES =
        16 << 20, /* x and dy beyond this come from memory at every reading (half of 32 MB of level-3 cache) */
    CONV_FEW_CHANNELS = 16, /* below: a weight gradient's pixels lie side by side as it reads them */
    CONV_NEAR_BYTES = 2 << 20, /* x and dy beyond this are not in the level-2 cache: a weight gradient asks for them, */
    CONV_ASKING_STEPS = 192,   /* in calls of so many steps, which fit there together with those asked for */
    CONV_REDUCE_STEP = 16384,  /* elements of the sum of parts of a weight gradient that are a share */
};

/* Computes oh, ow; with a message INVALID when the window does not fit or channels do not divide, UNSUPPORTED when it
 * has more than 64 rows or columns. */
graphi_status conv_shape_finish(struct conv_shape *shape, const char *where);

/* One dimension of a convolution: `result` coordinates are computed from `source` coordinates. */
struct conv_axis {
    int64_t result, source, taps, stride, dilation, pad;
    int64_t backward; /* the source is dy, the result dx; as wide as the others for there to be no padding */
};

/* Result coordinates start, start + step, ... (count of them) that use the same taps. Tap t of the j-th reads source
 * coordinate conv_source(axis, start, t) + j * source_step. */
struct conv_run {
    int64_t start, step, count, source_step;
    uint64_t taps;
};

/* Writes the runs that cover the axis (at most axis->result; `out` NULL: counts only). Returns how many. */
int64_t conv_runs(const struct conv_axis *axis, struct conv_run *out);

static inline int64_t conv_source(const struct conv_axis *axis, int64_t result, int64_t tap)
{
    if (axis->backward)
        return (result + axis->pad - tap * axis->dilation) / axis->stride;
    return result * axis->stride + tap * axis->dilation - axis->pad;
}

/* A 1 x 1 window that meets every pixel once: all pixels of an image are one row. */
static inline bool conv_flat(const struct conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->stride_h == 1 && s->stride_w == 1 && s->oh == s->h && s->ow == s->w &&
           !s->pad_top && !s->pad_left;
}

/* Do x and dy of a weight gradient come from memory, not from a cache? A tile of a 1 x 1 one in bfloat16 then goes
 * through all panels, so that x comes once. */
static inline bool conv_far(const struct conv_shape *s)
{
    return 4 * s->n * s->oh * s->ow * (s->c + s->k) > CONV_FAR_BYTES;
}

/* Does a call of the micro-kernel ask for what the next one reads? Hardware does not follow pieces of pixels. */
static inline bool conv_asks(const struct conv_shape *s)
{
    return s->c >= CONV_FEW_CHANNELS &&
           4 * s->n * (s->h * s->w * s->c + s->oh * s->ow * s->k) > CONV_NEAR_BYTES;
}

/* Parts of the images whose weight gradients (`count` elements each) are summed apart, where `tiles` are too few to
 * share out, or as many as two threads would not share alike: a power of two, so that these have whole parts of as many
 * images. Of an odd number of images they would not: there are then as many parts as make enough tiles. More, up to 64
 * tiles, where a part has so many pixels that its sum costs nothing beside. */
int64_t conv_weight_parts(const struct conv_shape *s, int64_t tiles, int64_t count);
/* Tiles of at most so many rows, cut by split_range: an even number for the same reason, unless one holds them all. */
int64_t conv_row_tiles(int64_t rows, int64_t most);

/* Bytes of both images and the weights, float32. */
double conv_traffic(const struct conv_shape *s);

struct conv_axis conv_axis_y(const struct conv_shape *s, bool backward);
struct conv_axis conv_axis_x(const struct conv_shape *s, bool backward);

#endif
