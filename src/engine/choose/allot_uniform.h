/* SPDX-License-Identifier: Apache-2.0 */
/* A part of the search for widths and order: what uniform settings do. */
#ifndef ENGINE_ALLOT_UNIFORM_H
#define ENGINE_ALLOT_UNIFORM_H

#include "engine/choose/allot_search.h"

/* All teams as wide, for every split of the cores. */
void search_uniform(struct search *search);
/* The best of them is not slower than `ns` by more than predictions are wrong; it is `now` then. */
bool search_prefers_uniform(struct search *search, double ns);

#endif
