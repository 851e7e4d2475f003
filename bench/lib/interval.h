/* SPDX-License-Identifier: Apache-2.0 */
/* What paired ratios tell: their median and an interval that holds the true one, whatever their distribution. */
#ifndef BENCH_INTERVAL_H
#define BENCH_INTERVAL_H

#include <stdbool.h>

/* Without bounds, 0 to infinity, where there are too few ratios for that. */
struct interval {
    double low, median, high;
};

/* Of so many ratios, which are sorted; the true median is outside with a chance of at most `wrong`. At least 6 ratios
 * tell something at 0.05, 8 at 0.0125. */
struct interval interval_of(double *ratio, int count, double wrong);

/* All of it lies on one side of `most`. */
bool interval_tells(struct interval interval, double most);

#endif
