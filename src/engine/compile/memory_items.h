/* SPDX-License-Identifier: Apache-2.0 */
/* Which values share bytes, and which of them precedes which. */
#ifndef ENGINE_MEMORY_ITEMS_H
#define ENGINE_MEMORY_ITEMS_H

#include "engine/compile/memory_planner.h"

/* The items are the values of more than `limit` bytes, of very many the largest. planner_free() in any case. */
graphi_status planner_prepare(struct planner *p, int64_t limit);
void planner_free(struct planner *p);

#endif
