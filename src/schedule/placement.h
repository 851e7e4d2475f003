/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs what in an execution in virtual time, collected as tasks start. One thread. */
#ifndef SCHEDULE_PLACEMENT_H
#define SCHEDULE_PLACEMENT_H

#include "base/array.h"
#include "schedule/schedule.h"

/* Who runs what, in the order in which tasks start. */
struct placed {
    int32_t task, workers; /* where in placement.workers those begin in whose lists it is, leader first */
    uint16_t width;
    bool spread;
};
struct placement {
    ARRAY(struct placed) tasks;
    ARRAY(uint16_t) workers;
    bool full; /* no memory: it is not whole */
};
void placement_clear(struct placement *placement);
void placement_add(struct placement *placement, int32_t task, struct seat seat, const uint16_t *workers, int count);

#endif
