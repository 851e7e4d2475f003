/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of the calling thread through perf_event_open. Counters that the machine lacks are left out. */
#ifndef ENGINE_COUNTERS_H
#define ENGINE_COUNTERS_H

#include "graphi/profile.h"

struct counters {
    int fd[GRAPHI_COUNTERS + 1]; /* -1: not there; the last: misses of the first cache level, taken off its reads */
};

/* UNSUPPORTED, with the kernel's reason, when there is none at all. */
graphi_status counters_open(struct counters *counters);
void counters_close(struct counters *counters);
void counters_start(const struct counters *counters);
/* What was counted since start, a value a counter; below 0 where it is not there or had no turn. */
void counters_stop(const struct counters *counters, double *value);

#endif
