/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores a solver has. */
#ifndef GROUP_CORES_H
#define GROUP_CORES_H

#include "machine/machine.h"

/* The i-th of so many parts of the machine's cores, which stand in the order of caches and nodes, as a machine of its
 * own; parts 0: the i-th node's. At least one core each. *out is the caller's (graphi_machine_destroy). MEMORY. */
graphi_status cores_part(const graphi_machine *machine, int i, int parts, graphi_machine **out);

#endif
