/* SPDX-License-Identifier: Apache-2.0 */
/* Operations timed in executions of the graph. */
#ifndef ENGINE_MEASURE_H
#define ENGINE_MEASURE_H

#include "engine/run/run.h"
#include "engine/tune/patience.h"

/* Durations of every class by hill climbing over the cores at hand (climb.h), averaged over executions in order of
 * levels, one operation at a time. Up to eight widths are measured in alternation, more of them eight at a time. Stops
 * when the deadline has passed and every width was seen once, or after enough executions. Classes that are known are
 * not waited for. Where `short_ns` is given and a first round would fit neither it nor the time, the others stay as the
 * plan has them. */
struct climb_options {
    int interval; /* 0: the default */
    bool exhaustive;
    double short_ns;      /* a round of less is run whatever the time; 0: any is */
    graphi_curves *known; /* NULL: nothing is; gains what was measured often enough. REFUSED when of another machine */
};
struct measurement {
    struct cost_curve *curves;
    int32_t known; /* classes that were */
    int32_t left;  /* classes that stay as the plan has them, or were known from a minute that others disturbed */
    double spread; /* mean over operations of standard deviation / mean, weighted by duration */
    int executions;
    int interval;  /* between widths */
    double missing_ns; /* what a round would have taken that did not fit; 0: it did, or none was needed */
    bool both_modes; /* one worker a tile too; else no two cores share one, and the modes are the same */
};
graphi_status measure_curves(graphi_run *run, const struct patience *patience, const struct climb_options *options,
                             struct measurement *out);

#endif
