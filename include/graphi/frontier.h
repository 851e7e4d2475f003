/* SPDX-License-Identifier: Apache-2.0 */
/* Input graphs of dynamic networks (graphi/dynamic.h): what a batch of them is, the checks, and the order in which
 * their vertices are evaluated: in rounds, children first. Input graphs are data: read, ordered and fed, never
 * compiled. */
#ifndef GRAPHI_FRONTIER_H
#define GRAPHI_FRONTIER_H

#include "graphi/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of vertices that a graph pulls: `rows` has one row a vertex, in their order. */
typedef struct graphi_vertex_values {
    const char *input; /* of the graph, its first dimension is graphi_vertex_rows */
    graphi_dtype dtype;
    int64_t columns; /* elements a row */
    const void *rows;
} graphi_vertex_values;

/* The input graphs of a batch, sample after sample. Arrays are the caller's. */
typedef struct graphi_input_graphs {
    int64_t samples, vertices, edges;
    const int32_t *sample;      /* [vertices]: which sample, 0 to samples - 1, not falling */
    const int32_t *function;    /* [vertices]: which vertex function; NULL, and where there is one alone: 0 */
    const int32_t *child_begin; /* [vertices + 1]: the children of v are child[child_begin[v]], ... */
    const int32_t *child;       /* [edges]: vertices of the same sample, in the order of the children */
    int values;
    const graphi_vertex_values *value; /* [values] */
} graphi_input_graphs;

/* What the input graphs of a batch may be. Zero: any graphs without cycles. */
typedef struct graphi_frontier_options {
    int64_t vertices, edges; /* bounds of a batch: at least 1, 0 edges: as many as vertices */
    int functions;           /* 0: 1 */
    int64_t children;        /* most of a vertex; 0: any number */
    int64_t rows;            /* most vertices evaluated together: 1 is the serial policy; 0: 512 */
    bool one_root;           /* a sample with two vertices that are nobody's children is refused */
    bool one_parent;         /* so is a vertex with two parents: trees alone */
} graphi_frontier_options;

/* The order in which a batch is evaluated. Slots are places in that order: by function, then round, then sample. */
typedef struct graphi_frontier_lists {
    int64_t vertices, edges, rounds, blocks; /* blocks: vertices that are evaluated together */
    const int32_t *vertex;                   /* [vertices]: of a slot */
    const int32_t *slot;                     /* [vertices]: of a vertex */
    const int32_t *round;                    /* [vertices]: of a vertex */
    const int32_t *child_begin;              /* [vertices + 1]: by slot */
    const int32_t *child;                    /* [edges]: slots, in the order of the children */
    const int32_t *parent_begin;             /* [vertices + 1]: by slot */
    const int32_t *parent_edge;              /* [edges]: places in `child`, by the parent's vertex */
    const int32_t *block_slot;               /* [blocks]: the first */
    const int32_t *block_rows;               /* [blocks] */
} graphi_frontier_lists;

typedef struct graphi_frontier graphi_frontier;

/* Room for batches within bounds; later calls allocate nothing. *out is the caller's (graphi_frontier_destroy, which
 * takes NULL). Errors, *out untouched: INVALID (bounds, NULL), MEMORY. */
GRAPHI_API graphi_status graphi_frontier_create(const graphi_frontier_options *options, graphi_frontier **out);
GRAPHI_API void graphi_frontier_destroy(graphi_frontier *frontier);

/* Checks the graphs and orders their vertices; takes time in proportion to vertices and edges, without recursion.
 * INVALID, naming sample and vertex: a cycle; a child outside of the sample; no vertex in a sample; two roots or
 * parents where refused; a function that there is not; offsets out of order; more than the bounds. A frontier is used
 * by one thread at a time. */
GRAPHI_API graphi_status graphi_frontier_set(graphi_frontier *frontier, const graphi_input_graphs *graphs);

/* How many samples from `sample` on are within the bounds together: a batch that is larger can be cut there. 0: the
 * sample alone exceeds them, or is none. */
GRAPHI_API int64_t graphi_frontier_fits(const graphi_frontier *frontier, const graphi_input_graphs *graphs,
                                        int64_t sample);

/* Samples [first, first + count) of the graphs, their vertices numbered from 0: `part` holds arrays of the frontier,
 * good until the next call. INVALID where they are not there, or exceed the bounds. */
GRAPHI_API graphi_status graphi_frontier_part(graphi_frontier *frontier, const graphi_input_graphs *graphs,
                                              int64_t first, int64_t count, graphi_input_graphs *part);

/* Of the graphs set last; arrays live until the next call. False where none were. */
GRAPHI_API bool graphi_frontier_get(const graphi_frontier *frontier, graphi_frontier_lists *lists);

/* Checks the graphs as graphi_frontier_set and feeds them to a run of a plan with a dynamic part of that name (NULL:
 * "graph"): symbols, structure, and those values that the run has inputs for. Errors as graphi_frontier_set and
 * graphi_run_set. */
GRAPHI_API graphi_status graphi_frontier_feed(graphi_frontier *frontier, const graphi_input_graphs *graphs,
                                              const char *name, graphi_run *run);

#ifdef __cplusplus
}
#endif
#endif
