/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of compiling a graph, shared by compile.c and bind.c. */
#ifndef ENGINE_COMPILE_H
#define ENGINE_COMPILE_H

#include "engine/plan.h"

/* Most inputs or outputs a node has; at least 1. */
size_t graph_widest(const graphi_graph *graph);

/* Places and binds every node that has a role; one entry a node, zeroed for those that vanish. */
graphi_status bind_nodes(struct layout *layout, struct bound **out);
void bound_free(struct bound *bound, size_t nodes);

/* Takes the forms prepared outside of tasks out of `bound`, and makes those of constants. */
graphi_status bind_prepared(struct layout *layout, struct bound *bound);

/* Appends the arguments of a bound node. */
graphi_status bind_arguments(struct compiled *compiled, struct bound *bound);

#endif
