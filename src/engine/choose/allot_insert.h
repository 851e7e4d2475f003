/* SPDX-License-Identifier: Apache-2.0 */
/* A part of the search for widths and order: schedules by insertion. */
#ifndef ENGINE_ALLOT_INSERT_H
#define ENGINE_ALLOT_INSERT_H

#include "engine/choose/allot_search.h"

/* Until the budget is spent. */
void search_insert(struct search *search);

#endif
