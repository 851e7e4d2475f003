/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that become one: found by what they have in common, their operands laid side by side. For pass_merge (one
 * input, several weights) and pass_batch (one weight, several inputs). */
#ifndef PASSES_PARTNERS_H
#define PASSES_PARTNERS_H

#include "passes/passes.h"

/* What makes nodes partners. `may` is asked first; the hash is the same for partners. */
struct partner_rule {
    bool (*may)(const graphi_graph *graph, const struct node *node);
    bool (*fit)(const graphi_graph *graph, const struct node *first, const struct node *node);
    uint64_t (*hash)(const graphi_graph *graph, const struct node *node);
};

/* next[node]: its next partner, -1: none. Room for a number a node. In time linear in the graph. */
graphi_status partners_link(const graphi_graph *graph, const struct partner_rule *rule, int32_t *next);

/* Concatenations made so far: equal ones are one. */
struct wholes {
    graphi_graph *graph;
    int32_t *of; /* of a value there was at first: the last concatenation that it begins, -1: none */
};

graphi_status wholes_open(graphi_graph *graph, struct wholes *out);
void wholes_close(struct wholes *wholes);
/* The parts, values there were at first, along the axis; GRAPHI_NONE: the graph's status says why. */
graphi_value whole_of(struct wholes *wholes, const graphi_value *part, int count, int axis);

#endif
