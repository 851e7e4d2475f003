/* SPDX-License-Identifier: Apache-2.0 */
/* graphi train and graphi eval. */
#include "cli/commands.h"
#include "cli/gan.h"
#include "cli/report.h"
#include "cli/trainer.h"

#include <string.h>

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
        if (!options->json || strcmp(options->json, "-") != 0)
            print_curve(result.train, trainer.validates ? "inf" : "-", stdout);
        status = job_finish(options, &result, status);
    }
    trainer_close(&trainer);
    result_end(&result);
    return status;
}

/* The metric goes into the result when it is one of the whole split (or of the --steps batches asked for). */
static graphi_status score_test(struct evaluator *e, struct result *result)
{
    const struct options *o = e->job.options;
    const char *metric = e->job.info.metric;
    struct score score;
    graphi_status status = evaluator_score(e, o->steps, &score);
    if (status == GRAPHI_OK) {
        job_explain_run(o, e->job.run); /* an error is the last that is said */
        status = report_stopped("eval", "to score the whole test split");
    }
    if (status != GRAPHI_OK)
        return status;
    result->train = json_pack("{s:n,s:n,s:[f],s:s,s:[o],s:n}", "steps", "epochs", "loss", score.loss, "metric", metric,
                              "value", result_metric(result, score.metric), "state_sha256");
    json_object_set_new(result->root, "train", result->train);
    result_note(result, "%s %.4f, loss %.4f over %lld samples of the test split", metric, score.metric, score.loss,
                (long long)score.samples);
    return GRAPHI_OK;
}

int command_eval(const struct options *options)
{
    struct job job = {0};
    struct evaluator evaluator = {0};
    graphi_model_options model;
    graphi_data *data = NULL, *test = NULL;
    if (gan_is(options->subject))
        return report_usage("eval", options->subject, "a network with a metric: samples come from training");
    if (!options->checkpoint)
        return report_usage("--checkpoint", "nothing", "the file that training wrote");
    struct result result = result_begin("eval", NULL, options->argc, options->argv);
    graphi_status status = open_data(options, options->subject, GRAPHI_TRAIN, &model, &data);
    if (status == GRAPHI_OK && (status = graphi_data_open_split(data, GRAPHI_TEST, 0, &test)) != GRAPHI_OK)
        report_failure(status);
    if (status == GRAPHI_OK)
        status = job_begin(options, options->subject, &model, &job);
    if (status == GRAPHI_OK)
        status = checkpoint_load_parameters(&job, data);
    if (status == GRAPHI_OK) {
        status = evaluator_open(&job, true, test, &evaluator);
        test = NULL; /* the evaluator's, also when it failed */
    }
    if (status == GRAPHI_OK) {
        job_describe(&evaluator.job, &result);
        if (options->explain)
            job_explain(options, evaluator.job.plan);
        status = score_test(&evaluator, &result);
        job_row(&evaluator.job, job.name, &result);
        job_record(&evaluator.job, &result);
        status = job_finish(options, &result, status);
    }
    evaluator_close(&evaluator);
    graphi_data_close(test);
    graphi_data_close(data);
    job_close(&job);
    result_end(&result);
    return status;
}
