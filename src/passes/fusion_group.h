/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of element-wise nodes, each a program to be: fusion.c forms them, fusion_lower.c moves work between them,
 * fusion_write.c measures them and writes the programs. */
#ifndef PASSES_FUSION_GROUP_H
#define PASSES_FUSION_GROUP_H

#include "passes/edit.h"

struct group {
    int32_t head, tail, count; /* members linked by fuser.next */
    int32_t depth;
};

struct fuser {
    graphi_graph *graph;
    int32_t nodes;
    struct uses uses;
    int32_t *depth, *group, *next; /* per node; group -1: not element-wise */
    struct group *groups;
    int32_t count;
    int32_t *member;       /* scratch: members of the groups asked about */
};

/* A sum over the rows of a matrix: it ends a program, and what reads it is never in one with it. */
bool is_row_sum(const graphi_graph *graph, const struct node *node);

/* What a node runs over: its result's type, but of a sum its input's. */
const struct value_type *fusion_domain(const struct fuser *f, int32_t id);

/* May the nodes be in one program, neither reading the other? And the second reading the first? */
bool fusion_alike(const struct fuser *f, int32_t one, int32_t two);
bool fusion_joins(const struct fuser *f, int32_t from, int32_t to);

void fusion_join(struct fuser *f, int32_t into, int32_t from);
void fusion_move(struct fuser *f, int32_t id, int32_t to);

static inline bool listed(const int32_t *list, int count, int32_t id)
{
    for (int i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

#endif
