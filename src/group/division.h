/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a step is whose. */
#ifndef GROUP_DIVISION_H
#define GROUP_DIVISION_H

#include "group/solver.h"

/* Leaves or samples of the i-th of all solvers, of all ranks: where they begin, and how many. Some have one more than
 * others. */
void group_share(const struct graphi_group *group, int i, int64_t *first, int64_t *count);

#endif
