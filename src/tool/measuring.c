/* SPDX-License-Identifier: Apache-2.0 */
/* Rates are the best of short slices, so that more time makes them surer and never lower (machine/measure.c). A script
 * that starts the command hundreds of times, as the tests do, has better things to do with a third of a second. */
#include "tool/measuring.h"

#include "tool/report.h"

#include <stdlib.h>

static const double USUAL = 0.3, MOST = 60;

graphi_status measuring_seconds(double *seconds)
{
    const char *variable = getenv("GRAPHI_MEASURE_SECONDS");
    char *end;
    *seconds = USUAL;
    if (!variable || !*variable)
        return GRAPHI_OK;
    const double value = strtod(variable, &end);
    if (*end || !(value > 0 && value <= MOST))
        return report_usage("GRAPHI_MEASURE_SECONDS", variable, "seconds above 0, up to 60");
    *seconds = value;
    return GRAPHI_OK;
}

double measuring_shortened(void)
{
    double seconds;
    return measuring_seconds(&seconds) == GRAPHI_OK && seconds < USUAL ? seconds : 0;
}
