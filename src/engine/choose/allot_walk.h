/* SPDX-License-Identifier: Apache-2.0 */
/* A part of the search for widths and order: random changes of the best so far. */
#ifndef ENGINE_ALLOT_WALK_H
#define ENGINE_ALLOT_WALK_H

#include "engine/choose/allot_search.h"

/* Until `rest` of the budget is left. */
void search_walk(struct search *search, int64_t rest);

#endif
