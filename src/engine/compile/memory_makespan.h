/* SPDX-License-Identifier: Apache-2.0 */
/* What placing costs in time. */
#ifndef ENGINE_MEMORY_MAKESPAN_H
#define ENGINE_MEMORY_MAKESPAN_H

#include "engine/compile/memory_problem.h"
#include "schedule/edges.h"

/* What the tasks take on problem.cores cores, each on one, the one with the longest way to the end first: ns. *path:
 * the longest way of all; NULL: not asked for. */
graphi_status memory_makespan(const struct memory_problem *problem, const edge_array *added, int64_t *ns,
                              int64_t *path);

#endif
