/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: spin for a time, then sleep on a futex until the word has changed. Any thread. */
#include "machine/parking.h"

#include "base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

void spin_turn(unsigned *turns)
{
    /* A pause takes 10 to 60 ns, so 2000 of them some tens of microseconds: longer than a core that is running needs.
     */
    if (++*turns < 2000) {
        cpu_relax();
        return;
    }
    sched_yield();
}

static bool changed(struct parking *parking, unsigned old)
{
    /* acquire: pairs with the operation that changed the word, so that what was written before it is visible */
    return atomic_load_explicit(&parking->word, memory_order_acquire) != old;
}

static bool spin(struct parking *parking, unsigned old, int spin_us)
{
    int64_t end = 0;
    for (;;) {
        for (int i = 0; i < 64; i++) {
            if (changed(parking, old))
                return true;
            cpu_relax();
        }
        int64_t now = clock_ns();
        if (!end)
            end = now + (int64_t)spin_us * 1000;
        else if (now >= end)
            return false;
    }
}

void parking_wait(struct parking *parking, unsigned old, int spin_us)
{
    if (spin(parking, old, spin_us))
        return;
    /* Both sequentially consistent, as are the change of the word and the load in parking_wake(): either that load sees
     * this sleeper, or the load here sees the changed word. */
    atomic_fetch_add(&parking->sleepers, 1);
    while (atomic_load(&parking->word) == old)
        syscall(SYS_futex, &parking->word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    atomic_fetch_sub_explicit(&parking->sleepers, 1, memory_order_relaxed); /* a late wake-up is harmless */
}

void parking_wake(struct parking *parking)
{
    if (atomic_load(&parking->sleepers)) /* pairs with the addition in parking_wait() */
        syscall(SYS_futex, &parking->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
