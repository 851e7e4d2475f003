/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes of hwloc's tree (topology.c). */
#ifndef MACHINE_NODES_H
#define MACHINE_NODES_H

#include "machine/machine.h"

#include <hwloc.h>

/* The system's number of the node that cores of this set have their memory on: ordinary memory before fast one; 0 where
 * none is in sight. */
int nodes_local(hwloc_topology_t topology, hwloc_const_nodeset_t local);

/* Once cores are numbered; system: the numbers that the system gives the nodes of cores. MEMORY. */
graphi_status nodes_fill(hwloc_topology_t topology, const int *system, graphi_machine *machine);

#endif
