/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a machine as a machine of its own: some of its cores, numbered anew, with what belongs to them. What all
 * cores have together (rates, level-3 cache, quota) is shared out by their number. Made once a solver or lane. */
#include "graphi/place.h"
#include "machine/machine.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

bool graphi_machine_node_at(const graphi_machine *machine, int i, graphi_memory_node *node)
{
    if (!machine || !node || i < 0 || i >= (machine->node ? machine->memory_nodes : machine->numa_nodes))
        return false;
    if (machine->node) {
        const struct machine_node *found = &machine->node[i];
        *node = (graphi_memory_node){found->os_index, found->cores, found->near, found->bytes, found->high_bandwidth};
        return true;
    }
    *node = (graphi_memory_node){.system = i, .near = i}; /* a description names its nodes alone */
    for (int k = 0; k < machine->cores; k++)
        node->cores += machine->core[k].numa == i;
    return true;
}

/* Which cores: [first, first + count), or those of a node. */
struct share {
    int first, count, node; /* node: -1, any */
    bool shared;
};

static bool has(const graphi_machine *machine, const struct share *share, int core)
{
    return share->node >= 0 ? machine->core[core].numa == share->node
                            : core >= share->first && core < share->first + share->count;
}

static graphi_status find_share(const graphi_machine *machine, int i, int parts, bool oversubscribe,
                                struct share *share)
{
    const int cores = machine->cores, all = parts ? parts : machine->numa_nodes;
    if (parts > cores && !oversubscribe)
        return fail(GRAPHI_INVALID, "machine part",
                    "found %d parts of %d core%s, expected no more than one a core, or to be asked to oversubscribe",
                    parts, cores, cores == 1 ? "" : "s");
    if (parts < 0 || i < 0 || i >= all)
        return fail(GRAPHI_INVALID, "machine part", "found part %d of %d, expected 0 to %d", i, parts, all - 1);
    if (parts > cores) {
        *share = (struct share){i % cores, 1, -1, true};
        return GRAPHI_OK;
    }
    if (parts) {
        const int first = (int)((int64_t)cores * i / parts), end = (int)((int64_t)cores * (i + 1) / parts);
        *share = (struct share){first, end - first, -1, machine->shared};
        return GRAPHI_OK;
    }
    *share = (struct share){0, 0, i, machine->shared};
    for (int core = 0; core < cores; core++)
        share->count += machine->core[core].numa == i;
    return GRAPHI_OK;
}

/* Its cores, then their siblings; *node_of: what each node of the machine becomes, -1: none of the part's. */
static void copy_cores(const graphi_machine *machine, const struct share *share, graphi_machine *part, int *node_of)
{
    int count = 0, last_tile = -1;
    part->tiles = part->numa_nodes = 0;
    for (int i = 0; i < machine->numa_nodes; i++)
        node_of[i] = -1;
    for (int i = 0; i < machine->cores; i++) {
        if (!has(machine, share, i))
            continue;
        struct machine_core core = machine->core[i];
        part->tiles += core.tile != last_tile;
        last_tile = core.tile;
        if (node_of[core.numa] < 0)
            node_of[core.numa] = part->numa_nodes++;
        core.tile = part->tiles - 1;
        core.numa = node_of[core.numa];
        part->core[count++] = core;
    }
    part->cores = count;
    for (int i = machine->cores, own; i < machine->cores + machine->siblings; i++)
        if (has(machine, share, machine->core[i].sibling_of)) {
            own = 0;
            for (int k = 0; k < machine->core[i].sibling_of; k++)
                own += has(machine, share, k);
            part->core[count++] =
                (struct machine_core){machine->core[i].os_index, part->core[own].tile, part->core[own].numa, own};
        }
    part->siblings = count - part->cores;
}

/* Nodes of its cores, in their new order, then what is near them. */
static void copy_nodes(const graphi_machine *machine, graphi_machine *part, const int *node_of)
{
    int count = part->numa_nodes;
    for (int i = 0; i < machine->memory_nodes; i++) {
        struct machine_node node = machine->node[i];
        const int near = node.near < 0 ? -1 : node_of[node.near];
        if (near < 0)
            continue;
        node.near = near;
        part->node[i < machine->numa_nodes ? near : count++] = node;
    }
    part->memory_nodes = count;
    for (int i = 0; i < count; i++)
        part->node[i].cores = 0;
    for (int i = 0; i < part->cores; i++)
        part->node[part->core[i].numa].cores++;
}

static void share_rates(const graphi_machine *machine, graphi_machine *part)
{
    const double share = (double)part->cores / machine->cores;
    part->quota *= share;
    part->roof_gflops *= share;
    part->roof_bf16_gflops *= share;
    part->bandwidth_gbs *= share;
    part->l3_bandwidth_gbs *= share;
    part->l3_bytes = (int64_t)((double)machine->l3_bytes * share);
    if (part->bandwidth_gbs < part->core_bandwidth_gbs) /* a core of its own reads no slower */
        part->core_bandwidth_gbs = part->bandwidth_gbs;
}

static graphi_status fill(const graphi_machine *machine, const struct share *share, graphi_machine *part)
{
    const size_t all = (size_t)(machine->cores + machine->siblings);
    int *node_of = mem_zalloc_array((size_t)machine->numa_nodes + 1, sizeof *node_of);
    part->core = mem_zalloc_array(all, sizeof *part->core);
    part->node = machine->node ? mem_zalloc_array((size_t)machine->memory_nodes + 1, sizeof *part->node) : NULL;
    graphi_status status = GRAPHI_OK;
    if (!node_of || !part->core || (machine->node && !part->node)) {
        status = fail_memory("machine part", all * sizeof *part->core);
    } else {
        copy_cores(machine, share, part, node_of);
        if (part->node)
            copy_nodes(machine, part, node_of);
        share_rates(machine, part);
        part->shared = share->shared;
    }
    mem_free(node_of);
    return status;
}

graphi_status graphi_machine_part(const graphi_machine *machine, int i, int parts, const graphi_part_options *options,
                                  graphi_machine **out)
{
    GIVEN(machine);
    GIVEN(out);
    struct share share = {.node = -1};
    TRY(find_share(machine, i, parts, options && options->oversubscribe, &share));
    graphi_machine *part = mem_zalloc(sizeof *part);
    if (!part)
        return fail_memory("machine part", sizeof *part);
    *part = *machine;
    part->core = NULL;
    part->node = NULL;
    snprintf(part->name, sizeof part->name, "%.90s, %s %d of %d", machine->name, parts ? "part" : "node", i,
             parts ? parts : machine->numa_nodes);
    graphi_status status = fill(machine, &share, part);
    if (status)
        graphi_machine_destroy(part);
    else
        *out = part;
    return status;
}
