/* SPDX-License-Identifier: Apache-2.0 */
/* The ordering edges that make a placing true: every task of the first of two items in the same bytes before every
 * producer of the second, where the graph does not say so already: edges from the ends of the first to the starts of
 * the second are enough. memory_edges.c then drops those that others imply. */
#include "engine/memory_planner.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

static bool add_edges(const struct planner *p, const struct item *a, const struct item *b, edge_array *edges)
{
    const int32_t *end = p->border.data + a->ends, *start = p->border.data + b->starts;
    for (int j = 0; j < b->starts_count; j++)
        for (int i = 0; i < a->ends_count; i++)
            if (!ancestors_has(&p->ancestors, start[j], end[i]) &&
                !array_push(edges, ((struct edge){end[i], start[j]})))
                return false;
    return true;
}

struct stay { /* an item's bytes and tasks, for scans */
    int64_t offset, end;
    int32_t first, last, item;
};

static bool overlap(const struct stay *a, const struct stay *b) { return a->offset < b->end && b->offset < a->end; }

static int by_last(const void *a, const void *b)
{
    const struct stay *x = a, *y = b;
    return x->last != y->last ? (x->last < y->last) - (x->last > y->last) : (x->item > y->item) - (x->item < y->item);
}

/* Edges for the pairs that share bytes without the graph's order, but those that a value between the two implies:
 * with 10,000 values in the same bytes one after the other that is all but their neighbours. */
graphi_status planner_edges(const struct planner *p, edge_array *edges)
{
    struct stay *late = mem_alloc(((size_t)p->count + 1) * sizeof *late); /* the one that ends last first */
    const struct stay **near = mem_alloc(((size_t)p->count + 1) * sizeof *near);
    bool enough = late && near;
    for (int i = 0; i < p->count && enough; i++) {
        const struct item *item = &p->item[i];
        late[i] = (struct stay){item->offset, item->offset + item->bytes, item->first, item->last, i};
    }
    if (enough)
        qsort(late, (size_t)p->count, sizeof *late, by_last);
    for (int j = 0; j < p->count && enough; j++) {
        const struct stay *b = &late[j];
        int nears = 0;
        for (int i = j + 1; i < p->count && enough; i++) { /* what precedes ends before */
            const struct stay *a = &late[i];
            bool implied = false;
            if (a->last >= b->first || !overlap(a, b))
                continue;
            for (int n = 0; n < nears && !implied; n++)
                implied = a->last < near[n]->first && overlap(a, near[n]);
            if (implied)
                continue;
            near[nears++] = a;
            if (!planner_precedes(p, a->item, b->item))
                enough = add_edges(p, &p->item[a->item], &p->item[b->item], edges);
        }
    }
    mem_free(late);
    mem_free(near);
    return enough ? GRAPHI_OK : fail_memory("memory plan", (edges->count + (size_t)p->count) * sizeof(struct edge));
}
