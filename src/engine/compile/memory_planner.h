/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the arena planner share: memory.c gives small values bytes of their own and writes the solution,
 * memory_items.c knows which value precedes which, memory_place.c places them greedily under a window, memory_search.c
 * looks for the window and the order of placing, memory_sharing.c gives the ordering edges that a placing needs.
 *
 * A window is in sequential time: with a window w, a value whose last task ends at least w before another's first task
 * starts (both in array order) may be shared with it, at the price of ordering edges. A window < 0 is the graph's own
 * order alone; window 0 is the serial order made true by edges. Only pairs that really share bytes cost edges.
 *
 * Compile time only, one thread. Usual size: 500 to 5,000 values. */
#ifndef ENGINE_MEMORY_PLANNER_H
#define ENGINE_MEMORY_PLANNER_H

#include "base/array.h"
#include "base/number.h"
#include "engine/compile/ancestors.h"
#include "engine/compile/memory_problem.h"

struct item { /* a value that may share bytes */
    int32_t value;
    int64_t bytes, offset;
    int32_t first, last;      /* lowest producer, highest task (INT32_MAX: kept) */
    int64_t begin_ns, end_ns; /* of those, in sequential time */
    int32_t starts, starts_count; /* in planner.border: its producers that follow no other producer in the graph */
    int32_t ends, ends_count;     /* and those of its tasks that no other task of it follows */
};

struct spot { /* where an item was placed */
    int64_t offset, end;
    int32_t item;
};

/* Spots that are neighbours in memory, by offset, as a placing walks along them; and what often spares it that. */
enum { PLANNER_SHELF = 128 };
struct shelf {
    int count;
    int64_t reach, widest;    /* the furthest end of a spot; the widest gap between two, -1: not known */
    struct item hull;         /* from the first begin to the last end, with the most starts and ends of any item */
    int32_t all_from, all_to; /* the last of the items' first tasks, the first of their last ones */
    struct spot spot[PLANNER_SHELF];
};

struct ranked {
    int64_t key;
    int32_t item;
};

struct planner {
    const struct memory_problem *problem;
    int count;             /* values that take part */
    struct item *item;     /* by descending size */
    size_t words;
    uint64_t *before;      /* bit (i, j): item i precedes item j in the graph */
    uint64_t *ordered;     /* bit (i, j): one precedes the other; a placing walks along a row of it */
    int shelves;           /* of the placing at hand; all but one are half full at least */
    struct shelf **shelf;  /* by offset */
    struct shelf *shelf_room;
    int32_t *order;        /* item indices as they are placed */
    struct ranked *ranked; /* scratch of planner_set_order */
    ARRAY(int32_t) border; /* tasks: order between two items is order between ends of one and starts of the other */
    int64_t total_ns;
    int64_t least; /* most bytes of items that live at once in sequential time: no placing takes less */
    struct ancestors ancestors;
};

/* A value that has bytes of its own whatever the others do: small, or written by nobody. */
static inline bool planner_is_apart(const struct memory_problem *problem, int value, int64_t limit)
{
    return whole_lines(problem->value[value].bytes) <= limit || !problem->value[value].producers;
}

/* The tasks of a value, producers first. */
static inline const int32_t *planner_tasks(const struct memory_problem *problem, int32_t value, int *count)
{
    const struct memory_value *v = &problem->value[value];
    *count = v->producers + v->readers;
    return problem->list + v->begin;
}

/* Edges that a pair of items may cost. Beyond, as between the 5,000 readers of one value and the 5,000 producers of
 * another, the two do not share bytes unless the graph orders them. */
enum { PLANNER_MOST_EDGES = 1 << 14 };

/* Edges that order item a before item b, at most. */
static inline int64_t planner_pair_edges(const struct item *a, const struct item *b)
{
    return (int64_t)a->ends_count * b->starts_count;
}

/* Does item i precede item j in the graph? */
static inline bool planner_precedes(const struct planner *p, int i, int j)
{
    return p->before[(size_t)i * p->words + (size_t)j / 64] >> (j % 64) & 1;
}

/* Does one of them precede the other? */
static inline bool planner_orders(const struct planner *p, int i, int j)
{
    return p->ordered[(size_t)i * p->words + (size_t)j / 64] >> (j % 64) & 1;
}

#endif
