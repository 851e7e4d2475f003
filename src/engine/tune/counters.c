/* SPDX-License-Identifier: Apache-2.0 */
/* Five counters, each a file of its own, so that one that is missing does not take the others with it; the kernel
 * shares the hardware among them over time where it has too few, and the values are scaled for that. User space only:
 * allowed up to perf_event_paranoid 2. Linux; elsewhere there are none. */
#include "engine/tune/counters.h"

#include "base/status.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum { FILES = GRAPHI_COUNTERS + 1 };

#define CACHE(cache, operation, result)                                                                                \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##operation << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct {
    uint32_t type;
    uint64_t config;
} events[FILES] = {
    [GRAPHI_COUNTER_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [GRAPHI_COUNTER_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [GRAPHI_COUNTER_LLC_ACCESSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    [GRAPHI_COUNTER_LLC_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    [GRAPHI_COUNTER_L1_HITS] = {PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS)},
    [GRAPHI_COUNTERS] = {PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS)},
};

static int open_event(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = type;
    attr.config = config;
    attr.disabled = 1;
    attr.exclude_kernel = attr.exclude_hv = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* -1: not there, or it had no turn on the hardware, of which there is too little for all of them at once. */
static double read_event(int fd)
{
    uint64_t value[3]; /* count, enabled, running */
    if (fd < 0 || read(fd, value, sizeof value) != (ssize_t)sizeof value || !value[2])
        return -1;
    return (double)value[0] * (double)value[1] / (double)value[2];
}

graphi_status counters_open(struct counters *c)
{
    int reason = 0;
    bool any = false;
    for (int i = 0; i < FILES; i++) {
        c->fd[i] = open_event(events[i].type, events[i].config);
        if (c->fd[i] < 0)
            reason = reason ? reason : errno;
        any = any || c->fd[i] >= 0;
    }
    if (any)
        return GRAPHI_OK;
    return fail(GRAPHI_UNSUPPORTED, "hardware counters",
                "found none (perf_event_open: %s), expected cycles and cache events; "
                "virtual machines and containers often give none",
                strerror(reason));
}

void counters_close(struct counters *c)
{
    for (int i = 0; i < FILES; i++)
        if (c->fd[i] >= 0)
            close(c->fd[i]);
}

void counters_start(const struct counters *c)
{
    for (int i = 0; i < FILES; i++)
        if (c->fd[i] >= 0) {
            ioctl(c->fd[i], PERF_EVENT_IOC_RESET, 0);
            ioctl(c->fd[i], PERF_EVENT_IOC_ENABLE, 0);
        }
}

void counters_stop(const struct counters *c, double *value)
{
    for (int i = 0; i < FILES; i++)
        if (c->fd[i] >= 0)
            ioctl(c->fd[i], PERF_EVENT_IOC_DISABLE, 0);
    for (int i = 0; i < GRAPHI_COUNTERS; i++)
        value[i] = read_event(c->fd[i]);
    double *hits = &value[GRAPHI_COUNTER_L1_HITS]; /* accesses until here */
    const double misses = read_event(c->fd[GRAPHI_COUNTERS]);
    *hits = *hits < 0 || misses < 0 ? -1 : fmax(*hits - misses, 0);
}
#else
graphi_status counters_open(struct counters *c)
{
    return fail(GRAPHI_UNSUPPORTED, "hardware counters", "found another system than Linux, expected perf_event_open");
}
void counters_close(struct counters *c) {}
void counters_start(const struct counters *c) {}
void counters_stop(const struct counters *c, double *value) {}
#endif
