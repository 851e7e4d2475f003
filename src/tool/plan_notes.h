/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of a result on a job's plan. */
#ifndef TOOL_PLAN_NOTES_H
#define TOOL_PLAN_NOTES_H

#include "tool/job.h"

/* The files that hold the plan and its curves; notes: whether a stored plan was used, why not, and how to have one; and
 * what of the setting that was asked for the plan does not have. */
void job_note_plan(const struct job *job, const graphi_plan *plan, struct result *result);

/* What the result says of the plan (job_note_plan) and of the run that has executed. */
void job_record(const struct job *job, struct result *result);

#endif
