/* SPDX-License-Identifier: Apache-2.0 */
/* Binary max-heap and sorted list of ready tasks. Both move a hole instead of swapping. */
#include "engine/heap.h"

#include <string.h>

void heap_push(struct heap *heap, struct ready item)
{
    int hole = heap->count++;
    while (hole > 0) {
        int parent = (hole - 1) >> 1;
        if (!ready_before(&item, &heap->items[parent]))
            break;
        heap->items[hole] = heap->items[parent];
        hole = parent;
    }
    heap->items[hole] = item;
}

struct ready heap_pop(struct heap *heap)
{
    struct ready best = heap->items[0], last = heap->items[--heap->count];
    int hole = 0, count = heap->count;
    for (int child = 1; child < count; child = 2 * hole + 1) {
        child += child + 1 < count && ready_before(&heap->items[child + 1], &heap->items[child]);
        if (!ready_before(&heap->items[child], &last))
            break;
        heap->items[hole] = heap->items[child];
        hole = child;
    }
    heap->items[hole] = last;
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
    memmove(list->items + low + 1, list->items + low, (size_t)(list->count - low) * sizeof *list->items);
    list->items[low] = item;
    list->count++;
}

void ready_list_remove(struct ready_list *list, int index)
{
    list->count--;
    memmove(list->items + index, list->items + index + 1, (size_t)(list->count - index) * sizeof *list->items);
}
