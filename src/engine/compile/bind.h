/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the nodes of a graph that is compiled; a step of compile.c. */
#ifndef ENGINE_BIND_H
#define ENGINE_BIND_H

#include "engine/compile/layout.h"

/* Places and binds every node that has a role; one entry a node, zeroed for those that vanish. */
graphi_status bind_nodes(struct layout *layout, struct bound **out);
void bound_free(struct bound *bound, size_t nodes);

/* Appends the arguments of a bound node. */
graphi_status bind_arguments(struct compiled *compiled, struct bound *bound);

#endif
