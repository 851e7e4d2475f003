/* SPDX-License-Identifier: Apache-2.0 */
/* What other processes had of the cores while something was measured. */
#ifndef MACHINE_OTHERS_H
#define MACHINE_OTHERS_H

#include <stdbool.h>

struct others {
    int cores;             /* of the affinity mask that the file has; 0: not known */
    double busy, all, own; /* ticks of those cores, and of this process */
};

/* Reads where the counters stand; path: "/proc/stat" but in tests. Any thread. */
struct others others_read(const char *path);

/* The share of the cores that others used between the two; 0: at most a tenth, or not known. */
double others_share(const struct others *before, const struct others *after);

/* Whether they used any since then, by /proc/stat. */
bool others_were_there(const struct others *since);

#endif
