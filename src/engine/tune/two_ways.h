/* SPDX-License-Identifier: Apache-2.0 */
/* What operations cost each other. */
#ifndef ENGINE_TWO_WAYS_H
#define ENGINE_TWO_WAYS_H

#include "schedule/schedule.h"

/* Of an execution whose operations ran on one core each: load[task], 0 .. 1, the part of the other cores that ran
 * operations during the task, on average. */
graphi_status records_load(const struct task_record *records, int32_t tasks, int cores, float *load);

/* factor[class], 0.8 .. most: time in one way of running over that in another. A class also counts `prior` operations
 * as long as its own that are exposed and differ as all together do, so few and short measurements do not make it an
 * exception. */
struct two_ways {
    int32_t tasks, classes;
    const int32_t *class_of;
    const double *usual_ns, *other_ns; /* one a task */
    const double *part;                /* of the usual time that the other way applies to */
    double most;
};
graphi_status class_factors(const struct two_ways *ways, double prior, double *factor);

#endif
