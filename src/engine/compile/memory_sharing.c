/* SPDX-License-Identifier: Apache-2.0 */
/* The ordering edges that make a placing true: every task of the first of two items in the same bytes before every
 * producer of the second, where the graph does not say so already: edges from the ends of the first to the starts of
 * the second are enough. memory_edges.c then drops those that others imply. */
#include "engine/compile/memory_sharing.h"

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

/* How many of them do not end before `first`. */
static int ending_later(const struct stay *late, int count, int32_t first)
{
    int low = 0;
    while (low < count) {
        int middle = low + (count - low) / 2;
        if (late[middle].last >= first)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Edges from the `count` stays, the one that ends last first, to b, which they precede where they share its bytes:
 * from the near ones, of which no two share bytes. Where these leave no bytes of b, one of them follows whatever comes
 * after. near: room for all. */
static bool edges_to(const struct planner *p, const struct stay *late, int count, const struct stay *b,
                     const struct stay **near, edge_array *edges)
{
    int64_t left = b->end - b->offset; /* bytes of b in which no near one lies */
    int nears = 0;
    bool enough = true;
    for (int i = ending_later(late, count, b->first); i < count && left && enough; i++) {
        const struct stay *a = &late[i];
        bool implied = false;
        if (!overlap(a, b))
            continue;
        for (int n = 0; n < nears && !implied; n++)
            implied = a->last < near[n]->first && overlap(a, near[n]);
        if (implied)
            continue;
        near[nears++] = a;
        left -= (a->end < b->end ? a->end : b->end) - (a->offset > b->offset ? a->offset : b->offset);
        if (!planner_precedes(p, a->item, b->item))
            enough = add_edges(p, &p->item[a->item], &p->item[b->item], edges);
    }
    return enough;
}

/* Edges for the pairs that share bytes without the graph's order, but those that a value between the two implies:
 * with 10,000 values in the same bytes one after the other that is all but their neighbours. */
graphi_status planner_edges(const struct planner *p, edge_array *edges)
{
    struct stay *late = mem_alloc(((size_t)p->count + 1) * sizeof *late);
    const struct stay **near = mem_alloc(((size_t)p->count + 1) * sizeof *near);
    bool enough = late && near;
    for (int i = 0; i < p->count && enough; i++) {
        const struct item *item = &p->item[i];
        late[i] = (struct stay){item->offset, item->offset + item->bytes, item->first, item->last, i};
    }
    if (enough)
        qsort(late, (size_t)p->count, sizeof *late, by_last);
    for (int j = 0; j < p->count && enough; j++)
        enough = edges_to(p, late, p->count, &late[j], near, edges);
    mem_free(late);
    mem_free(near);
    return enough ? GRAPHI_OK : fail_memory("memory plan", (edges->count + (size_t)p->count) * sizeof(struct edge));
}
