/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of element-wise fusion share: groups of nodes and what they would be as programs. fusion.c forms
 * groups, fusion_lower.c moves work between them, fusion_write.c measures them and writes the programs. */
#ifndef PASSES_FUSION_H
#define PASSES_FUSION_H

#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/program.h"

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

/* May the nodes be in one program, the second reading the first? */
bool fusion_joins(const struct fuser *f, int32_t from, int32_t to);

/* Would the union of these groups (distinct), and a node more (-1: none), keep to the limits of programs? */
bool fusion_fits(struct fuser *f, const int32_t *groups, int count, int32_t more);
/* Would a group without this member? */
bool fusion_fits_without(struct fuser *f, int32_t group, int32_t less);

static inline bool listed(const int32_t *list, int count, int32_t id)
{
    for (int i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

void fusion_join(struct fuser *f, int32_t into, int32_t from);
void fusion_move(struct fuser *f, int32_t id, int32_t to);

/* Nodes go to the deeper group that alone reads them where that saves memory traffic; then groups to their consumers.
 */
graphi_status fusion_lower(struct fuser *f);

/* Groups of several nodes become programs. */
graphi_status fusion_write(struct fuser *f, struct value_map *map);

#endif
