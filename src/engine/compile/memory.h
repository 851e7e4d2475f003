/* SPDX-License-Identifier: Apache-2.0 */
/* Where arena values lie. Pure logic on small structs: tasks with edges, values with bytes, producers and readers.
 *
 * Two values may share bytes only if the producers and every reader of the first precede every producer of the second
 * in the graph (a value without readers: its producers). Where that alone does not reach the byte target, ordering
 * edges are added that run along the array order, so no cycle can appear: first between tasks far apart in sequential
 * time, which seldom delays anything, then nearer ones. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "engine/compile/memory_problem.h"
#include "schedule/edges.h"

struct memory_solution {
    int64_t *offset;            /* one per value, multiples of 64 */
    int64_t bytes;              /* of the arena */
    int64_t live_maximum;       /* most live bytes in array order */
    int64_t sum_bytes;          /* without any sharing */
    int64_t unordered_bytes;    /* what the graph's own order alone reaches */
    edge_array edges;           /* added ordering, sorted */
};

/* MEMORY when out of memory; the solution is then empty. */
graphi_status memory_plan(const struct memory_problem *problem, struct memory_solution *solution);
void memory_solution_free(struct memory_solution *solution);

#endif
