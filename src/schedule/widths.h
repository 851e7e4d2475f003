/* SPDX-License-Identifier: Apache-2.0 */
/* The widths that strategies 1 to 4 choose from (concurrency-control.txt III-D): per class of tasks the fastest few,
 * per kind that of its largest instance. Made once with the schedule; read by the scheduling step alone. */
#ifndef SCHEDULE_WIDTHS_H
#define SCHEDULE_WIDTHS_H

#include "schedule/scheduler.h"

enum { MOST_CANDIDATES = 8, USUAL_CANDIDATES = 3 };

struct fast_width {
    int width;
    bool spread;
    double ns;
};

/* A class of operations is of one kind. */
struct class_widths {
    struct fast_width best[MOST_CANDIDATES];    /* fastest first */
    struct fast_width fitting[MOST_CANDIDATES]; /* strategy 3: the same, too far from strategy 2's replaced by that */
    struct fast_width of_kind;                  /* strategy 2's width with this class's time */
    double serial_ns;                          /* on one thread */
    int count;
};

struct widths {
    struct class_widths *classes; /* one a curve */
    struct fast_width *of_kind;    /* one a kind */
};

/* The fastest widths of a class on at most so many workers in so many tiles, fastest first, at most `most` of them; how
 * many. */
int widths_fastest(const struct cost_curve *curve, int workers, int tiles, int most, struct fast_width *best);

graphi_status widths_open(struct schedule *schedule, struct widths *out);

#endif
