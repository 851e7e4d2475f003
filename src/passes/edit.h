/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share to look at a graph and to rewire it. */
#ifndef PASSES_EDIT_H
#define PASSES_EDIT_H

#include "graph/graph.h"

/* Replacements of values, identity where nothing was set; grows with the graph. */
struct value_map {
    int32_t *to;
    size_t count, capacity;
};
graphi_status map_set(struct value_map *map, const graphi_graph *graph, int32_t value, int32_t to); /* MEMORY */
int32_t map_follow(const struct value_map *map, int32_t value);
/* Where all went well, rewires and compacts the graph; frees the map in any case. */
graphi_status map_end(struct value_map *map, graphi_graph *graph, graphi_status status);

/* Who reads the values that a graph had when it was asked, and which of them are its outputs. */
struct uses {
    int32_t *begin, *list; /* as from graph_users */
    bool *output;
};
graphi_status uses_open(const graphi_graph *graph, struct uses *uses); /* MEMORY; to be closed even so */
void uses_close(struct uses *uses);
static inline int32_t uses_count(const struct uses *uses, int32_t value)
{
    return uses->begin[value + 1] - uses->begin[value];
}
/* One reads it, once, and nobody else has it: no output, nothing that is kept in a parameter. */
bool uses_once(const struct uses *uses, const graphi_graph *graph, int32_t value);

bool is_immediate(const struct value *value); /* a scalar constant, which becomes an instruction of a program */
/* Is the value a float32 constant whose elements all equal `number`? */
bool constant_is(const graphi_graph *graph, int32_t value, float number);
/* Is the value a constant, a parameter that the graph does not update, or, behind pass `derive`, what follows from
 * these? */
bool follows_from_kept(const graphi_graph *graph, int32_t value);
/* Nodes from `first` on stand in for `node`: its place, scope and phase. */
void adopt(graphi_graph *graph, int32_t first, const struct node *node);
bool same_type(const graphi_graph *graph, int32_t a, int32_t b); /* of two values */

#endif
