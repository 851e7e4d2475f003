/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time in nanoseconds, and what the calling thread has computed. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The time so many seconds from now; now for what is negative, thirty years for all that is longer. */
static inline int64_t clock_after(double seconds)
{
    return clock_ns() + (seconds < 0 ? 0 : (int64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9));
}

/* Keeps the core busy for `ns` from call to return, on average. Reading the clock takes tens of nanoseconds (a step):
 * half a step passes before the first reading and after the last, which comes half a step late on average; so it stops
 * one and a half steps early. */
static inline void clock_spin(int64_t ns)
{
    enum { MOST_STEP_NS = 200 }; /* a longer step is a thread that was off its core */
    int64_t start = clock_ns(), last = start, now = clock_ns();
    for (; now - start < ns - 3 * (now - last < MOST_STEP_NS ? now - last : MOST_STEP_NS) / 2; now = clock_ns())
        last = now;
}

static inline int64_t clock_thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
