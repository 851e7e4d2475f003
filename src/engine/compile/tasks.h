/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of a graph that is compiled: edges, order, memory; a step of compile.c. */
#ifndef ENGINE_TASKS_H
#define ENGINE_TASKS_H

#include "engine/compile/layout.h"

/* Takes kernels out of `bound`. */
graphi_status plan_tasks(struct compiled *compiled, struct layout *layout, struct bound *bound);

#endif
