/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting edges and ordering tasks. Compile time only. Usual size: 10,000 edges. */
#include "schedule/edges.h"

#include "base/status.h"
#include "schedule/heap.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

void edges_sort(edge_array *edges)
{
    size_t kept = 0;
    if (edges->count)
        qsort(edges->data, edges->count, sizeof *edges->data, compare);
    for (size_t i = 0; i < edges->count; i++) {
        const struct edge *edge = &edges->data[i];
        if (edge->from != edge->to && (!kept || compare(&edges->data[kept - 1], edge) != 0))
            edges->data[kept++] = *edge;
    }
    edges->count = kept;
}

graphi_status edges_successors(const edge_array *edges, int tasks, int32_t **begin, int32_t **list)
{
    int32_t *first = mem_zalloc_array((size_t)tasks + 1, sizeof *first);
    int32_t *to = mem_alloc(sizeof *to * (edges->count + 1));
    if (!first || !to) {
        mem_free(first);
        mem_free(to);
        return fail_memory("edges", edges->count * sizeof *to);
    }
    for (size_t i = 0; i < edges->count; i++) {
        first[edges->data[i].from + 1]++;
        to[i] = edges->data[i].to;
    }
    for (int t = 0; t < tasks; t++)
        first[t + 1] += first[t];
    *begin = first;
    *list = to;
    return GRAPHI_OK;
}

graphi_status edges_predecessors(int tasks, const int32_t *begin, const int32_t *list, int32_t **from_begin,
                                 int32_t **from)
{
    int32_t *first = mem_zalloc_array((size_t)tasks + 2, sizeof *first);
    int32_t *source = mem_alloc(sizeof *source * ((size_t)begin[tasks] + 1));
    if (!first || !source) {
        mem_free(first);
        mem_free(source);
        return fail_memory("edges", (size_t)begin[tasks] * sizeof *source);
    }
    for (int32_t e = 0; e < begin[tasks]; e++)
        first[list[e] + 2]++;
    for (int t = 0; t < tasks; t++)
        first[t + 2] += first[t + 1];
    for (int32_t t = 0; t < tasks; t++) /* first[t + 1] goes from the begin of t's to their end */
        for (int32_t e = begin[t]; e < begin[t + 1]; e++)
            source[first[list[e] + 1]++] = t;
    *from_begin = first;
    *from = source;
    return GRAPHI_OK;
}

/* All of one key: the smallest id first. */
static void add_ready(struct heap *heap, int32_t task)
{
    heap_push(heap, (struct ready){0, task});
}

graphi_status edges_order(int tasks, const int32_t *begin, const int32_t *list, int32_t *order)
{
    int32_t *pending = mem_zalloc_array((size_t)tasks + 1, sizeof *pending);
    struct heap heap = {.items = mem_zalloc_array((size_t)tasks + 1, sizeof *heap.items)};
    if (!pending || !heap.items) {
        mem_free(pending);
        mem_free(heap.items);
        return fail_memory("edges", (size_t)tasks * sizeof *heap.items);
    }
    int done = 0;
    for (int32_t e = 0; e < begin[tasks]; e++)
        pending[list[e]]++;
    for (int32_t t = 0; t < tasks; t++)
        if (pending[t] == 0)
            add_ready(&heap, t);
    while (heap.count) {
        int32_t t = heap_pop(&heap).task;
        order[done++] = t;
        for (int32_t e = begin[t]; e < begin[t + 1]; e++)
            if (--pending[list[e]] == 0)
                add_ready(&heap, list[e]);
    }
    mem_free(pending);
    mem_free(heap.items);
    return done == tasks ? GRAPHI_OK : fail(GRAPHI_INVALID, "task graph", "found a cycle, expected an order");
}
