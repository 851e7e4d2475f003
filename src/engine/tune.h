/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of tuning: measuring operations (measure.c), candidates and their alternation (tune.c). */
#ifndef ENGINE_TUNE_H
#define ENGINE_TUNE_H

#include "engine/run.h"

/* Durations of every class at widths 1, 2, 4, ... cores, averaged over executions in array order. Stops when `deadline`
 * (clock_ns) has passed and every width was seen once, or after enough executions. `curves` starts as the estimates. */
struct measurement {
    struct cost_curve *curves;
    double spread;     /* mean over operations of standard deviation / mean, weighted by duration */
    int executions;
};
graphi_status measure_curves(graphi_run *run, int64_t deadline, struct measurement *out);

/* The run executes another plan over the same compiled graph from now on; `schedule` (may be NULL) stays the caller's. */
void run_adopt(graphi_run *run, const graphi_plan *plan, struct schedule *schedule);

#endif
