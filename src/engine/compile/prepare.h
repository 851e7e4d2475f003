/* SPDX-License-Identifier: Apache-2.0 */
/* What is made outside of the tasks: results that follow from constants and from parameters which no task updates. */
#ifndef ENGINE_PREPARE_H
#define ENGINE_PREPARE_H

#include "engine/compile/bind.h"

/* Takes the kernels of such nodes (ROLE_PREPARED) out of `bound` into compiled.prepared, equal ones once, and makes
 * those of constants. */
graphi_status bind_prepared(struct layout *l, struct bound *bound);

#endif
