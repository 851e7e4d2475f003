/* SPDX-License-Identifier: Apache-2.0 */
/* See placement.h. */
#include "schedule/placement.h"

#include <string.h>

void placement_clear(struct placement *p)
{
    p->tasks.count = p->workers.count = 0;
}

void placement_add(struct placement *p, int32_t task, struct seat seat, const uint16_t *workers, int count)
{
    const struct placed placed = {task, (int32_t)p->workers.count, seat.width, seat.spread};
    p->full |= p->workers.count + (size_t)count > INT32_MAX ||
               !array_reserve(&p->workers, p->workers.count + (size_t)count) || !array_push(&p->tasks, placed);
    if (p->full)
        return;
    memcpy(p->workers.data + p->workers.count, workers, (size_t)count * sizeof *workers);
    p->workers.count += (size_t)count;
}
