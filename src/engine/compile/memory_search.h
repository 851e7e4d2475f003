/* SPDX-License-Identifier: Apache-2.0 */
/* The window and the order of placing that suit a target. */
#ifndef ENGINE_MEMORY_SEARCH_H
#define ENGINE_MEMORY_SEARCH_H

#include "engine/compile/memory_planner.h"

/* Leaves the items placed such that they take at most `target` bytes, or as few as it finds; without a target of the
 * problem's, time in the estimate counts too. *unordered: what the graph's own order alone takes. */
graphi_status planner_search(struct planner *p, int64_t target, int64_t *unordered);

#endif
