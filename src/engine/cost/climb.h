/* SPDX-License-Identifier: Apache-2.0 */
/* Hill climbing over widths (concurrency-control.txt III-C): per mode, widths 1, 1 + x, 1 + 2x, ... until the time
 * rises or the cores end. Compact teams (neighbours share a tile) have even widths, so that no tile is half used;
 * spread teams have one worker a tile. All samples are kept, the rise included: it bounds the interpolation.
 *
 * One climb serves one class. Whoever measures asks climb_next for the width that comes after the last one and adds
 * what it found; many classes climb together, one execution of the graph per width and mode. */
#ifndef ENGINE_CLIMB_H
#define ENGINE_CLIMB_H

#include "schedule/schedule.h"

struct climb_limits {
    int cores, tiles; /* tiles == cores: nothing is shared, and the compact mode alone is tried, at any width */
    int interval;     /* x, > 0 */
    bool exhaustive;  /* every width, whether times rise or not */
};

/* x as asked for; 0: 4, less on few cores, so that at least eight widths are tried where there are eight. */
struct climb_limits climb_limits(int cores, int tiles, int interval, bool exhaustive);

/* Width after `width` in this mode (0: the first); 0 when there is none. */
int climb_after(const struct climb_limits *limits, bool spread, int width);

struct climb_mode {
    int samples;
    int width[CURVE_SAMPLES];
    double ns[CURVE_SAMPLES];
    double least;
    bool done;
};

struct climb {
    struct climb_mode mode[2]; /* compact, spread */
};

/* Width to be measured next in this mode; 0: this mode is done. */
int climb_next(const struct climb_limits *limits, const struct climb *climb, bool spread);
void climb_add(const struct climb_limits *limits, struct climb *climb, bool spread, int width, double ns);

/* Both modes as one curve. At least the compact mode has a sample. */
void climb_curve(const struct climb *climb, struct cost_curve *curve);

#endif
