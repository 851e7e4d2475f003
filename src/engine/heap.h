/* SPDX-License-Identifier: Apache-2.0 */
/* The ready queues of one run. `heap` is a binary max-heap keyed by the policy's order (critical path: level, ns to the
 * sink); `ready_list` keeps the same order fully sorted, for policies that look at more than the best operation. Ties
 * go to the lower task id, so that runs repeat. Only the scheduling step touches them: no locks. Usual size: thousands
 * of operations a step, tens of them ready (Inception-v3: seldom more than 5). Room for every task is reserved at
 * creation. */
#ifndef ENGINE_HEAP_H
#define ENGINE_HEAP_H

#include "graphi/types.h"

struct ready {
    int64_t key;
    int32_t task;
};

static inline bool ready_before(const struct ready *a, const struct ready *b)
{
    return a->key > b->key || (a->key == b->key && a->task < b->task);
}

struct heap {
    struct ready *items;
    int count;
};
void heap_push(struct heap *heap, struct ready item);
struct ready heap_pop(struct heap *heap); /* count > 0 */

/* Sorted with the best item last: taking near the best moves little. */
struct ready_list {
    struct ready *items;
    int count;
};
void ready_list_insert(struct ready_list *list, struct ready item);
void ready_list_remove(struct ready_list *list, int index);

#endif
