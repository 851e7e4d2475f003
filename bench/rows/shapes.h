/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions that the networks run, and some that none does but users' will: batched, depthwise, 11x11.
 */
#ifndef BENCH_ROWS_SHAPES_H
#define BENCH_ROWS_SHAPES_H

#include "peers/arithmetic.h"

struct shape {
    const char *use;
    bool is_conv;
    struct peer_gemm gemm;
    struct peer_conv conv;
    int uses; /* of a convolution: in the networks whose sums the goals are about; of a product: goals are about it */
};

extern const struct shape kernels_shapes[];
extern const int kernels_shape_count;

/* FLOPs of the direct algorithm, the same in every direction. */
double kernels_flops(const struct shape *shape);

/* Is there a fast algorithm? */
bool kernels_have_choice(const struct shape *shape);

#endif
