/* SPDX-License-Identifier: Apache-2.0 */
/* Machines: the one at hand, or a description read from JSON for the simulator. */
#ifndef GRAPHI_MACHINE_H
#define GRAPHI_MACHINE_H

#include "graphi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_machine graphi_machine;

/* What a user may ask of a machine; 0 where not measured or not present. Rates in GFLOP/s and GB/s, sizes in bytes. */
typedef struct graphi_machine_info {
    char name[128], cpu[128], isa[16];
    int cores, siblings, tiles, numa_nodes;
    double quota;                         /* cores; 0: none */
    int64_t l1_bytes, l2_bytes, l3_bytes; /* of a core, of a tile, of all together */
    double roof_gflops, roof_bf16_gflops; /* all cores together */
    double bandwidth_gbs;                 /* all cores, memory read */
    double wake_ns, barrier_ns;
    /* Share of the cores that other processes used while this was measured; 0: at most a tenth, or not known. */
    double others;
    bool captured; /* the machine at hand; otherwise whatever runs on it is simulated */
    uint64_t hash;
} graphi_machine_info;

/* Captures the machine at hand: hwloc topology limited by the affinity mask and the cgroup quota. `cores` > 0 limits
 * further. Rates are zero until graphi_machine_measure. *out is the caller's (graphi_machine_destroy). Errors,
 * *out untouched: INVALID (cores beyond what is usable, message names both), UNSUPPORTED where the system tells neither
 * topology nor affinity, MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_machine_create(int cores, graphi_machine **out);

/* Reads a description of at most 4,096 cores from JSON (docs/simulator.md). `cores` > 0 leaves its first cores with
 * their tiles and siblings: the roof shrinks in proportion, the memory bandwidth stays; 0: all. *out is the caller's
 * (graphi_machine_destroy). Errors, *out untouched: INVALID naming the key, or cores below 0 or beyond its own, naming
 * the machine; IO; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_machine_load(const char *path, int cores, graphi_machine **out);

/* Writes the description as JSON; atomic. Errors: IO; INVALID, no path; MEMORY. Any thread, but not during
 * graphi_machine_measure. */
GRAPHI_API graphi_status graphi_machine_save(const graphi_machine *machine, const char *path);

/* Measures roof, bandwidth and synchronization costs; takes about `seconds`, and memory of twice the level-3 cache, but
 * at most half of what control groups and RLIMIT_AS leave: bandwidth_gbs is 0 then. The calling thread joins in.
 * Not while runs are executing. Errors, the machine unchanged: UNSUPPORTED on a described machine, or where a thread
 * cannot be had; INVALID where the calling thread has a part in an execution, which would wait for itself; MEMORY. */
GRAPHI_API graphi_status graphi_machine_measure(graphi_machine *machine, double seconds);

/* A copy of what is known of the machine. Any thread, but not during graphi_machine_measure. */
GRAPHI_API void graphi_machine_get_info(const graphi_machine *machine, graphi_machine_info *info);

/* Printable topology as text (what `graphi info` shows), the caller's (graphi_free). Error, *text untouched: MEMORY.
 * Any thread, but not during graphi_machine_measure. */
GRAPHI_API graphi_status graphi_machine_print(const graphi_machine *machine, char **text);

/* After the plans and runs that were made for it. NULL is accepted. */
GRAPHI_API void graphi_machine_destroy(graphi_machine *machine);

/* Frees text or data that a graphi function gave to the caller. NULL is accepted. */
GRAPHI_API void graphi_free(void *pointer);

#ifdef __cplusplus
}
#endif
#endif
