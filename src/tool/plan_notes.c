/* SPDX-License-Identifier: Apache-2.0 */
/* What a result says of the plan that a command used: where it comes from, why another one was not taken, how to have
 * one, and what was asked for that it does not have. One thread. */
#include "tool/plan_notes.h"

#include "tool/no_effect.h"
#include "tool/profile_words.h"

/* Times of a plan that are not those of a quiet machine. The words would search where a setting was asked for. */
static void note_others(const struct job *job, struct result *result)
{
    graphi_plan_info plan;
    char words[700];
    graphi_plan_get_info(job->plan, &plan);
    if (plan.others <= 0)
        return;
    if (!job->plan_loaded)
        result_note(result, "the plan was tuned while others used %.0f %% of the cores", 100 * plan.others);
    else if (!job->options->plan && !job->asked && profile_words(job, words, sizeof words))
        result_note(result, "the stored plan was tuned while others used %.0f %% of the cores (`%s` tunes it again)",
                    100 * plan.others, words);
    else
        result_note(result, "the stored plan was tuned while others used %.0f %% of the cores", 100 * plan.others);
}

/* Whether a stored plan was used: none is stored for the graph of another command, or for other options. */
static void note_origin(const struct job *job, struct result *result)
{
    const char *file = job->options->plan ? job->options->plan : job->plan_path;
    char words[700];
    if (job->plan_loaded)
        result_note(result, "the stored plan was used: %s", file);
    if (*job->not_used)
        result_note(result, "the stored plan is not used: %s", job->not_used);
    if (job->disturbed > 0)
        result_note(result,
                    "the stored plan was tuned while others used %.0f %% of the cores, and is therefore tuned again: "
                    "%s",
                    100 * job->disturbed, file);
    note_others(job, result);
    if (!job->estimated)
        return;
    const char *why = *job->not_used ? "" : ": no plan is stored for this graph";
    if (profile_words(job, words, sizeof words))
        result_note(result, "chosen statically%s (`%s` stores one)", why, words);
    else
        result_note(result, "chosen statically%s", why);
}

void job_note_plan(const struct job *job, const graphi_plan *plan, struct result *result)
{
    const struct options *o = job->options;
    graphi_plan_info info;
    graphi_machine_info machine;
    graphi_plan_get_info(plan, &info);
    graphi_machine_get_info(job->machine, &machine);
    if (job->plan_stored)
        result_file(result, job->plan_path);
    if (o->save_plan)
        result_file(result, o->save_plan);
    if (job->curves_stored)
        result_file(result, o->curves);
    note_origin(job, result);
    no_effect_note(o, &info.setting, job->model.forward || job->model.evaluation, machine.siblings, result);
}

void job_record(const struct job *job, struct result *result)
{
    graphi_run_info info;
    graphi_run_get_info(job->run, &info);
    result_note(result, "%s", info.note);
    job_note_plan(job, job->plan, result);
    if (*job->not_kept)
        result_note(result, "the plan is not kept: %s", job->not_kept);
}
