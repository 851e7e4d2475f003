/* SPDX-License-Identifier: Apache-2.0 */
/* What the executors of a static driver repeat: each its own list of tasks, and for each task how far which of the
 * other lists have to be. A task waits for the last of its predecessors in each list alone, and not for what an earlier
 * one of its own list has waited for. Made by one thread, read by all. */
#ifndef SCHEDULE_STATIC_ORDER_H
#define SCHEDULE_STATIC_ORDER_H

#include "schedule/placement.h"

struct static_entry {
    int32_t task;
    int32_t waits;  /* its first; they end where those of the next entry begin */
    int32_t team;   /* where in `workers` those of its team begin, leader first, if its policy forms teams */
    uint16_t width; /* 0: it takes part in what another one leads */
    bool spread;
};

struct static_wait {
    int32_t slot, ended; /* so many of that executor's list */
};

struct static_order {
    int32_t *begin; /* one more than slots: where the list of each begins in `entries` */
    struct static_entry *entries; /* one more than there are */
    struct static_wait *waits;
    uint16_t *workers;
    int32_t *seen; /* a row for each executor: how far it has found the others */
    int row;
    uint64_t decisions; /* hash of (task, leader, width) in the order in which tasks start */
};

/* static_list.c; MEMORY */
graphi_status place_by_list(struct schedule *schedule, struct placement *placement);

#endif
