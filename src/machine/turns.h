/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores of the captured machine leases of this process hold, and the queue of those who wait for some. Cores are
 * hardware threads by the system's number.
 *
 * Who asks later but needs fewer cores may overtake who waits for more, for 20 ms of the latter's waiting; from then on
 * what becomes free is kept for it. Nothing is kept for who needs cores of standing leases, which may be held for ever.
 * Of those who could go the first in the queue does. Everything happens with the registry's mutex held; a queue has as
 * many entries as threads that wait. */
#ifndef MACHINE_TURNS_H
#define MACHINE_TURNS_H

#include "graphi/types.h"
#include "machine/private.h"

/* Who asks for `workers` of these candidates; lives with the thread that waits. */
struct turn {
    const int *os;
    int available, workers;
    struct cpu_mask kept; /* free cores that are for others; set when it may go */
    int64_t begin_ns;
    struct turn *next;
};

void turns_lock(void);
void turns_unlock(void);

/* Cores of the turn that nobody holds. */
int turns_free(const struct turn *turn);

/* True: it may go at once. */
bool turns_may_go(struct turn *turn);

/* Waits until it may; returns for how many nanoseconds. The caller then holds cores before it lets go of the mutex. */
int64_t turns_wait(struct turn *turn);

bool turns_held(int os_index);
void turns_hold(int os_index, bool standing);
void turns_drop(int os_index);
void turns_changed(void); /* after what was held has changed */
void turns_forget(void);  /* after fork(), in the child */

/* For tests: how many wait, and for how long they are overtaken (< 0: the default again). */
int turns_waiting(void);
void turns_overtaken_for(int64_t ns);

#endif
