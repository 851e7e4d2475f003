/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of a compiled graph by name. */
#ifndef ENGINE_PORTS_H
#define ENGINE_PORTS_H

#include "engine/compile/plan.h"

/* Those of the graph, and its parameters. MEMORY. */
graphi_status ports_find(struct compiled *compiled);

/* Index into inputs or outputs; -1: there is none of it. */
int32_t plan_input(const struct compiled *compiled, const char *name);
int32_t plan_output(const struct compiled *compiled, const char *name);

#endif
