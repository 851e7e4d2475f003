/* SPDX-License-Identifier: Apache-2.0 */
/* A job's plan: what the options ask of it, and where it comes from. */
#ifndef TOOL_PLAN_H
#define TOOL_PLAN_H

#include "tool/job.h"

/* Fills the settings that the options ask for. USAGE on words that do not exist. */
graphi_status job_plan_options(const struct options *options, graphi_plan_options *out);

/* Before anything is loaded: what is wrong with the options whatever the graph. Reported. */
graphi_status job_plan_check(const struct options *options);

/* Whether the options ask for a setting, --pin excepted. */
bool job_setting_asked(const struct options *options);

/* Whether tuning searches for one: none was asked for, or only that nobody joins. */
bool job_setting_open(const struct options *options);

/* After job_begin, a plan: --plan, else the stored one when no tuning was asked for, both under the setting that was;
 * else a new one, with `tune` seconds (--tune overrides) to measure the operations and, unless it was asked for, to
 * search the setting. job->run is ready to execute; inputs hold random numbers (bench) until the command feeds it. */
graphi_status job_plan(struct job *job, double tune);

/* job_begin and job_plan. */
graphi_status job_open(const struct options *options, const char *name, const graphi_model_options *model, double tune,
                       struct job *job);

/* Instead: a plan under this setting (NULL: that of the options), from no file, its operations measured for so long;
 * and its run, not fed. */
graphi_status job_plan_under(struct job *job, const graphi_setting *setting, double seconds);

#endif
