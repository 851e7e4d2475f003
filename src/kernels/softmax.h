/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over the last dimension, its gradient, and cross-entropy with integer labels.
 *
 * Arrays are float32 seen as rows x classes (array_as_matrix): rows may be strided, a bounded dimension 0 is clipped
 * at the call. Everything is computed relative to the row's maximum, so nothing overflows; a row with NaN, +inf or
 * nothing but -inf gives NaN. The relative error of a probability is below 2e-6 + 2^-24 (maximum - x), the latter from
 * rounding that difference. */
#ifndef KERNELS_SOFTMAX_H
#define KERNELS_SOFTMAX_H

#include "kernels/kernel.h"

/* y = softmax(x), or its logarithm. y may be x. */
graphi_status softmax_bind(bool logarithm, const struct array_desc *x, const struct array_desc *y, enum isa isa,
                           struct kernel *kernel);

/* Inputs: y as softmax_bind made it, dy. Output: dx, which may be either; past the caches as asked for. */
graphi_status softmax_gradient_bind(bool logarithm, const struct array_desc *y, const struct array_desc *dy,
                                    const struct array_desc *dx, graphi_streaming streaming, enum isa isa,
                                    struct kernel *kernel);

/* Inputs: logits [.., classes], int32 labels [..] (dense). Output: one number, the mean over the actual rows of -log
 * softmax at the label; 0 of no rows. Rows are summed in fixed leaves. Labels outside 0 .. classes-1: INVALID naming
 * row and label. */
graphi_status cross_entropy_bind(const struct array_desc *logits, const struct array_desc *labels,
                                 const struct array_desc *loss, enum isa isa, struct kernel *kernel);

/* Inputs: logits, labels, the gradient of the mean loss (one number). Output: the gradient of the logits, which may be
 * the logits. */
graphi_status cross_entropy_gradient_bind(const struct array_desc *logits, const struct array_desc *labels,
                                          const struct array_desc *gradient, const struct array_desc *dx, enum isa isa,
                                          struct kernel *kernel);

#endif
