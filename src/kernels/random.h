/* SPDX-License-Identifier: Apache-2.0 */
/* Random arrays and dropout. Element e of sample s is drawn from the counter (run's seed, node's key, step, s * sample
 * size + e), s counted over the whole batch of all solvers: so the numbers depend neither on threads nor on how the
 * batch is split. A sample has `sample_rows` of dimension 0. */
#ifndef KERNELS_RANDOM_H
#define KERNELS_RANDOM_H

#include "kernels/kernel.h"

/* Inputs: x. Outputs: y = x mask, mask: 1 / keep with probability keep, else 0. Dense float32 of one shape; y may be x.
 * 0 < keep <= 1. */
graphi_status dropout_bind(double keep, uint64_t key, int64_t sample_rows, const struct array_desc *x,
                           const struct array_desc *y, const struct array_desc *mask, enum isa isa,
                           struct kernel *kernel);

enum random_kind { RANDOM_UNIFORM /* a <= y < b */, RANDOM_NORMAL /* mean a, standard deviation b */ };

/* No inputs. Output: dense float32. */
graphi_status random_fill_bind(enum random_kind kind, double a, double b, uint64_t key, int64_t sample_rows,
                               const struct array_desc *y, enum isa isa, struct kernel *kernel);

#endif
