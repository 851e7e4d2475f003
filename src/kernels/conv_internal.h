/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the direct convolution share. */
#ifndef KERNELS_CONV_INTERNAL_H
#define KERNELS_CONV_INTERNAL_H

#include "kernels/conv.h"
#include "kernels/winograd.h"

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

/* A form of weights (conv_pack.c) and the work of making it, in units that do not touch each other's results. */
struct conv_packing {
    struct conv_form form;
    const struct winograd_scheme *scheme; /* NULL: direct */
    const struct pair_functions *round;   /* NULL: floats */
    bool backward;
    int64_t source_c, result_c; /* channels of a group */
    int64_t depth;              /* rows of a tap: source_c, or pairs */
    int64_t taps, width, panels;
    int64_t units;
    size_t bytes;
};

void conv_packing_init(const struct conv_form *form, enum isa isa, struct conv_packing *packing);
void conv_packing_unit(const struct conv_packing *packing, const float *w, void *target, int64_t unit);
/* Floats between planes of points: they would else meet in the same sets of the level-1 cache. */
enum { CONV_PLANE_PAD = 16 };
/* Winograd: result channels [begin, end) of the weights alone, as one panel; at most PANEL_MAX of them. Its planes of
 * points lie CONV_PLANE_PAD elements further apart than they are long. */
void conv_packing_columns(const struct conv_packing *packing, const float *w, int64_t begin, int64_t end, void *target);

/* The bound that the choice counts on: times the direct kernel's root mean square error, same multiplicands. */
double conv_error_bound(enum conv_direction direction, int64_t window, enum conv_algorithm algorithm, bool pairs);

/* F(outputs, taps) for an algorithm and direction; NULL when there is none for the window. */
const struct winograd_scheme *conv_winograd_scheme(const struct conv_spec *spec, enum conv_algorithm algorithm,
                                                   enum isa isa);
/* Does Winograd's algorithm multiply its points as pairs of bfloat16 there? With 8 points a side the transforms would
 * spread the rounding too far (13 times the direct kernel's error). */
bool conv_winograd_pairs(const struct conv_spec *spec, enum conv_algorithm algorithm, enum isa isa);

/* A forward convolution row by row, for conv_pooled.c: its kernel, bound as usual, gives its parameters. The phases
 * before the last are run as they are; in place of the last, run() makes rows [from, to) of an image of the result.
 * out[0] is then where row 0 of image 0 would be. */
struct conv_rows {
    void (*run)(const struct kernel_call *call, int64_t image, int64_t from, int64_t to, void *scratch);
    size_t workspace, scratch; /* bytes: of the phases before, kept; of each caller at a time */
    int64_t unit;              /* rows made together: from is a multiple, to too unless it is the end */
    int64_t fewest; /* rows at a time that keep its tiles full, a multiple of unit; 0: an image has too few */
};
struct conv_rows conv_gather_rows(const void *params);
struct conv_rows conv_winograd_rows(const void *params);
graphi_status conv_pooled_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);

bool conv_depthwise_takes(const struct conv_spec *spec);
graphi_status conv_depthwise_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
/* In place of the direct kernel; of a shape that is finished. */
bool conv_few_takes(const struct conv_spec *spec, enum isa isa);
graphi_status conv_few_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
graphi_status conv_gather_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
graphi_status conv_winograd_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
graphi_status conv_winograd_weights_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
/* In place of conv_weights_bind; of a shape that is finished. */
bool conv_weights_flat_takes(const struct conv_spec *spec);
graphi_status conv_weights_flat_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
graphi_status conv_weights_pairs_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
graphi_status conv_weights_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);

#endif
