/* SPDX-License-Identifier: Apache-2.0 */
/* Places items one after the other: best fit among the gaps that conflicting items leave. Two items conflict unless
 * one precedes the other in the graph or, at the price of few enough edges, in sequential time by the window at least.
 * Each looks along all that lie already, shelf by shelf: of a shelf whose items all live at some time of its own life,
 * or none near it, it looks at no single one. With thousands of values that live at once that is nearly every shelf. */
#include "engine/compile/memory_place.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

/* --- the gap --- */

struct gap {
    int64_t end;         /* of the conflicting spots so far */
    int64_t best, bytes; /* where the narrowest gap that is wide enough begins, and how wide it is; -1: there is none */
    int64_t wanted;
};

static void offer(struct gap *gap, int64_t offset)
{
    int64_t bytes = offset - gap->end;
    if (bytes >= gap->wanted && bytes < gap->bytes)
        gap->best = gap->end, gap->bytes = bytes;
}

/* Does every item of the shelf conflict whatever the window, because it lives while this one does? */
static bool all_conflict(const struct shelf *shelf, const struct item *item)
{
    return shelf->all_from <= item->last && shelf->all_to >= item->first;
}

static bool none_conflicts(const struct shelf *shelf, const struct item *item, int64_t window)
{
    return window_precedes(item, &shelf->hull, window) || window_precedes(&shelf->hull, item, window);
}

/* Of a shelf that was put to since, found anew. */
static int64_t widest_gap(struct shelf *shelf)
{
    int64_t end = shelf->spot[0].end;
    if (shelf->widest >= 0)
        return shelf->widest;
    shelf->widest = 0;
    for (int k = 1; k < shelf->count; k++) {
        const struct spot *spot = &shelf->spot[k];
        shelf->widest = spot->offset - end > shelf->widest ? spot->offset - end : shelf->widest;
        end = spot->end > end ? spot->end : end;
    }
    return shelf->widest;
}

/* Goes on with the conflicting spots of one more shelf: with none, all at once, or one by one. */
static void pass_shelf(const struct planner *p, int at, int64_t window, struct shelf *shelf, struct gap *gap)
{
    const struct item *item = &p->item[at];
    if (shelf->reach <= gap->end || none_conflicts(shelf, item, window))
        return;
    if (all_conflict(shelf, item) && widest_gap(shelf) < gap->wanted) {
        offer(gap, shelf->spot[0].offset);
        gap->end = shelf->reach;
        return;
    }
    for (int k = 0; k < shelf->count; k++) {
        const struct spot *other = &shelf->spot[k];
        if (other->end <= gap->end || may_share(p, at, other->item, window))
            continue;
        offer(gap, other->offset);
        gap->end = other->end;
    }
}

/* --- shelves --- */

static void note(const struct planner *p, struct shelf *shelf, const struct spot *spot)
{
    const struct item *item = &p->item[spot->item];
    struct item *hull = &shelf->hull;
    hull->first = item->first < hull->first ? item->first : hull->first;
    hull->last = item->last > hull->last ? item->last : hull->last;
    hull->begin_ns = item->begin_ns < hull->begin_ns ? item->begin_ns : hull->begin_ns;
    hull->end_ns = item->end_ns > hull->end_ns ? item->end_ns : hull->end_ns;
    hull->starts_count = item->starts_count > hull->starts_count ? item->starts_count : hull->starts_count;
    hull->ends_count = item->ends_count > hull->ends_count ? item->ends_count : hull->ends_count;
    shelf->all_from = item->first > shelf->all_from ? item->first : shelf->all_from;
    shelf->all_to = item->last < shelf->all_to ? item->last : shelf->all_to;
    shelf->reach = spot->end > shelf->reach ? spot->end : shelf->reach;
    shelf->widest = -1;
}

static const struct shelf empty_shelf = {.hull = {.first = INT32_MAX, .begin_ns = INT64_MAX}, .all_to = INT32_MAX};

static struct shelf *new_shelf(struct planner *p, int at)
{
    struct shelf *shelf = &p->shelf_room[p->shelves];
    for (int s = p->shelves++; s > at; s--)
        p->shelf[s] = p->shelf[s - 1];
    memcpy(shelf, &empty_shelf, offsetof(struct shelf, spot));
    return p->shelf[at] = shelf;
}

/* The upper half of a full shelf goes to a new one. */
static void split(struct planner *p, int at)
{
    struct shelf *lower = p->shelf[at], *upper = new_shelf(p, at + 1);
    memcpy(lower, &empty_shelf, offsetof(struct shelf, spot));
    memcpy(upper->spot, lower->spot + PLANNER_SHELF / 2, sizeof *upper->spot * (PLANNER_SHELF / 2));
    lower->count = upper->count = PLANNER_SHELF / 2;
    for (int k = 0; k < PLANNER_SHELF / 2; k++) {
        note(p, lower, &lower->spot[k]);
        note(p, upper, &upper->spot[k]);
    }
}

/* The last shelf that begins at this offset or before; the first one otherwise. */
static int shelf_of(const struct planner *p, int64_t offset)
{
    int at = p->shelves - 1;
    while (at > 0 && p->shelf[at]->spot[0].offset > offset)
        at--;
    return at;
}

/* Behind what begins there too. */
static void put(struct planner *p, struct spot spot)
{
    int at = p->shelves ? shelf_of(p, spot.offset) : 0;
    if (p->shelves && p->shelf[at]->count == PLANNER_SHELF) {
        split(p, at);
        at = shelf_of(p, spot.offset);
    }
    struct shelf *shelf = p->shelves ? p->shelf[at] : new_shelf(p, 0);
    int k = shelf->count++;
    for (; k > 0 && shelf->spot[k - 1].offset > spot.offset; k--)
        shelf->spot[k] = shelf->spot[k - 1];
    shelf->spot[k] = spot;
    note(p, shelf, &spot);
}

int64_t planner_place(struct planner *p, int64_t window)
{
    int64_t used = 0;
    p->shelves = 0;
    for (int n = 0; n < p->count; n++) {
        struct item *item = &p->item[p->order[n]];
        struct gap gap = {.best = -1, .bytes = INT64_MAX, .wanted = item->bytes};
        for (int s = 0; s < p->shelves; s++)
            pass_shelf(p, p->order[n], window, p->shelf[s], &gap);
        item->offset = gap.best >= 0 ? gap.best : gap.end;
        if (item->offset + item->bytes > used)
            used = item->offset + item->bytes;
        put(p, (struct spot){item->offset, item->offset + item->bytes, p->order[n]});
    }
    return used;
}

/* --- the order --- */

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
