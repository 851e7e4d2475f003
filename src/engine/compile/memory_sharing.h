/* SPDX-License-Identifier: Apache-2.0 */
/* The ordering edges that shared bytes need. */
#ifndef ENGINE_MEMORY_SHARING_H
#define ENGINE_MEMORY_SHARING_H

#include "engine/compile/memory_planner.h"
#include "schedule/edges.h"

/* The edges that the placing at hand needs: appended. */
graphi_status planner_edges(const struct planner *p, edge_array *edges);

#endif
