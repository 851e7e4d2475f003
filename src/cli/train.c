/* SPDX-License-Identifier: Apache-2.0 */
/* graphi train: the network trained, and what that gave. */
#include "cli/commands.h"
#include "cli/gan.h"
#include "cli/gan_steps.h"
#include "cli/trainer.h"

/* Seconds spent on choosing a setting before training when no stored plan fits. */
static const double tune_seconds = 5;

int command_train(const struct options *options)
{
    if (gan_is(options->subject))
        return gan_train(options);
    struct result result = result_begin("train", NULL, options->argc, options->argv);
    struct trainer trainer;
    graphi_status status = trainer_open(options, options->subject, GRAPHI_VALIDATION, tune_seconds, &result, &trainer);
    if (status == GRAPHI_OK) {
        job_describe(&trainer.job, &result);
        if (options->explain)
            job_explain(options, trainer.job.plan);
        status = trainer_run(&trainer);
        result_plan(&result, trainer.job.plan, trainer.job.run);
        job_row(&trainer.job, trainer.job.name, &result);
        job_record(&trainer.job, &result);
        if (status == GRAPHI_OK)
            status = job_timeline(&trainer.job, 1, &result);
        status = job_finish(options, &result, status);
    }
    trainer_close(&trainer);
    result_end(&result);
    return status;
}
