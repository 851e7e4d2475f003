/* SPDX-License-Identifier: Apache-2.0 */
/* Times of an operation class between the widths that were measured: linear interpolation, flat beyond the ends (a
 * wider team than any measured one is not assumed to help). Called by the step for every decision of the free-width
 * policies, hence the bisection: a curve has up to 72 samples. */
#include "schedule/schedule.h"

#include <math.h>

const char *curve_source_name(graphi_curve_source source)
{
    static const char *const names[] = {
#define X(name, text) text,
        GRAPHI_CURVE_SOURCE_LIST(X)
#undef X
    };
    return names[source];
}

static double between(const struct cost_curve *curve, const double *ns, int low, int high, int width)
{
    double t = (double)(width - curve->width[low]) / (curve->width[high] - curve->width[low]);
    return ns[low] + t * (ns[high] - ns[low]);
}

/* The first sample at or above `width`; samples when there is none. */
static int at_or_above(const struct cost_curve *curve, int width)
{
    int low = 0, high = curve->samples;
    while (low < high) {
        int middle = (low + high) / 2;
        if (curve->width[middle] < width)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double curve_ns(const struct cost_curve *curve, int width)
{
    if (!curve->samples)
        return 0;
    if (width > 0 && width <= curve->samples && curve->width[width - 1] == width) /* every width was measured */
        return curve->ns[width - 1];
    int i = at_or_above(curve, width);
    if (i == curve->samples)
        return curve->ns[i - 1];
    if (i == 0 || curve->width[i] == width)
        return curve->ns[i];
    return between(curve, curve->ns, i - 1, i, width);
}

static double spread_ns(const struct cost_curve *curve, int width)
{
    int before = -1; /* width 1 is the same in both modes: it stands for itself where spread ones were measured */
    bool any = false;
    for (int i = 0; i < curve->samples; i++) {
        bool has = curve->spread_ns[i] > 0;
        any = any || has;
        if (!has)
            continue;
        if (curve->width[i] >= width)
            return before < 0 || curve->width[i] == width ? curve->spread_ns[i]
                                                          : between(curve, curve->spread_ns, before, i, width);
        before = i;
    }
    return any ? curve->spread_ns[before] : curve_ns(curve, width);
}

double curve_mode_ns(const struct cost_curve *curve, int width, bool spread)
{
    return spread ? spread_ns(curve, width) : curve_ns(curve, width);
}

bool curve_extrapolates(const struct cost_curve *curve, int width, bool spread)
{
    int last = spread ? curve->spread_last : curve->last;
    return last > 0 && width > last;
}

double curve_sample_ns(const struct cost_curve *curve, int i)
{
    return curve->spread_ns[i] > 0 && curve->spread_ns[i] < curve->ns[i] ? curve->spread_ns[i] : curve->ns[i];
}

double curve_least_ns(const struct cost_curve *curve)
{
    double least = curve->samples ? curve_sample_ns(curve, 0) : 0;
    for (int i = 1; i < curve->samples; i++)
        if (curve_sample_ns(curve, i) < least)
            least = curve_sample_ns(curve, i);
    return least;
}

double curve_least_work(const struct cost_curve *curve)
{
    double least = curve->samples ? curve_sample_ns(curve, 0) * curve->width[0] : 0;
    for (int i = 1; i < curve->samples; i++)
        if (curve_sample_ns(curve, i) * curve->width[i] < least)
            least = curve_sample_ns(curve, i) * curve->width[i];
    return least;
}

double curve_least_factor(const struct cost_curve *curve, bool in_order)
{
    double moved = 0;
    if (in_order && curve->in_order > 0)
        return fmin(1, curve->in_order);
    for (int i = 0; i < 2; i++)
        moved = curve->moved[i] > 0 ? fmin(moved, curve->moved[i] - 1) : moved;
    return curve->beside > 0 ? fmax(0, fmin(1, curve->beside + moved)) : 1;
}
