/* SPDX-License-Identifier: Apache-2.0 */
/* Where arena values lie. Pure logic on small structs: tasks with edges, values with bytes, producers and readers.
 *
 * Two values may share bytes only if the producers and every reader of the first precede every producer of the second
 * in the graph (a value without readers: its producers). Where that alone does not reach the byte target, ordering
 * edges are added that run along the array order, so no cycle can appear: first between tasks far apart in sequential
 * time, which seldom delays anything, then nearer ones. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "schedule/edges.h"

struct memory_value {
    int64_t bytes;
    int32_t begin;     /* its tasks in problem.list: producers first, then readers */
    int32_t producers, readers;
    bool kept;         /* read after the run: nothing may follow it */
};

/* Array order is a topological order: every edge leads to a higher task. */
struct memory_problem {
    int tasks;
    const int32_t *edges_begin; /* tasks + 1 */
    const int32_t *edges;       /* successors */
    const int64_t *ns;          /* duration estimates; NULL: all 1 */
    int values;
    const struct memory_value *value;
    const int32_t *list;
    int64_t target;             /* bytes; 0: 1.15 times the live maximum, more or less by the estimated time on `cores`
                                   (memory_search.c) */
    int cores;                  /* 0: 1 */
    int64_t beside;             /* bytes that an execution needs beside the arena: what is little to them is little */
};

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

/* The graph's edges and the added ones as CSR (edges.h): two blocks, the caller's. */
graphi_status memory_all_edges(const struct memory_problem *problem, const edge_array *added, int32_t **begin,
                               int32_t **list);

/* What the tasks take on problem.cores cores, each on one, the one with the longest way to the end first: ns. *path:
 * the longest way of all; NULL: not asked for. */
graphi_status memory_makespan(const struct memory_problem *problem, const edge_array *added, int64_t *ns,
                              int64_t *path);

/* Drops the added edges that the graph and the other added ones imply; sorts the rest. */
graphi_status memory_reduce_edges(const struct memory_problem *problem, edge_array *added);

#endif
