/* SPDX-License-Identifier: Apache-2.0 */
/* Splits of the cores into executors of one width, as choosing, searching and tuning enumerate them (graphi.txt 4.2:
 * "1 executor with 64 threads, or 2 executors with 32 threads each, etc."; in 7.3 also 6x10 and 3x10 on 68 cores).
 * Powers of two and all even splits; where curves have every width also the uneven ones that use as much of the cores
 * as teams of their width can: 3x22 on 68. Pure; 5 splits on 6 cores, 18 on 68, 11 on 1,024. */
#include "schedule/setting_canonical.h"

#include "schedule/schedule.h"

int setting_next_split(int cores, int executors)
{
    while (++executors <= cores) {
        bool power = (executors & (executors - 1)) == 0, even = cores % executors == 0;
        bool full = cores <= CURVE_SAMPLES && cores / (cores / executors) == executors;
        if (power || even || full)
            return executors;
    }
    return 0;
}

/* The caller's numbers may be any. */
int graphi_split_next(int cores, int executors)
{
    return executors >= 0 && executors < cores ? setting_next_split(cores, executors) : 0;
}
