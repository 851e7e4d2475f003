/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of convolutions as a table, one at the end of each file that has one. conv.c asks them in order. */
#ifndef KERNELS_CONV_KERNEL_H
#define KERNELS_CONV_KERNEL_H

#include "kernels/conv_spec.h"

/* A forward convolution row by row, for conv_pooled.c: the kernel, bound as usual, gives its parameters. The phases
 * before the last are run as they are; in place of the last, run() makes rows [from, to) of an image of the result.
 * out[0] is then where row 0 of image 0 would be. */
struct conv_rows {
    void (*run)(const struct kernel_call *call, int64_t image, int64_t from, int64_t to, void *scratch);
    size_t workspace, scratch; /* bytes: of the phases before, kept; of each caller at a time */
    int64_t unit;              /* rows made together: from is a multiple, to too unless it is the end */
    int64_t fewest; /* rows at a time that keep its tiles full, a multiple of unit; 0: an image has too few */
};

/* Of a spec whose shape is finished and whose algorithm is decided. */
struct conv_kernel {
    bool (*takes)(const struct conv_spec *spec, enum isa isa);
    graphi_status (*bind)(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);
    struct conv_rows (*rows)(const void *params); /* NULL: it makes no single rows */
    bool reads_forms; /* of weights, as conv_form_of says */
    bool rounds;      /* images of float32 to bfloat16 as they are, and takes them rounded */
};

extern const struct conv_kernel conv_depthwise, conv_few, conv_weights_flat, conv_weights_pairs, conv_weights,
    conv_gather, conv_winograd, conv_winograd_weights;

#endif
