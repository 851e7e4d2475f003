/* SPDX-License-Identifier: Apache-2.0 */
/* Places items one after the other: best fit among the gaps that conflicting items leave. Two items conflict unless
 * one precedes the other in the graph or, at the price of few enough edges, in sequential time by the window at least.
 */
#include "engine/memory_planner.h"

#include <stdlib.h>

static bool window_precedes(const struct item *a, const struct item *b, int64_t window)
{
    return window >= 0 && a->last < b->first && b->begin_ns - a->end_ns >= window &&
           planner_pair_edges(a, b) <= PLANNER_MOST_EDGES;
}

static bool may_share(const struct planner *p, int i, int j, int64_t window)
{
    return planner_orders(p, i, j) || window_precedes(&p->item[i], &p->item[j], window) ||
           window_precedes(&p->item[j], &p->item[i], window);
}

int64_t planner_place(struct planner *p, int64_t window)
{
    int64_t used = 0;
    for (int n = 0; n < p->count; n++) {
        int at = p->order[n];
        struct item *item = &p->item[at];
        int64_t end = 0, best = -1, best_gap = INT64_MAX;
        for (int k = 0; k < n; k++) {
            const struct spot *other = &p->placed[k];
            if (other->end <= end || may_share(p, at, other->item, window))
                continue;
            int64_t gap = other->offset - end;
            if (gap >= item->bytes && gap < best_gap)
                best = end, best_gap = gap;
            end = other->end;
        }
        item->offset = best >= 0 ? best : end;
        if (item->offset + item->bytes > used)
            used = item->offset + item->bytes;
        int k = n;
        for (; k > 0 && p->placed[k - 1].offset > item->offset; k--)
            p->placed[k] = p->placed[k - 1];
        p->placed[k] = (struct spot){item->offset, item->offset + item->bytes, at};
    }
    return used;
}

static int64_t sort_key(const struct item *item, int order)
{
    int64_t length = item->end_ns - item->begin_ns;
    return order == 0   ? item->bytes
           : order == 1 ? (int64_t)((double)item->bytes * (double)length / 1024)
                        : -item->begin_ns;
}

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    return (x->item > y->item) - (x->item < y->item);
}

void planner_set_order(struct planner *p, int order)
{
    for (int i = 0; i < p->count; i++)
        p->ranked[i] = (struct ranked){sort_key(&p->item[i], order), i};
    qsort(p->ranked, (size_t)p->count, sizeof *p->ranked, by_key);
    for (int i = 0; i < p->count; i++)
        p->order[i] = p->ranked[i].item;
}
