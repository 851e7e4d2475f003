/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of the sign test: each ratio lies below the true median with one half. */
#include "interval.h"

#include "tool/result.h"

#include <math.h>

/* How many of the least and how many of the greatest can be left out, so that the others span the true median; -1: not
 * even all do. */
static int left_out(int count, double wrong)
{
    /* Chances that so many lie below it, as a logarithm (from 1,075 on 0.5^count is 0), and that at most so many do. */
    double exactly = -count * log(2), below = exp(exactly);
    int out = 0;
    for (; below <= wrong / 2; below += exp(exactly), out++)
        exactly += log((double)(count - out) / (out + 1));
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
