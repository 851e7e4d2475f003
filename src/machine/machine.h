/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as the scheduler sees it: cores, who shares which cache, NUMA nodes, rates and synchronization costs.
 * Captured from the machine at hand (hwloc, affinity mask, cgroup quota) or read from JSON (the papers' machines,
 * synthetic ones). */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include "graphi/machine.h"

#define MACHINE_MAX_CORES 4096    /* of a description: what a schedule has room for (schedule/bitmap.h) */
#define MACHINE_MAX_THREADS 65536 /* more than any machine at hand has */

struct machine_core {
    int os_index;   /* hardware thread to pin to; -1 on a described machine */
    int tile;       /* cores with equal tile share an L2 */
    int numa;
    int sibling_of; /* index of the core whose hardware-thread sibling this is, or -1 */
};

struct machine_node {
    int os_index; /* the system's number */
    int near;     /* the node with cores that it is local to; -1: none */
    int cores;
    int64_t bytes;
    bool high_bandwidth;
};

struct graphi_machine {
    char name[128];
    char cpu[128];
    char isa[16];            /* widest instruction set with kernels: plain, avx2, avx512, bf16 */
    int cores;               /* usable: max(1, min(mask, floor(quota))) */
    struct machine_core *core; /* ordered by cache distance: neighbours share caches */
    int siblings;            /* further entries of core[] after `cores`: hardware-thread siblings */
    int numa_nodes, tiles;
    struct machine_node *node; /* those of the cores, by core[].numa, then others; NULL: not known */
    int memory_nodes;        /* entries of node[] */
    int system_nodes;        /* of the whole system; 0: not known */
    bool shared;             /* a part beside others on the same cores: nothing is leased or pinned */
    double quota;            /* cores; 0: none */
    bool captured;           /* the machine at hand */
    int64_t l1_bytes, l2_bytes, l3_bytes; /* of a core, of a tile, of all */
    double core_gflops;      /* peak of one core alone, float32; 0: not measured */
    double roof_gflops, roof_bf16_gflops; /* all cores at once, float32 and bfloat16 dot products; 0: not measured */
    double core_bandwidth_gbs, bandwidth_gbs; /* one core, all cores */
    double l2_bandwidth_gbs;                  /* one core from its L2 */
    double l3_bandwidth_gbs;                  /* all cores from L3 */
    double wake_ns;          /* message to a spinning worker, one way */
    double unpark_ns;        /* message to a parked one, until it works; 0: not measured. Of this process alone: it is
                                neither described nor hashed */
    double barrier_ns;       /* team barrier, per doubling of the width */
    double lock_ns, atomic_ns; /* uncontended; contended atomics cost atomic_ns per waiting core */
    double schedule_ns;      /* one operation through the scheduling step */
    double entry_ns;         /* what an executor of the naive queue spends on an operation outside of the lock */
    double others; /* share of the cores that other processes had while it was measured; 0: a tenth or less, unknown */
    double even_split; /* 1: operations split evenly over any width (OpenMP loops); 0: into this engine's shares */
    double gemm_saturation, elementwise_saturation; /* widths at which gains end; 0: none (graphi.txt Fig. 2) */
    double unpinned_slowdown; /* >= 1 (graphi.txt Fig. 3); 0: none */
};

/* The hash of a machine: what a stored plan depends on. Of a captured machine that is its structure (measured rates
 * vary from day to day), of a described one its rates too. */
uint64_t machine_hash(const graphi_machine *machine);

/* Cores [first, end) of the tile that begins there. */
int machine_tile_end(const graphi_machine *machine, int first);

/* `count` cores, those of the list (NULL: the machine's first ones), in the order in which `groups` of `width` threads
 * sit down: each group begins a tile where there are tiles enough, and what is left of tiles comes behind all groups;
 * else as they are. order: room for `count` indices into the list; the first is 0. */
void machine_seats(const graphi_machine *machine, const int *list, int count, int groups, int width, int *order);

/* The same of a topology that hwloc has recorded as XML. */
graphi_status machine_from_xml(const char *xml, graphi_machine **out);

/* A machine from an hwloc synthetic description ("pack:2 numa:3 l2:4 core:5 pu:2"): not captured, nothing is pinned on
 * it. `quota` 0: none; `cores` 0: all. Errors: INVALID (hwloc refuses the description, cores beyond what is usable),
 * MEMORY. */
graphi_status machine_from_synthetic(const char *description, double quota, int cores, graphi_machine **out);

/* The CPU quota of this process in cores, 0: none: the tightest of v2 cpu.max and v1 cpu.cfs_quota_us from the group
 * named in `self` (/proc/self/cgroup) up to the root `mount` (/sys/fs/cgroup). Files that are missing or make no sense
 * set no limit. */
double machine_quota(const char *self, const char *mount);

/* Bytes of memory that this process may still take, 0: no limit: of its control groups (v2 memory.max, v1
 * memory.limit_in_bytes) and of addresses (RLIMIT_AS). At least 1 where there is a limit. */
double machine_room(const char *self, const char *mount);

#endif
