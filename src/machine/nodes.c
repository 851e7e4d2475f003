/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes of a topology: those whose cores the machine has, in the order of its cores, then what is beside them
 * (high-bandwidth memory) and what has no cores. Usual size: 1 to 16 nodes; runs once per machine. */
#include "machine/nodes.h"

#include "base/memory.h"
#include "base/status.h"

#include <hwloc.h>
#include <string.h>
#include <strings.h>

/* As the system, or who recorded the topology, calls it. */
static bool is_fast(hwloc_obj_t node)
{
    return node->subtype && (strcasecmp(node->subtype, "MCDRAM") == 0 || strcasecmp(node->subtype, "HBM") == 0);
}

int nodes_local(hwloc_topology_t topology, hwloc_const_nodeset_t local)
{
    int first = -1;
    for (hwloc_obj_t node = NULL; local && (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
        if (!hwloc_bitmap_isset(local, node->os_index))
            continue;
        if (!is_fast(node))
            return (int)node->os_index;
        first = first < 0 ? (int)node->os_index : first;
    }
    return first < 0 ? 0 : first;
}

static struct machine_node describe(hwloc_obj_t node)
{
    return (struct machine_node){.os_index = (int)node->os_index,
                                 .near = -1,
                                 .bytes = node->attr ? (int64_t)node->attr->numanode.local_memory : 0,
                                 .high_bandwidth = is_fast(node)};
}

/* The node of the first of the machine's cores among those that this one is local to. */
static int near_cores(const graphi_machine *machine, hwloc_obj_t node)
{
    for (int i = 0; node->cpuset && i < machine->cores; i++)
        if (hwloc_bitmap_isset(node->cpuset, (unsigned)machine->core[i].os_index))
            return machine->core[i].numa;
    return -1;
}

graphi_status nodes_fill(hwloc_topology_t topology, const int *system, graphi_machine *machine)
{
    const int found = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    const size_t room = (size_t)(found > 0 ? found : 0) + (size_t)machine->numa_nodes;
    struct machine_node *node = mem_zalloc_array(room + 1, sizeof *node);
    if (!node)
        return fail_memory("machine", room * sizeof *node);
    int count = machine->numa_nodes;
    for (int i = 0; i < count; i++)
        node[i] = (struct machine_node){.os_index = system[i], .near = i};
    for (int i = 0; i < machine->cores; i++)
        node[machine->core[i].numa].cores++;
    for (hwloc_obj_t each = NULL; (each = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, each));) {
        struct machine_node about = describe(each);
        int at = 0;
        while (at < machine->numa_nodes && node[at].os_index != about.os_index)
            at++;
        if (at == machine->numa_nodes) {
            about.near = near_cores(machine, each);
            node[count++] = about;
        } else {
            node[at].bytes = about.bytes;
            node[at].high_bandwidth = about.high_bandwidth;
        }
    }
    machine->node = node;
    machine->memory_nodes = count;
    machine->system_nodes = found;
    return GRAPHI_OK;
}
