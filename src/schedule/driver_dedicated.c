/* SPDX-License-Identifier: Apache-2.0 */
/* The dedicated driver (graphi.txt 5.2): the client thread runs the scheduling step in a busy loop on a core of its
 * own, and workers only poll their rings. Where the client shares a core it yields between polls. */
#include "schedule/scheduler.h"

#include "machine/parking.h"

#include <sched.h>

void dedicated_client(struct schedule *s)
{
    s->self = -1;
    step_roots(s);
    step_dispatch(s);
    int64_t idle_ns = 0;
    for (unsigned spins = 0; !step_over(s);) {
        const int drained = step_drain(s);
        if (step_messages(s) || drained) {
            step_dispatch(s);
            spins = 0;
            idle_ns = 0;
        } else if (messages_found(s, &s->executors[0], &idle_ns)) { /* too late, mostly: else the step sees it next */
            continue;
        } else if (s->lease->shares_core) {
            sched_yield();
        } else {
            spin_turn(&spins);
        }
    }
    atomic_store_explicit(&s->finished, 1, memory_order_release); /* pairs with dedicated_worker() */
}

void dedicated_worker(void *context, int worker)
{
    struct schedule *s = context;
    struct executor *x = &s->executors[worker];
    for (unsigned spins = 0;;) {
        if (executor_poll(s, x))
            spins = 0;
        else if (atomic_load_explicit(&s->finished, memory_order_acquire)) /* pairs with dedicated_client() */
            return;
        else
            spin_turn(&spins);
    }
}
