/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a machine is a copy with fewer cores: leases of several parts never meet, and a plan is chosen for the
 * cores that there are. Called once a solver. */
#include "group/cores.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

/* Cores [first, end), which stand side by side also where they are of one node. */
static void range_of(const graphi_machine *machine, int i, int parts, int *first, int *end)
{
    *first = parts ? machine->cores * i / parts : 0;
    *end = parts ? machine->cores * (i + 1) / parts : 0;
    if (parts)
        return;
    while (*first < machine->cores && machine->core[*first].numa != i)
        ++*first;
    for (*end = *first; *end < machine->cores && machine->core[*end].numa == i;)
        ++*end;
}

/* Nodes and tiles are numbered from 0, in order. */
static void renumber(graphi_machine *part)
{
    int node = -1, tile = -1;
    part->numa_nodes = part->tiles = 0;
    for (int i = 0; i < part->cores; i++) {
        struct machine_core *core = &part->core[i];
        part->numa_nodes += core->numa != node;
        part->tiles += core->tile != tile;
        node = core->numa;
        tile = core->tile;
        core->numa = part->numa_nodes - 1;
        core->tile = part->tiles - 1;
    }
}

/* All but its cores and what follows from their number. */
static void copy_figures(graphi_machine *part, const graphi_machine *machine)
{
    const double share = (double)part->cores / (double)machine->cores;
    memcpy(part->name, machine->name, sizeof part->name);
    memcpy(part->cpu, machine->cpu, sizeof part->cpu);
    memcpy(part->isa, machine->isa, sizeof part->isa);
    part->captured = machine->captured;
    part->quota = machine->quota;
    part->l1_bytes = machine->l1_bytes;
    part->l2_bytes = machine->l2_bytes;
    part->l3_bytes = (int64_t)((double)machine->l3_bytes * share);
    part->core_gflops = machine->core_gflops;
    part->roof_gflops = machine->roof_gflops * share;
    part->roof_bf16_gflops = machine->roof_bf16_gflops * share;
    part->core_bandwidth_gbs = machine->core_bandwidth_gbs;
    part->bandwidth_gbs = machine->bandwidth_gbs * share;
    part->l2_bandwidth_gbs = machine->l2_bandwidth_gbs;
    part->l3_bandwidth_gbs = machine->l3_bandwidth_gbs * share;
    part->wake_ns = machine->wake_ns;
    part->unpark_ns = machine->unpark_ns;
    part->barrier_ns = machine->barrier_ns;
    part->lock_ns = machine->lock_ns;
    part->atomic_ns = machine->atomic_ns;
    part->schedule_ns = machine->schedule_ns;
    part->entry_ns = machine->entry_ns;
    part->others = machine->others;
    part->even_split = machine->even_split;
    part->gemm_saturation = machine->gemm_saturation;
    part->elementwise_saturation = machine->elementwise_saturation;
    part->unpinned_slowdown = machine->unpinned_slowdown;
}

graphi_status cores_part(const graphi_machine *machine, int i, int parts, graphi_machine **out)
{
    int first, end;
    range_of(machine, i, parts, &first, &end);
    graphi_machine *part = mem_zalloc(sizeof *part);
    if (!part)
        return fail_memory("part of a machine", sizeof *part);
    part->cores = end - first;
    part->core = mem_zalloc_array((size_t)part->cores, sizeof *part->core);
    if (!part->core) {
        mem_free(part);
        return fail_memory("part of a machine", (size_t)(end - first) * sizeof *part->core);
    }
    memcpy(part->core, machine->core + first, (size_t)part->cores * sizeof *part->core);
    copy_figures(part, machine);
    renumber(part);
    *out = part;
    return GRAPHI_OK;
}
