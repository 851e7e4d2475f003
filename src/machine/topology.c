/* SPDX-License-Identifier: Apache-2.0 */
/* The machine at hand: hwloc's tree, cut to the affinity mask and the CPU quota, flattened into cores in cache order.
 * The leaves of the tree from left to right are that order: cores under one L2, then one L3, then one NUMA node stand
 * side by side. Runs once per context; 1 to some hundred cores; milliseconds. */
#include "base/hash.h"
#include "base/isa.h"
#include "base/memory.h"
#include "base/status.h"
#include "machine/nodes.h"
#include "machine/private.h"
#include "machine/workers.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A usable hardware thread, as found. */
struct thread {
    int os_index, core, rank; /* rank: 0 the first usable one of its core, 1 its first sibling, ... */
    int tile, numa;           /* by hwloc's numbering, and the system's */
    hwloc_obj_t l3;           /* NULL: none in sight */
};

struct threads {
    struct thread *data;
    int count, cores;
};

static struct thread describe_thread(hwloc_topology_t topology, hwloc_obj_t unit, hwloc_obj_t core, int core_number,
                                     int rank)
{
    struct thread thread = {.os_index = (int)unit->os_index, .core = core_number, .rank = rank};
    thread.tile = -1 - core_number; /* no L2 in sight: a tile of its own */
    for (hwloc_obj_t above = unit; above; above = above->parent)
        if (above->type == HWLOC_OBJ_L2CACHE)
            thread.tile = (int)above->logical_index;
        else if (above->type == HWLOC_OBJ_L3CACHE)
            thread.l3 = above;
    thread.numa = nodes_local(topology, core->nodeset);
    return thread;
}

/* All usable threads, core by core. `mask` NULL: all are. */
static graphi_status find_threads(hwloc_topology_t topology, const struct cpu_mask *mask, struct threads *found)
{
    int units = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    if (units < 1 || units > MACHINE_MAX_THREADS)
        return fail(GRAPHI_INVALID, "machine", "found %d hardware threads, expected 1 to %d", units,
                    MACHINE_MAX_THREADS);
    *found = (struct threads){.data = mem_zalloc_array((size_t)units, sizeof *found->data)};
    if (!found->data)
        return fail_memory("machine", (size_t)units * sizeof *found->data);
    for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(topology, type, core));) {
        int rank = 0;
        hwloc_obj_t unit = NULL;
        while ((unit = hwloc_get_next_obj_inside_cpuset_by_type(topology, core->cpuset, HWLOC_OBJ_PU, unit)))
            if ((!mask || mask_has(mask, (int)unit->os_index)) && found->count < units)
                found->data[found->count++] = describe_thread(topology, unit, core, found->cores, rank++);
        found->cores += rank > 0;
    }
    if (found->cores)
        return GRAPHI_OK;
    mem_free(found->data);
    return fail(GRAPHI_INVALID, "machine", "found no core that this process may use, expected one");
}

/* --- from threads to the machine --- */

enum { NODES = 1024 };

/* Numbers tiles and nodes from 0 in the order of the cores; `node` gets the system's numbers. Threads of one tile stand
 * side by side; those of a node need not. */
static void renumber(graphi_machine *machine, int node[NODES])
{
    int last_tile = 0;
    for (int i = 0; i < machine->cores; i++) {
        struct machine_core *core = &machine->core[i];
        if (i == 0 || core->tile != last_tile)
            machine->tiles++;
        last_tile = core->tile;
        core->tile = machine->tiles - 1;
        int number = 0;
        while (number < machine->numa_nodes && node[number] != core->numa)
            number++;
        if (number == machine->numa_nodes && number < NODES)
            node[machine->numa_nodes++] = core->numa;
        core->numa = number < NODES ? number : NODES - 1;
    }
}

/* Cores first .. first + cores - 1, then their siblings: all second threads, then all third ones, at most `siblings`.
 */
static graphi_status fill(graphi_machine *machine, const struct threads *found, int first, int cores, int siblings,
                          int node[NODES])
{
    machine->core = mem_zalloc_array((size_t)found->count, sizeof *machine->core);
    if (!machine->core)
        return fail_memory("machine", (size_t)found->count * sizeof *machine->core);
    bool more = true;
    int count = 0;
    for (int rank = 0; more; rank++) {
        more = false;
        for (int i = 0; i < found->count; i++) {
            const struct thread *thread = &found->data[i];
            int index = thread->core - first;
            if (thread->rank != rank || index < 0 || index >= cores || count == cores + siblings)
                continue;
            machine->core[count++] = (struct machine_core){thread->os_index, thread->tile, thread->numa,
                                                           rank ? index : -1};
            more = true;
        }
    }
    machine->cores = cores;
    machine->siblings = count - cores;
    renumber(machine, node);
    for (int i = cores; i < count; i++) {
        machine->core[i].tile = machine->core[machine->core[i].sibling_of].tile;
        machine->core[i].numa = machine->core[machine->core[i].sibling_of].numa;
    }
    return GRAPHI_OK;
}

/* The level-3 caches of cores first .. first + cores - 1, together; cores of one cache stand side by side. */
static int64_t l3_bytes(const struct threads *found, int first, int cores)
{
    int64_t bytes = 0;
    hwloc_obj_t last = NULL;
    for (int i = 0; i < found->count; i++) {
        const struct thread *thread = &found->data[i];
        if (thread->core < first || thread->core >= first + cores || thread->l3 == last)
            continue;
        last = thread->l3;
        bytes += last && last->attr ? (int64_t)last->attr->cache.size : 0;
    }
    return bytes;
}

static void fill_caches(hwloc_topology_t topology, graphi_machine *machine)
{
    static const hwloc_obj_type_t type[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE};
    int64_t *bytes[] = {&machine->l1_bytes, &machine->l2_bytes};
    for (int i = 0; i < 2; i++) {
        hwloc_obj_t cache = hwloc_get_next_obj_by_type(topology, type[i], NULL);
        *bytes[i] = cache && cache->attr ? (int64_t)cache->attr->cache.size : 0;
    }
    hwloc_obj_t package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, NULL);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    snprintf(machine->cpu, sizeof machine->cpu, "%s", model ? model : "unknown");
}

/* Where a part of the machine starts when a quota allows only `cores` of `all`: containers on one host do not see each
 * other, and must not all take the first cores. The choice is the same for every machine created in one container. */
static int quota_start(int all, int cores)
{
    struct stat space;
    uint64_t key = 0;
    if (stat("/proc/self/ns/cgroup", &space) == 0)
        key = hash_u64(HASH_START, (uint64_t)space.st_ino);
    if (stat("/proc/self/ns/pid", &space) == 0)
        key = hash_u64(key, (uint64_t)space.st_ino);
    return (int)(hash_u64(key, 1) % (uint64_t)(all / cores)) * cores;
}

static graphi_status build(hwloc_topology_t topology, const struct cpu_mask *mask, double quota, int cores,
                           graphi_machine *machine)
{
    struct threads found = {0};
    TRY(find_threads(topology, mask, &found));
    int usable = found.cores, siblings = found.count;
    if (quota > 0 && quota < usable)
        usable = quota < 1 ? 1 : (int)quota;
    if (quota > 0)
        siblings = quota < usable ? 0 : (int)(quota < 1e6 ? quota : 1e6) - usable;
    graphi_status status;
    if (cores < 0 || cores > usable) {
        char limit[48] = "no quota";
        if (quota > 0)
            snprintf(limit, sizeof limit, "quota %g", quota);
        status = fail(GRAPHI_INVALID, "machine",
                      "found %d cores asked for, expected at most %d (%d in the affinity mask, %s)", cores, usable,
                      found.cores, limit);
    } else {
        int first = mask && usable < found.cores ? quota_start(found.cores, usable) : 0;
        machine->quota = quota;
        int node[NODES];
        status = fill(machine, &found, first, cores ? cores : usable, siblings, node);
        if (!status)
            status = nodes_fill(topology, node, machine);
        fill_caches(topology, machine);
        machine->l3_bytes = l3_bytes(&found, first, cores ? cores : usable);
    }
    mem_free(found.data);
    return status;
}

/* --- entry points --- */

static graphi_status create(hwloc_topology_t topology, const struct cpu_mask *mask, double quota, int cores,
                            graphi_machine **out)
{
    graphi_machine *machine = mem_zalloc(sizeof *machine);
    if (!machine)
        return fail_memory("machine", sizeof *machine);
    machine->unpinned_slowdown = 1;
    graphi_status status = build(topology, mask, quota, cores, machine);
    if (status != GRAPHI_OK)
        graphi_machine_destroy(machine);
    else
        *out = machine;
    return status;
}

/* Of what the topology has been told to load; nothing is there to be pinned. */
static graphi_status describe_loaded(hwloc_topology_t topology, const char *name, double quota, int cores,
                                     graphi_machine **out)
{
    graphi_machine *machine = NULL;
    graphi_status status = create(topology, NULL, quota, cores, &machine);
    if (status != GRAPHI_OK)
        return status;
    for (int i = 0; i < machine->cores + machine->siblings; i++)
        machine->core[i].os_index = -1;
    snprintf(machine->name, sizeof machine->name, "%s", name);
    snprintf(machine->isa, sizeof machine->isa, "plain");
    *out = machine;
    return GRAPHI_OK;
}

graphi_status machine_from_synthetic(const char *description, double quota, int cores, graphi_machine **out)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return fail_memory("machine", 1);
    graphi_status status =
        hwloc_topology_set_synthetic(topology, description) != 0 || hwloc_topology_load(topology) != 0
            ? fail(GRAPHI_INVALID, "machine", "found \"%s\", expected a synthetic hwloc description", description)
            : describe_loaded(topology, description, quota, cores, out);
    hwloc_topology_destroy(topology);
    return status;
}

graphi_status machine_from_xml(const char *xml, graphi_machine **out)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return fail_memory("machine", 1);
    graphi_status status =
        hwloc_topology_set_xmlbuffer(topology, xml, (int)strlen(xml) + 1) != 0 || hwloc_topology_load(topology) != 0
            ? fail(GRAPHI_INVALID, "machine", "found no topology, expected one that hwloc has recorded as XML")
            : describe_loaded(topology, "recorded", 0, 0, out);
    hwloc_topology_destroy(topology);
    return status;
}

bool usable_mask(struct cpu_mask *mask)
{
    *mask = (struct cpu_mask){{0}};
    return lease_saved_mask(mask) || sched_getaffinity(0, sizeof *mask, mask_set(mask)) == 0;
}

graphi_status graphi_machine_create(int cores, graphi_machine **out)
{
    GIVEN(out);
    struct cpu_mask mask;
    if (!usable_mask(&mask))
        return fail(GRAPHI_UNSUPPORTED, "machine", "found no affinity mask, expected sched_getaffinity to work");
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return fail_memory("machine", 1);
    graphi_machine *machine = NULL;
    graphi_status status;
    if (hwloc_topology_load(topology) != 0)
        status = fail(GRAPHI_UNSUPPORTED, "machine", "found no topology, expected hwloc to read it");
    else
        status = create(topology, &mask, machine_quota("/proc/self/cgroup", "/sys/fs/cgroup"), cores, &machine);
    hwloc_topology_destroy(topology);
    if (status != GRAPHI_OK)
        return status;
    machine->captured = true;
    if (gethostname(machine->name, sizeof machine->name - 1) != 0)
        snprintf(machine->name, sizeof machine->name, "this machine");
    snprintf(machine->isa, sizeof machine->isa, "%s", isa_name(isa_detect()));
    *out = machine;
    return GRAPHI_OK;
}
