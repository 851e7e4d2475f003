/* SPDX-License-Identifier: Apache-2.0 */
/* The ancestor relation of a task graph as bit sets: one sweep in topological order, each row the union of its
 * predecessors' rows. Only columns that somebody will ask about are kept, so a graph of 100,000 tasks with few large
 * values stays small. Compile time only, one thread. Usual size: 2,000 tasks, half a megabyte. */
#include "engine/compile/ancestors.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

static void absorb(struct ancestors *a, int32_t from, int32_t to)
{
    const uint64_t *source = a->bits + (size_t)from * a->words;
    uint64_t *target = a->bits + (size_t)to * a->words;
    for (size_t w = 0; w < a->words; w++)
        target[w] |= source[w];
    int32_t column = a->column[from];
    if (column >= 0)
        target[column / 64] |= (uint64_t)1 << (column % 64);
}

graphi_status ancestors_create(int tasks, const int32_t *edges_begin, const int32_t *edges, const bool *wanted,
                               struct ancestors *out)
{
    struct ancestors a = {0};
    a.column = mem_alloc(sizeof *a.column * (size_t)(tasks ? tasks : 1));
    if (!a.column)
        return fail_memory("ancestors", (size_t)tasks);
    for (int t = 0; t < tasks; t++)
        a.column[t] = !wanted || wanted[t] ? a.columns++ : -1;
    a.words = ((size_t)a.columns + 63) / 64;
    a.bits = mem_zalloc_array((size_t)tasks + 1, (a.words + !a.words) * sizeof *a.bits);
    if (!a.bits) {
        mem_free(a.column);
        return fail_memory("ancestors", (size_t)tasks * a.words * 8);
    }
    for (int32_t t = 0; t < tasks && a.words; t++)
        for (int32_t e = edges_begin[t]; e < edges_begin[t + 1]; e++)
            absorb(&a, t, edges[e]);
    *out = a;
    return GRAPHI_OK;
}

void ancestors_free(struct ancestors *a)
{
    mem_free(a->column);
    mem_free(a->bits);
    *a = (struct ancestors){0};
}
