/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks, or nodes, must come before which. */
#ifndef ENGINE_ANCESTORS_H
#define ENGINE_ANCESTORS_H

#include "graphi/types.h"

/* Strict-ancestor relation of a DAG in topological numbering, restricted to interesting ancestors (`wanted` NULL: all).
 */
struct ancestors {
    int columns;
    size_t words;
    int32_t *column; /* of a task, -1: not interesting */
    uint64_t *bits;
};
graphi_status ancestors_create(int tasks, const int32_t *edges_begin, const int32_t *edges, const bool *wanted,
                               struct ancestors *out);
void ancestors_free(struct ancestors *ancestors);

/* `words` words, a bit for each column. */
static inline const uint64_t *ancestors_row(const struct ancestors *a, int32_t task)
{
    return a->bits + (size_t)task * a->words;
}

static inline bool ancestors_has(const struct ancestors *a, int32_t task, int32_t ancestor)
{
    int32_t column = a->column[ancestor];
    return column >= 0 && (ancestors_row(a, task)[column / 64] >> (column % 64) & 1);
}

#endif
