/* SPDX-License-Identifier: Apache-2.0 */
/* The values that take part in the arena planner, and which of them precede which: the first's producers and readers
 * all precede the second's producers in the graph. The relation is a square of bits, made once and asked at every
 * placing. */
#include "engine/memory_planner.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

static int larger_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x->value > y->value) - (x->value < y->value);
}

static void span_of(struct planner *p, struct item *item, const int64_t *start_ns)
{
    const struct memory_problem *problem = p->problem;
    const struct memory_value *value = &problem->value[item->value];
    int count;
    const int32_t *list = planner_tasks(problem, item->value, &count);
    item->first = INT32_MAX, item->last = -1;
    for (int i = 0; i < count; i++) {
        if (i < value->producers && list[i] < item->first)
            item->first = list[i];
        item->last = list[i] > item->last ? list[i] : item->last;
    }
    item->begin_ns = start_ns[item->first];
    item->end_ns = start_ns[item->last + 1];
    if (value->kept)
        item->last = INT32_MAX;
}

static bool graph_precedes(const struct planner *p, const struct item *a, const struct item *b)
{
    if (a->last >= b->first)
        return false;
    int count_a, count_b;
    const int32_t *tasks_a = planner_tasks(p->problem, a->value, &count_a);
    const int32_t *tasks_b = planner_tasks(p->problem, b->value, &count_b);
    for (int j = 0; j < p->problem->value[b->value].producers; j++)
        for (int i = 0; i < count_a; i++)
            if (!ancestors_has(&p->ancestors, tasks_b[j], tasks_a[i]))
                return false;
    return true;
}

/* Values that take part at most, the largest: the work grows with their square. */
enum { MOST_SHARED = 12000 };

/* Fills p->item; `wanted`: every task of one of them. */
static void collect_items(struct planner *p, int64_t limit, const int64_t *start_ns, bool *wanted)
{
    const struct memory_problem *problem = p->problem;
    for (int v = 0; v < problem->values; v++) {
        if (planner_is_apart(problem, v, limit))
            continue;
        struct item *item = &p->item[p->count++];
        *item = (struct item){.value = v, .bytes = planner_rounded(problem->value[v].bytes)};
        span_of(p, item, start_ns);
    }
    qsort(p->item, (size_t)p->count, sizeof *p->item, larger_first);
    p->count = p->count < MOST_SHARED ? p->count : MOST_SHARED;
    for (int i = 0; i < p->count; i++) {
        int count;
        const int32_t *list = planner_tasks(problem, p->item[i].value, &count);
        for (int k = 0; k < count; k++)
            wanted[list[k]] = true;
    }
}

static graphi_status relate_items(struct planner *p)
{
    p->words = ((size_t)p->count + 63) / 64;
    p->before = mem_zalloc_array((size_t)p->count + 1, (p->words + 1) * sizeof *p->before);
    if (!p->before)
        return fail_memory("memory plan", (size_t)p->count * p->words * 8);
    for (int i = 0; i < p->count; i++)
        for (int j = 0; j < p->count; j++)
            if (i != j && graph_precedes(p, &p->item[i], &p->item[j]))
                p->before[(size_t)i * p->words + (size_t)j / 64] |= (uint64_t)1 << (j % 64);
    return GRAPHI_OK;
}

graphi_status planner_prepare(struct planner *p, int64_t limit)
{
    const struct memory_problem *problem = p->problem;
    size_t tasks = (size_t)problem->tasks, values = (size_t)problem->values + 1;
    int64_t *start_ns = mem_alloc((tasks + 2) * sizeof *start_ns);
    bool *wanted = mem_zalloc(tasks + 1);
    p->item = mem_zalloc_array(values, sizeof *p->item);
    p->placed = mem_alloc(values * sizeof *p->placed);
    p->order = mem_alloc(values * sizeof *p->order);
    p->ranked = mem_alloc(values * sizeof *p->ranked);
    graphi_status status = GRAPHI_OK;
    if (!start_ns || !wanted || !p->item || !p->placed || !p->order || !p->ranked) {
        status = fail_memory("memory plan", tasks * sizeof *start_ns);
        goto done;
    }
    start_ns[0] = 0;
    for (size_t t = 0; t < tasks; t++)
        start_ns[t + 1] = start_ns[t] + (problem->ns ? problem->ns[t] + 1 : 1);
    p->total_ns = start_ns[tasks];
    collect_items(p, limit, start_ns, wanted);
    status = ancestors_create(problem->tasks, problem->edges_begin, problem->edges, wanted, &p->ancestors);
    if (!status)
        status = relate_items(p);
done:
    mem_free(start_ns);
    mem_free(wanted);
    return status;
}

void planner_free(struct planner *p)
{
    mem_free(p->item);
    mem_free(p->placed);
    mem_free(p->order);
    mem_free(p->ranked);
    mem_free(p->before);
    ancestors_free(&p->ancestors);
}
