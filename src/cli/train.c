/* SPDX-License-Identifier: Apache-2.0 */
/* graphi train: the network trained, and what that gave. */
#include "cli/commands.h"
#include "cli/gan.h"
#include "cli/trainer.h"

/* Seconds spent on choosing a setting before training when no stored plan fits. */
static const double tune_seconds = 5;

/* `null`: what a value says that JSON does not have. */
static void print_curve(const json_t *train, const char *null, FILE *out)
{
    const json_t *value = json_object_get(train, "value"), *loss = json_object_get(train, "loss");
    size_t i;
    json_t *item;
    fprintf(out, "%8s %10s %12s\n", "round", "loss", json_string_value(json_object_get(train, "metric")));
    json_array_foreach(loss, i, item)
    {
        const json_t *metric = json_array_get(value, i);
        fprintf(out, "%8zu %10.4f ", i + 1, json_number_value(item));
        if (json_is_number(metric))
            fprintf(out, "%12.4f\n", json_number_value(metric));
        else
            fprintf(out, "%12s\n", null);
    }
    fprintf(out, "state %s\n", json_string_value(json_object_get(train, "state_sha256")));
}

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
        if (!options_json_is_stdout(options))
            print_curve(result.train, trainer.validates ? "inf" : "-", stdout);
        status = job_finish(options, &result, status);
    }
    trainer_close(&trainer);
    result_end(&result);
    return status;
}
