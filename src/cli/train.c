/* SPDX-License-Identifier: Apache-2.0 */
/* graphi train: the network trained, and what that gave. */
#include "cli/commands.h"
#include "cli/gan.h"
#include "cli/gan_steps.h"
#include "cli/solvers.h"
#include "cli/training.h"
#include "tool/plan_notes.h"
#include "tool/report.h"

/* Seconds spent on choosing a setting before training when no stored plan fits. */
static const double tune_seconds = 5;

static graphi_status by_one(struct training *t, struct result *result)
{
    if (t->options.explain)
        job_explain(&t->options, t->job.plan);
    graphi_status status = training_run(t);
    result_plan(result, t->job.plan, t->job.run);
    job_row(&t->job, t->job.name, result);
    job_record(&t->job, result);
    return status == GRAPHI_OK ? job_timeline(&t->job, 1, result) : status;
}

static graphi_status by_solvers(struct training *t, struct result *result)
{
    graphi_solver_info first;
    if (t->options.explain && graphi_group_at(t->group, 0, &first))
        job_explain(&t->options, first.plan);
    const graphi_status status = training_run(t);
    solvers_result(&t->job, t->group, result);
    return status;
}

static graphi_status train(const struct options *options, graphi_ranks *ranks)
{
    struct result result = result_begin("train", NULL, options->argc, options->argv);
    struct training training;
    graphi_status status =
        training_prepare(options, options->subject, GRAPHI_VALIDATION, tune_seconds, ranks, &result, &training);
    if (status == GRAPHI_OK) {
        job_describe(&training.job, &result);
        status = training.group ? by_solvers(&training, &result) : by_one(&training, &result);
        if (!solvers_follow(ranks))
            status = job_finish(options, &result, status);
    }
    training_close(&training);
    result_end(&result);
    return status;
}

int command_train(const struct options *options)
{
    struct options own;
    graphi_ranks *ranks;
    if (gan_is(options->subject) && solvers_asked(options))
        return report_usage("--solvers", options->subject, "a network that is one graph");
    if (gan_is(options->subject))
        return gan_train(options);
    graphi_status status = solvers_join(options, &own, &ranks);
    if (status == GRAPHI_OK)
        status = train(&own, ranks);
    graphi_ranks_close(ranks);
    return status;
}
