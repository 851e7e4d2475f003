/* SPDX-License-Identifier: Apache-2.0 */
/* The ready queues of one run. `heap` is a max-heap keyed by the policy's order (critical path: level, ns to the sink);
 * `ready_list` keeps the same order fully sorted, for policies that look at more than the best operation. Ties go to
 * the lower task id, so that runs repeat. Only the scheduling step touches them: no locks. Usual size: thousands of
 * operations a step, tens of them ready (Inception-v3: seldom more than 5). Room for every task is reserved at
 * creation. The heap also orders tasks while a plan is compiled, with items of the caller's.
 *
 * The best few items of a heap lie in front of it, sorted. Under the critical-path order what matters little (an
 * operation that nobody waits for) gathers by the hundred while a few that just became ready are always better: these
 * come and go in the front's four lines, and do not travel through the levels of the heap behind it. */
#ifndef SCHEDULE_HEAP_H
#define SCHEDULE_HEAP_H

#include "graphi/types.h"

struct ready {
    int64_t key;
    int32_t task;
};

static inline bool ready_before(const struct ready *a, const struct ready *b)
{
    return a->key > b->key || (a->key == b->key && a->task < b->task);
}

enum { HEAP_FRONT = 16 };

struct heap {
    struct ready *items; /* behind the front, a binary heap; each of the front is better than all of it */
    int count;           /* of both */
    int ahead;           /* of the front; 0 only if count is 0 */
    struct ready front[HEAP_FRONT]; /* best last */
};
void heap_push(struct heap *heap, struct ready item);
struct ready heap_pop(struct heap *heap); /* count > 0 */

static inline const struct ready *heap_best(const struct heap *heap) /* count > 0 */
{
    return &heap->front[heap->ahead - 1];
}

static inline void heap_clear(struct heap *heap)
{
    heap->count = heap->ahead = 0;
}

/* Sorted with the best item last: taking near the best moves little. What is inserted moves the shorter side where
 * there is room before the items: of thousands that become ready at once and matter alike each goes to the front. */
struct ready_list {
    struct ready *items;
    int count;
    int before; /* items for which there is room before them */
};
void ready_list_insert(struct ready_list *list, struct ready item);
void ready_list_remove(struct ready_list *list, int index);

#endif
