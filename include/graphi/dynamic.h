/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic networks (cavs.txt): every sample has a graph of its own, a sequence, a tree or any graph without cycles, and
 * one vertex function is applied to all of its vertices, children first. The function is declared once, through the
 * graph builder, with gather, scatter, pull and push; the input graphs are data (docs/dynamic.md).
 *
 * A batch is evaluated in rounds: round 0 has all vertices without children, of all samples; a vertex follows in the
 * round after the last of its children. What does not depend on children is computed once for all vertices before the
 * rounds, what no parent needs once after them; so are gradients of weights. Results do not depend on the batch: each
 * vertex has the bits that it has alone. Gradients of weights are summed in the order of vertices by (function, round,
 * sample). */
#ifndef GRAPHI_DYNAMIC_H
#define GRAPHI_DYNAMIC_H

#include "graphi/frontier.h"
#include "graphi/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRAPHI_VERTEX_STATES = 4, GRAPHI_VERTEX_FUNCTIONS = 16, GRAPHI_VERTEX_PUSHES = 16 };

/* A dynamic part of a graph while it is declared. */
typedef struct graphi_dynamic graphi_dynamic;

typedef struct graphi_dynamic_options {
    const char *name;                    /* before its inputs and symbols; NULL: "graph" */
    graphi_frontier_options graphs;      /* bounds; what graphs may be is for graphi_frontier_set */
    int64_t state[GRAPHI_VERTEX_STATES]; /* columns of what a vertex scatters; the first 0 ends them */
    bool in_rounds;                      /* what could come before or after the rounds is computed in them */
} graphi_dynamic_options;

/* Begins a dynamic part: adds inputs "NAME.child_end" [vertices], "NAME.child" [edges] and, of several functions,
 * "NAME.function", and symbols of the same names. NULL where the graph has an error, which sticks to it; all functions
 * below take NULL then. Ended by graphi_dynamic_end. One thread a graph. */
GRAPHI_API graphi_dynamic *graphi_dynamic_begin(graphi_graph *graph, const graphi_dynamic_options *options);

/* Dimension 0 of inputs that have a row for each vertex. */
GRAPHI_API int64_t graphi_vertex_rows(const graphi_dynamic *dynamic);

/* Begins the next vertex function, the first, second, ... of `functions`. What is added to the graph given, also
 * parameters, belongs to it: rows are vertices, and each operation works on rows alone. A parameter of a name that
 * there is already is that one. */
GRAPHI_API graphi_graph *graphi_vertex_function(graphi_dynamic *dynamic);

/* What the function at hand reads from outside: of a value with graphi_vertex_rows the rows of its vertices, else the
 * value itself. */
GRAPHI_API graphi_value graphi_pull(graphi_dynamic *dynamic, graphi_value outside);

/* Of a state: what child number `child` scattered, zeros where there is no such child; the sum over all children, in
 * their order, zeros without any; what each child scattered, a row an edge. */
GRAPHI_API graphi_value graphi_gather(graphi_dynamic *dynamic, int state, int64_t child);
GRAPHI_API graphi_value graphi_gather_sum(graphi_dynamic *dynamic, int state);
GRAPHI_API graphi_value graphi_gather_each(graphi_dynamic *dynamic, int state);

/* Rows of vertices to rows of their edges to children: each edge has its vertex's row; and back: the sum over the edges
 * of a vertex, in the order of its children. */
GRAPHI_API graphi_value graphi_spread(graphi_dynamic *dynamic, graphi_value rows);
GRAPHI_API graphi_value graphi_combine(graphi_dynamic *dynamic, graphi_value edges);

/* What parents gather. Every function scatters each state once. */
GRAPHI_API void graphi_scatter(graphi_dynamic *dynamic, int state, graphi_value rows);

/* What the graph outside reads, as number `push`: 0, 1, ... Vertices of functions that do not push it have zeros. */
GRAPHI_API void graphi_push(graphi_dynamic *dynamic, int push, graphi_value rows);

/* Ends the part, which is freed. pushed[i], of `count`: what was pushed as number i, a row a vertex in their order.
 * Errors, which stick to the graph: INVALID, naming function and operation: a state that is not scattered, or twice; an
 * operation that mixes rows or draws random numbers; a push that nobody made; fewer functions than were said. */
GRAPHI_API graphi_status graphi_dynamic_end(graphi_dynamic *dynamic, int count, graphi_value *pushed);

#ifdef __cplusplus
}
#endif
#endif
