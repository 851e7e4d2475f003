/* SPDX-License-Identifier: Apache-2.0 */
/* Times of an operation class between the widths that were measured: linear interpolation, flat beyond the ends (a
 * wider team than any measured one is not assumed to help). Called by the step for every decision of the free-width
 * policies. */
#include "engine/schedule.h"

static double interpolate(const struct cost_curve *curve, const double *ns, int width)
{
    if (width <= curve->width[0])
        return ns[0];
    for (int i = 1; i < curve->samples; i++)
        if (width <= curve->width[i]) {
            double t = (double)(width - curve->width[i - 1]) / (curve->width[i] - curve->width[i - 1]);
            return ns[i - 1] + t * (ns[i] - ns[i - 1]);
        }
    return ns[curve->samples - 1];
}

double curve_ns(const struct cost_curve *curve, int width)
{
    return curve->samples ? interpolate(curve, curve->ns, width) : 0;
}

double curve_spread_ns(const struct cost_curve *curve, int width)
{
    double ns = curve->samples ? interpolate(curve, curve->spread_ns, width) : 0;
    return ns > 0 ? ns : curve_ns(curve, width);
}
