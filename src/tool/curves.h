/* SPDX-License-Identifier: Apache-2.0 */
/* Where plans and the curves of operation classes are kept, and which curves a command takes and adds. */
#ifndef TOOL_CURVES_H
#define TOOL_CURVES_H

#include "tool/job.h"

/* The folder for plans and curves: GRAPHI_PLAN_DIR, or the user's cache; made, "" when there is none; errno then says
 * why. */
void job_folder(char *path, size_t size);

bool job_curves_named(const struct options *options); /* --curves FILE, not none */
graphi_status job_curves_open(struct job *job);       /* job->curves, for tuning */
graphi_status job_curves_keep(struct job *job);       /* what tuning added */

/* USAGE where --model names no --curves FILE. Reported. */
graphi_status job_curves_check(const struct options *options);

/* Replaces *plan by the one with the curves that --curves and --model name; as it is without --curves. */
graphi_status job_curves_use(const struct options *options, const graphi_machine *machine,
                             const graphi_setting *setting, graphi_plan **plan);

#endif
