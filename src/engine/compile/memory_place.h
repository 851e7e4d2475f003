/* SPDX-License-Identifier: Apache-2.0 */
/* Values placed one after the other. */
#ifndef ENGINE_MEMORY_PLACE_H
#define ENGINE_MEMORY_PLACE_H

#include "engine/compile/memory_planner.h"

/* Orders of placing: the largest first, those that take most bytes for most time, or the earliest. */
enum { PLANNER_ORDERS = 3 };
void planner_set_order(struct planner *p, int order);

/* Places all items in p->order. Gives the bytes used. */
int64_t planner_place(struct planner *p, int64_t window);

#endif
