/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of a machine once it exists: its figures, its hash, a text for people. */
#include "machine/machine.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <stdio.h>

uint64_t machine_hash(const graphi_machine *machine)
{
    uint64_t hash = hash_string(hash_string(HASH_START, machine->cpu), machine->isa);
    const int64_t sizes[] = {machine->captured, machine->cores, machine->siblings, machine->l1_bytes, machine->l2_bytes,
                             machine->l3_bytes};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        hash = hash_u64(hash, (uint64_t)sizes[i]);
    for (int i = 0; i < machine->cores + machine->siblings; i++) {
        hash = hash_u64(hash, (uint64_t)machine->core[i].tile);
        hash = hash_u64(hash, (uint64_t)machine->core[i].numa);
        hash = hash_u64(hash, (uint64_t)machine->core[i].sibling_of);
    }
    if (machine->captured)
        return hash;
    const double rates[] = {machine->core_gflops,       machine->roof_gflops,
                            machine->roof_bf16_gflops,  machine->core_bandwidth_gbs,
                            machine->bandwidth_gbs,     machine->l2_bandwidth_gbs,
                            machine->l3_bandwidth_gbs,  machine->wake_ns,
                            machine->barrier_ns,        machine->lock_ns,
                            machine->atomic_ns,         machine->schedule_ns,
                            machine->gemm_saturation,   machine->elementwise_saturation,
                            machine->unpinned_slowdown, machine->entry_ns,
                            machine->even_split};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        hash = hash_double(hash, rates[i]);
    return hash;
}

void graphi_machine_get_info(const graphi_machine *machine, graphi_machine_info *info)
{
    if (!info)
        return;
    *info = (graphi_machine_info){0};
    if (!machine)
        return;
    *info = (graphi_machine_info){
        .cores = machine->cores,
        .siblings = machine->siblings,
        .tiles = machine->tiles,
        .numa_nodes = machine->numa_nodes,
        .quota = machine->quota,
        .l1_bytes = machine->l1_bytes,
        .l2_bytes = machine->l2_bytes,
        .l3_bytes = machine->l3_bytes,
        .roof_gflops = machine->roof_gflops,
        .roof_bf16_gflops = machine->roof_bf16_gflops,
        .bandwidth_gbs = machine->bandwidth_gbs,
        .wake_ns = machine->wake_ns,
        .barrier_ns = machine->barrier_ns,
        .others = machine->others,
        .captured = machine->captured,
        .hash = machine_hash(machine),
    };
    snprintf(info->name, sizeof info->name, "%s", machine->name);
    snprintf(info->cpu, sizeof info->cpu, "%s", machine->cpu);
    snprintf(info->isa, sizeof info->isa, "%s", machine->isa);
}

/* --- text --- */

static void print_bytes(struct text *text, const char *name, int64_t bytes)
{
    if (bytes > 0)
        text_add(text, "  %s %.4g %s", name, bytes >= 1 << 20 ? (double)bytes / (1 << 20) : (double)bytes / 1024,
                 bytes >= 1 << 20 ? "MiB" : "KiB");
}

/* "node 0: 0-1 2-3 | 4": tiles of cores, by node. Described machines number their cores, the machine at hand names the
 * hardware threads. */
static void print_cores(struct text *text, const graphi_machine *machine)
{
    for (int i = 0; i < machine->cores;) {
        int node = machine->core[i].numa, tile = machine->core[i].tile, last = i;
        while (last + 1 < machine->cores && machine->core[last + 1].tile == tile &&
               machine->core[last + 1].numa == node)
            last++;
        if (i == 0 || machine->core[i - 1].numa != node)
            text_add(text, "%s  node %d: ", i ? "\n" : "", node);
        text_add(text, "[");
        for (int j = i; j <= last; j++)
            text_add(text, "%s%d", j > i ? " " : "", machine->captured ? machine->core[j].os_index : j);
        text_add(text, "]");
        i = last + 1;
    }
    text_add(text, "\n");
}

/* What the system calls them, and memory beside that of the cores. */
static void print_nodes(struct text *text, const graphi_machine *machine)
{
    for (int i = 0; machine->node && machine->memory_nodes > 1 && i < machine->memory_nodes; i++) {
        const struct machine_node *node = &machine->node[i];
        text_add(text, "%s%s %d: %d core%s", i ? ", " : "memory   node", i ? "node" : "", node->os_index, node->cores,
                 node->cores == 1 ? "" : "s");
        if (node->bytes > 0)
            text_add(text, ", %.4g GiB", (double)node->bytes / (1 << 30));
        if (node->high_bandwidth)
            text_add(text, ", high bandwidth");
        if (!node->cores && node->near >= 0)
            text_add(text, " near node %d", machine->node[node->near].os_index);
    }
    if (machine->node && machine->memory_nodes > 1)
        text_add(text, "\n");
}

static void print_rate(struct text *text, const char *name, double value, const char *unit)
{
    if (value > 0)
        text_add(text, "  %-26s %.4g %s\n", name, value, unit);
}

static void print_rates(struct text *text, const graphi_machine *machine)
{
    bool known = machine->roof_gflops > 0 || machine->bandwidth_gbs > 0;
    text_add(text, "rates%s\n", known ? machine->captured ? " (measured)" : " (described)" : ": not measured");
    print_rate(text, "roof, float32", machine->roof_gflops, "GFLOP/s");
    print_rate(text, "roof, bfloat16", machine->roof_bf16_gflops, "GFLOP/s");
    print_rate(text, "one core, float32", machine->core_gflops, "GFLOP/s");
    print_rate(text, "memory read, all cores", machine->bandwidth_gbs, "GB/s");
    if (machine->captured && machine->roof_gflops > 0 && machine->bandwidth_gbs <= 0)
        text_add(text, "  %-26s not measured: limits of memory leave no buffers of twice the L3\n", "memory read");
    print_rate(text, "memory read, one core", machine->core_bandwidth_gbs, "GB/s");
    print_rate(text, "L3 read, all cores", machine->l3_bandwidth_gbs, "GB/s");
    print_rate(text, "L2 read, one core", machine->l2_bandwidth_gbs, "GB/s");
    print_rate(text, "message to a worker", machine->wake_ns, "ns");
    print_rate(text, "barrier, per doubling", machine->barrier_ns, "ns");
    print_rate(text, "lock", machine->lock_ns, "ns");
    print_rate(text, "atomic addition", machine->atomic_ns, "ns");
    print_rate(text, "scheduling step", machine->schedule_ns, "ns");
    print_rate(text, "entry of the naive queue", machine->entry_ns, "ns");
}

graphi_status graphi_machine_print(const graphi_machine *machine, char **out)
{
    GIVEN(machine);
    GIVEN(out);
    struct text text = {0};
    text_add(&text, "machine  %s%s\ncpu      %s, instruction set %s\n", machine->name,
             machine->captured ? "" : " (described: what runs on it is simulated)", machine->cpu, machine->isa);
    text_add(&text, "cores    %d in %d tiles, %d NUMA node%s, %d sibling thread%s\n", machine->cores, machine->tiles,
             machine->numa_nodes, machine->numa_nodes == 1 ? "" : "s", machine->siblings,
             machine->siblings == 1 ? "" : "s");
    if (machine->quota > 0)
        text_add(&text, "quota    %.4g cores\n", machine->quota);
    else
        text_add(&text, "quota    none\n");
    text_add(&text, "caches ");
    print_bytes(&text, "L1", machine->l1_bytes);
    print_bytes(&text, "L2", machine->l2_bytes);
    print_bytes(&text, "L3", machine->l3_bytes);
    text_add(&text, "\nlayout   (cores that share an L2 in brackets)\n");
    print_cores(&text, machine);
    print_nodes(&text, machine);
    print_rates(&text, machine);
    if (text.broken) {
        text_free(&text);
        return fail_memory("machine text", text.capacity);
    }
    *out = text.data;
    return GRAPHI_OK;
}

void graphi_machine_destroy(graphi_machine *machine)
{
    if (machine) {
        mem_free(machine->core);
        mem_free(machine->node);
    }
    mem_free(machine);
}

void graphi_free(void *pointer) { mem_free(pointer); }
