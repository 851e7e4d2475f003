/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer ordering edges: every one costs each execution a counter to decrement. One sweep in topological order builds
 * the ancestor sets with all edges; among the added edges into a task, those from nearer tasks are taken first, and one
 * whose source is an ancestor already is dropped. Compile time only. Usual effect: a twentieth is left. */
#include "engine/compile/memory_edges.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

graphi_status memory_all_edges(const struct memory_problem *problem, const edge_array *added, int32_t **begin,
                               int32_t **list)
{
    edge_array all = {0};
    bool enough = true;
    for (int32_t t = 0; t < problem->tasks; t++)
        for (int32_t e = problem->edges_begin[t]; e < problem->edges_begin[t + 1]; e++)
            enough = enough && array_push(&all, ((struct edge){t, problem->edges[e]}));
    for (size_t e = 0; e < added->count; e++)
        enough = enough && array_push(&all, added->data[e]);
    edges_sort(&all);
    graphi_status status = enough ? edges_successors(&all, problem->tasks, begin, list)
                                  : fail_memory("memory plan", all.count * sizeof *all.data);
    array_free(&all);
    return status;
}

enum { MOST_TASKS = 40000 }; /* 200 MB of bits; beyond, all edges stay */

/* By target, nearest source first. */
static int by_target(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return (x->from < y->from) - (x->from > y->from);
}

struct sweep {
    size_t words;
    uint64_t *bits; /* ancestors of every task */
};

static bool has(const struct sweep *s, int32_t task, int32_t ancestor)
{
    return s->bits[(size_t)task * s->words + (size_t)ancestor / 64] >> (ancestor % 64) & 1;
}

static void take(struct sweep *s, int32_t task, int32_t from)
{
    uint64_t *to = s->bits + (size_t)task * s->words;
    const uint64_t *source = s->bits + (size_t)from * s->words;
    for (size_t w = 0; w < s->words; w++)
        to[w] |= source[w];
    to[from / 64] |= (uint64_t)1 << (from % 64);
}

/* Tasks in order: the graph's edges arrived from earlier tasks; then the added ones that say something new. */
static size_t sweep(struct sweep *s, const struct memory_problem *problem, edge_array *added)
{
    size_t next = 0, kept = 0;
    for (int32_t t = 0; t < problem->tasks; t++) {
        for (; next < added->count && added->data[next].to == t; next++)
            if (!has(s, t, added->data[next].from)) {
                take(s, t, added->data[next].from);
                added->data[kept++] = added->data[next];
            }
        for (int32_t e = problem->edges_begin[t]; e < problem->edges_begin[t + 1]; e++)
            take(s, problem->edges[e], t);
    }
    return kept;
}

graphi_status memory_reduce_edges(const struct memory_problem *problem, edge_array *added)
{
    edges_sort(added);
    if (!added->count || problem->tasks > MOST_TASKS)
        return GRAPHI_OK;
    struct sweep s = {.words = ((size_t)problem->tasks + 63) / 64};
    s.bits = mem_zalloc_array((size_t)problem->tasks, s.words * sizeof *s.bits);
    if (!s.bits)
        return fail_memory("memory plan", (size_t)problem->tasks * s.words * 8);
    qsort(added->data, added->count, sizeof *added->data, by_target);
    added->count = sweep(&s, problem, added);
    edges_sort(added);
    mem_free(s.bits);
    return GRAPHI_OK;
}
