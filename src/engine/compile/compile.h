/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled form of a graph (struct compiled). Counted references: made by one thread, kept and released by any. */
#ifndef ENGINE_COMPILE_H
#define ENGINE_COMPILE_H

#include "engine/compile/plan.h"

/* With these forms of rounding.h. Errors: those of graphi_plan_create. */
graphi_status compiled_create(const graphi_graph *graph, const graphi_machine *machine,
                              const graphi_plan_options *options, uint32_t rounding, struct compiled **out);
struct compiled *compiled_keep(struct compiled *compiled); /* a further reference */
void compiled_release(struct compiled *compiled);          /* accepts NULL */

/* Is the graph what it was? Others of its plans are compiled from it anew; what was added since is in none of them. */
bool compiled_source_unchanged(const struct compiled *compiled);

#endif
