/* SPDX-License-Identifier: Apache-2.0 */
/* Max-heap with a sorted front and sorted list of ready tasks. They move a hole instead of swapping. */
#include "schedule/heap.h"

#include <stdbool.h>
#include <string.h>

static void rise(struct ready *items, int hole, struct ready item)
{
    while (hole > 0) {
        int parent = (hole - 1) >> 1;
        if (!ready_before(&item, &items[parent]))
            break;
        items[hole] = items[parent];
        hole = parent;
    }
    items[hole] = item;
}

/* The best of `count` items; the others are a heap again. */
static struct ready take_root(struct ready *items, int count)
{
    struct ready best = items[0], last = items[--count];
    int hole = 0;
    for (int child = 1; child < count; child = 2 * hole + 1) {
        child += child + 1 < count && ready_before(&items[child + 1], &items[child]);
        if (!ready_before(&items[child], &last))
            break;
        items[hole] = items[child];
        hole = child;
    }
    items[hole] = last;
    return best;
}

void heap_push(struct heap *heap, struct ready item)
{
    struct ready *front = heap->front;
    int behind = heap->count++ - heap->ahead;
    if (behind && !ready_before(&item, &heap->items[0])) {
        rise(heap->items, behind, item);
        return;
    }
    if (heap->ahead == HEAP_FRONT) {
        bool worst = ready_before(&front[0], &item);
        rise(heap->items, behind, worst ? item : front[0]);
        if (worst)
            return;
        memmove(front, front + 1, sizeof *front * (size_t)--heap->ahead);
    }
    int at = heap->ahead++;
    for (; at > 0 && ready_before(&front[at - 1], &item); at--)
        front[at] = front[at - 1];
    front[at] = item;
}

struct ready heap_pop(struct heap *heap)
{
    struct ready best = heap->front[--heap->ahead];
    int behind = --heap->count - heap->ahead;
    if (!heap->ahead && behind) { /* half of it, so that what becomes ready finds a place */
        heap->ahead = behind < HEAP_FRONT / 2 ? behind : HEAP_FRONT / 2;
        for (int at = heap->ahead; at > 0; behind--)
            heap->front[--at] = take_root(heap->items, behind);
    }
    return best;
}

void ready_list_insert(struct ready_list *list, struct ready item)
{
    int low = 0, high = list->count; /* items[0 .. low) come after `item` in order */
    while (low < high) {
        int middle = (low + high) / 2;
        if (ready_before(&item, &list->items[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    if (list->before && low < list->count - low) {
        list->before--;
        list->items--;
        memmove(list->items, list->items + 1, (size_t)low * sizeof *list->items);
    } else {
        memmove(list->items + low + 1, list->items + low, (size_t)(list->count - low) * sizeof *list->items);
    }
    list->items[low] = item;
    list->count++;
}

void ready_list_remove(struct ready_list *list, int index)
{
    list->count--;
    memmove(list->items + index, list->items + index + 1, (size_t)(list->count - index) * sizeof *list->items);
}
