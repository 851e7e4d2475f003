/* SPDX-License-Identifier: Apache-2.0 */
/* graphi train: the network trained, and what that gave. */
#include "cli/commands.h"
#include "cli/gan.h"
#include "cli/gan_steps.h"
#include "cli/training.h"
#include "tool/plan_notes.h"

/* Seconds spent on choosing a setting before training when no stored plan fits. */
static const double tune_seconds = 5;

int command_train(const struct options *options)
{
    if (gan_is(options->subject))
        return gan_train(options);
    struct result result = result_begin("train", NULL, options->argc, options->argv);
    struct training training;
    graphi_status status =
        training_prepare(options, options->subject, GRAPHI_VALIDATION, tune_seconds, &result, &training);
    if (status == GRAPHI_OK) {
        job_describe(&training.job, &result);
        if (options->explain)
            job_explain(options, training.job.plan);
        status = training_run(&training);
        result_plan(&result, training.job.plan, training.job.run);
        job_row(&training.job, training.job.name, &result);
        job_record(&training.job, &result);
        if (status == GRAPHI_OK)
            status = job_timeline(&training.job, 1, &result);
        status = job_finish(options, &result, status);
    }
    training_close(&training);
    result_end(&result);
    return status;
}
