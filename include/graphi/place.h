/* SPDX-License-Identifier: Apache-2.0 */
/* Places: memory nodes of a machine, parts of its cores as machines of their own, and where the memory of a run lies.
 * Memory comes to lie where a thread first writes it; a lease of a part that a thread has entered (graphi/lease.h)
 * binds what the thread makes there. */
#ifndef GRAPHI_PLACE_H
#define GRAPHI_PLACE_H

#include "graphi/machine.h"
#include "graphi/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A memory node. Those with cores come first, in the order of the cores; high-bandwidth memory (Xeon Phi's MCDRAM, HBM)
 * and memory without cores (persistent, or behind a link) after them. */
typedef struct graphi_memory_node {
    int system;          /* the system's number, as numactl has it */
    int cores;           /* of the machine; 0: none */
    int near;            /* the node with cores that it is local to, itself where it has cores; -1: none */
    int64_t bytes;       /* 0: not known */
    bool high_bandwidth;
} graphi_memory_node;

/* Node i of the machine, from 0; false, *node untouched: there is none. Any thread. */
GRAPHI_API bool graphi_machine_node_at(const graphi_machine *machine, int i, graphi_memory_node *node);

typedef struct graphi_part_options {
    /* More parts than cores may be had; those that share a core are neither leased nor pinned, and wait for each other
     * by yielding. For tests of large groups on small machines. */
    bool oversubscribe;
} graphi_part_options;

/* Part i of `parts`: a machine of neighbouring cores, with their tiles, siblings and nodes. Sizes of parts differ by
 * one core at most. parts 0: the nodes that have cores, of which part i is the i-th. Rates and level-3 cache are the
 * cores' share. Leases and plans of different parts have nothing to do with each other. options may be NULL. *out is
 * the caller's (graphi_machine_destroy) and outlives `machine`. Errors, *out untouched: INVALID, more parts than cores
 * (naming both), or no such part; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_machine_part(const graphi_machine *machine, int i, int parts,
                                             const graphi_part_options *options, graphi_machine **out);

/* Whose pages graphi_pages counts. */
typedef enum graphi_pages_of {
    GRAPHI_PAGES_PLAN,       /* packed constants */
    GRAPHI_PAGES_PARAMETERS, /* of the state, as far as the plan has them */
    GRAPHI_PAGES_PACKED,     /* forms of them */
    GRAPHI_PAGES_ARENA,      /* intermediate results */
    GRAPHI_PAGES_INPUTS      /* the run's own */
} graphi_pages_of;

enum { GRAPHI_MOST_NODES = 64 };
typedef struct graphi_page_count {
    int64_t pages;                 /* all, of page_bytes */
    int64_t absent;                /* not in memory: never written, or gone */
    int64_t unknown;               /* nobody could say where */
    int64_t on[GRAPHI_MOST_NODES]; /* by the system's number of the node */
    int64_t page_bytes;
    char note[160]; /* what could not be asked, and why; "" otherwise */
} graphi_page_count;

/* Counts where the pages lie that hold what the run uses: each once, by move_pages, else by /proc/self/numa_maps, which
 * tells of whole mappings alone. Errors, *count untouched: INVALID, no such thing to count; MEMORY. Not while the run
 * executes. */
GRAPHI_API graphi_status graphi_pages(const graphi_run *run, graphi_pages_of of, graphi_page_count *count);

#ifdef __cplusplus
}
#endif
#endif
