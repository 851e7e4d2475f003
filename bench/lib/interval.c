/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of the sign test: each ratio lies below the true median with one half. */
#include "interval.h"

#include "cli/result.h"

#include <math.h>

/* How many of the least and how many of the greatest can be left out, so that the others span the true median; -1: not
 * even all do. */
static int left_out(int count, double wrong)
{
    double exactly = pow(0.5, count), below = exactly; /* chances that so many lie below it, that at most so many do */
    int out = 0;
    for (; below <= wrong / 2; below += exactly, out++)
        exactly *= (double)(count - out) / (out + 1);
    return out - 1;
}

struct interval interval_of(double *ratio, int count, double wrong)
{
    const int out = left_out(count, wrong);
    result_sort(ratio, count);
    const double median = result_median(ratio, count);
    return out < 0 ? (struct interval){0, median, INFINITY}
                   : (struct interval){ratio[out], median, ratio[count - 1 - out]};
}

bool interval_tells(struct interval interval, double most)
{
    return interval.low > most || interval.high <= most;
}
