/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the vertices of a batch of input graphs are evaluated (cavs.txt 3): rounds by Kahn's algorithm,
 * then slots by (function, round, vertex), so that the rows of a function are contiguous in every array of it, and
 * those of one round within. Lists of children and of parents by slot, in fixed order, so that sums over them are. Pure
 * integer work in proportion to vertices and edges; no recursion, nothing is allocated.
 *
 * All lists lie in one array of int32, whose size follows from the bounds: it is the result of the operation `frontier`
 * and what the loop kernels read. Usual size: 10,000 vertices, 300 KB. */
#ifndef KERNELS_FRONTIER_H
#define KERNELS_FRONTIER_H

#include "base/status.h"
#include "kernels/kernel.h"

enum { FRONTIER_FUNCTIONS = 16, FRONTIER_ROWS = 512 };

struct frontier_bounds {
    int64_t vertices, edges, children; /* children: most of a vertex */
    int64_t rows, functions;           /* rows: most of a block */
};

/* Input graphs as checked arrays tell them. */
struct frontier_graphs {
    int64_t vertices, edges;  /* edges: room of `child`; as many as the last child_end says are there */
    const int32_t *function;  /* NULL: all 0 */
    const int32_t *child_end; /* [vertices]: of v they begin where those of v - 1 end */
    const int32_t *child;
};

struct frontier_head {
    int32_t vertices, edges, rounds, blocks;
    int32_t function_begin[FRONTIER_FUNCTIONS + 1], function_edge[FRONTIER_FUNCTIONS + 1]; /* slots; places in child */
};

struct frontier_lists {
    struct frontier_head *head;
    int32_t *vertex, *slot, *round;             /* by slot; by vertex twice */
    int32_t *child_begin, *child, *edge_parent; /* by slot; by edge: the child's and the parent's slot */
    int32_t *parent_begin, *parent_edge;        /* by slot */
    int32_t *block_slot, *block_rows, *block_function;
    int32_t *scratch; /* [2 vertices + 2] */
};

int64_t frontier_count(const struct frontier_bounds *bounds); /* int32 of all lists */
struct frontier_lists frontier_lists_in(const struct frontier_bounds *bounds, int32_t *data);

/* Most vertices, and most edges, of a block. */
int64_t frontier_block_rows(const struct frontier_bounds *bounds);
int64_t frontier_block_edges(const struct frontier_bounds *bounds);

/* Fills the lists. INVALID, naming the vertex: offsets that fall or go beyond the edges, a child that is none of the
 * vertices, more children than a vertex may have, a function that there is not, a cycle. */
graphi_status frontier_order(const char *where, const struct frontier_bounds *bounds,
                             const struct frontier_graphs *graphs, const struct frontier_lists *lists);

/* The kernel: inputs child_end [vertices], child [edges], function [vertices] where there are several; output
 * [frontier_count]. */
graphi_status frontier_bind(const struct frontier_bounds *bounds, struct kernel *kernel);

/* Which function a slot is of. */
static inline int frontier_function(const struct frontier_head *head, int32_t slot)
{
    int f = 0;
    while (slot >= head->function_begin[f + 1])
        f++;
    return f;
}

#endif
