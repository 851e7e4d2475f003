/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any set of axes. The order of additions is fixed by the shape: contiguous runs are summed in 64
 * lanes and a tree, rows in groups of four, groups into leaves, leaves in order. So results are the same bits on every
 * instruction set and for every number of threads. When there are few results, leaves are summed in a first phase and
 * combined in a second. */
#ifndef KERNELS_REDUCE_H
#define KERNELS_REDUCE_H

#include "kernels/kernel.h"

enum reduce_op { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX /* NaN if any is */, REDUCE_SUM_SQUARES, REDUCE_OPS };

/* in: float32, any strides but a contiguous last dimension; axes: bit i set reduces dimension i. out: dense, the kept
 * dimensions in order (ones kept for reduced dimensions or not: the same bytes). A bounded dimension 0 may be kept or
 * reduced; the mean is over the actual rows, taken from in. Sums of nothing are 0, maxima -inf, means NaN. */
graphi_status reduce_bind(enum reduce_op op, const struct array_desc *in, unsigned axes, const struct array_desc *out,
                          enum isa isa, struct kernel *kernel);

#endif
