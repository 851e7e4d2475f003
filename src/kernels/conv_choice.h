/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of an algorithm, and what it counts on. */
#ifndef KERNELS_CONV_CHOICE_H
#define KERNELS_CONV_CHOICE_H

#include "kernels/conv_spec.h"

/* The bound that the choice counts on: times the direct kernel's root mean square error, same multiplicands. */
double conv_error_bound(enum conv_direction direction, int64_t window, enum conv_algorithm algorithm, bool pairs);

/* What the choice keeps to: as asked for, or (0) the default, 4 (pairs of bfloat16, which alone have a bound there:
 * 8). */
double conv_error_budget(double asked, graphi_dtype multiplicands);

/* What conv_bind takes for AUTO. */
enum conv_algorithm conv_choose(const struct conv_spec *spec, enum isa isa);
/* Can the algorithm compute it at all? */
bool conv_possible(const struct conv_spec *spec, enum conv_algorithm algorithm);

#endif
