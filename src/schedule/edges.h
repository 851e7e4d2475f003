/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of a task graph: collected as pairs, then made into arrays of successors. */
#ifndef SCHEDULE_EDGES_H
#define SCHEDULE_EDGES_H

#include "base/array.h"
#include "graphi/types.h"

struct edge {
    int32_t from, to;
};

typedef ARRAY(struct edge) edge_array;

/* Sorts by (from, to) and drops duplicates and self edges. */
void edges_sort(edge_array *edges);

/* Successors as CSR: those of t are list[begin[t] .. begin[t + 1]). `edges` must be sorted. Two blocks, the caller's.
 */
graphi_status edges_successors(const edge_array *edges, int tasks, int32_t **begin, int32_t **list);

/* Predecessors in the same form, in ascending order, from the successors. Two blocks, the caller's. */
graphi_status edges_predecessors(int tasks, const int32_t *begin, const int32_t *list, int32_t **from_begin,
                                 int32_t **from);

/* A topological order, smallest id first among the ready ones: order[position] = task. INVALID when there is a cycle.
 */
graphi_status edges_order(int tasks, const int32_t *begin, const int32_t *list, int32_t *order);

/* The largest value of the successors of `task`, 0 without any: from the last of a topological order on, plus its own
 * time, that is the longest path to the end. */
static inline int64_t edges_most_after(const int32_t *begin, const int32_t *list, const int64_t *value, int32_t task)
{
    int64_t most = 0;
    for (int32_t e = begin[task]; e < begin[task + 1]; e++)
        most = value[list[e]] > most ? value[list[e]] : most;
    return most;
}

#endif
