/* SPDX-License-Identifier: Apache-2.0 */
/* Records of one execution as a timeline. */
#ifndef ENGINE_TRACE_H
#define ENGINE_TRACE_H

#include "engine/run/run.h"
#include "engine/show/timeline.h"

/* Of a run, or simulated ones (`run` NULL). `schedule` (NULL: none) has teams and who joined, and must outlive it. */
graphi_status trace_timeline(const graphi_plan *plan, const struct task_record *records,
                             const struct schedule *schedule, const struct graphi_run *run, struct timeline *timeline);
void trace_timeline_free(struct timeline *timeline);
graphi_status trace_write(const struct timeline *timeline, const char *prefix);

#endif
