/* SPDX-License-Identifier: Apache-2.0 */
/* Median time of a repeated call, for the peers of the kernel benchmark. */
#ifndef BENCH_PEERS_REPEAT_H
#define BENCH_PEERS_REPEAT_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline double repeat_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline int repeat_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Two calls to warm up, then `repeat` times (at most 1000) `copies` calls timed together, as ours are: the time of one.
 * The call moves on to its next result each time. */
static inline double repeat_median(void (*call)(void *), void *context, int repeat, int copies)
{
    double ms[1000];
    repeat = repeat < 1 ? 1 : repeat > 1000 ? 1000 : repeat;
    call(context);
    call(context);
    for (int i = 0; i < repeat; i++) {
        double begin = repeat_now_ms();
        for (int copy = 0; copy < copies; copy++)
            call(context);
        ms[i] = (repeat_now_ms() - begin) / copies;
    }
    qsort(ms, (size_t)repeat, sizeof *ms, repeat_ascending);
    return ms[repeat / 2];
}

static inline float *repeat_array(int64_t count)
{
    float *data = aligned_alloc(64, ((size_t)count * 4 + 63) / 64 * 64 + 64);
    for (int64_t i = 0; data && i < count; i++)
        data[i] = (float)((i * 7919 + 13) % 1009) / 1009 - 0.5f;
    return data;
}

#endif
