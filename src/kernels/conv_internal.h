/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the direct convolution share. */
#ifndef KERNELS_CONV_INTERNAL_H
#define KERNELS_CONV_INTERNAL_H

#include "kernels/conv.h"

enum { CONV_MAX_TAPS = 64 }; /* along one dimension */

/* One dimension of a convolution: `result` coordinates are computed from `source` coordinates. */
struct conv_axis {
    int64_t result, source, taps, stride, dilation, pad;
    bool backward; /* the source is dy, the result dx */
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

struct conv_axis conv_axis_y(const struct conv_shape *s, bool backward);
struct conv_axis conv_axis_x(const struct conv_shape *s, bool backward);

graphi_status conv_gather_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
/* Can the Winograd kernel compute it; should it (shape, error budget)? */
bool conv_winograd_possible(const struct conv_spec *spec);
bool conv_winograd_chosen(const struct conv_spec *spec);
graphi_status conv_winograd_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
graphi_status conv_weights_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);

#endif
