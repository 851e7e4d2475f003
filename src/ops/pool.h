/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling that a convolution does itself: what the pass `bands` makes of a max_pool or avg_pool node and gives to
 * conv2d as its attribute "pool". */
#ifndef OPS_POOL_H
#define OPS_POOL_H

#include "ops/check.h"

#include "kernels/pool.h"

enum { POOL_ENCODED = 10 }; /* kind, kernel, strides, pads, and a bit each for ceil_mode and count_include_pad */

/* The window of a max_pool or avg_pool node, which must be one, over images of these dims [N,H,W,C]. */
graphi_status pool_of(const char *where, const struct node *node, const int64_t *dims, struct pool_spec *spec);

/* UNSUPPORTED when a pool that keeps places has a window with more of them than can be told. */
graphi_status pool_places_fit(const char *where, const struct pool_spec *spec);

int pool_encode(const struct pool_spec *spec, int64_t *integers); /* writes and returns POOL_ENCODED */
graphi_status pool_decode(const char *where, const int64_t *integers, int count, const int64_t *dims,
                          struct pool_spec *spec);

#endif
