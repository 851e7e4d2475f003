/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest of the forms that tuning tries (rounding.h). */
#ifndef ENGINE_ROUNDING_SEARCH_H
#define ENGINE_ROUNDING_SEARCH_H

#include "base/text.h"
#include "engine/compile/plan.h"
#include "engine/tune/patience.h"
#include "graphi/plan.h"

/* Whether there are forms to try: of other rounding where that is allowed, of recurrences where there are some. */
bool rounding_searched(const struct compiled *compiled);

/* Tries each form of the table on top of the best so far, first on none whatever `plan` has, two at a time, each with a
 * state of its own and its static setting, until the deadline; none if the graph was added to since. *better gets the
 * plan of the best forms, untuned, the caller's; NULL where those are the forms of `plan`. What was tried is told in
 * `why` and while it happens. Errors: as graphi_run_execute, INTERRUPTED. */
graphi_status rounding_search(const graphi_plan *plan, const graphi_state *state, const graphi_setting *setting,
                              const struct patience *patience, void (*progress)(void *context, const char *text),
                              graphi_plan **better, struct text *why);

#endif
