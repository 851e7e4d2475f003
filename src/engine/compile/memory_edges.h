/* SPDX-License-Identifier: Apache-2.0 */
/* Edges that order tasks for the sake of memory. */
#ifndef ENGINE_MEMORY_EDGES_H
#define ENGINE_MEMORY_EDGES_H

#include "engine/compile/memory_problem.h"
#include "schedule/edges.h"

/* The graph's edges and the added ones as CSR (edges.h): two blocks, the caller's. */
graphi_status memory_all_edges(const struct memory_problem *problem, const edge_array *added, int32_t **begin,
                               int32_t **list);

/* Drops the added edges that the graph and the other added ones imply; sorts the rest. */
graphi_status memory_reduce_edges(const struct memory_problem *problem, edge_array *added);

#endif
