/* SPDX-License-Identifier: Apache-2.0 */
/* graphi eval: a checkpoint on the test split. */
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/evaluate.h"
#include "cli/form.h"
#include "cli/gan_steps.h"
#include "tool/report.h"

/* One pass over the split, or the --steps batches of it that were asked for, whole or not at all. */
static graphi_status score_all(struct evaluator *e, struct score *score, struct result *result)
{
    const struct options *o = e->job.options;
    struct answers answers = {.info = {0}};
    graphi_status status = GRAPHI_OK;
    if (o->output)
        status = answers_begin(o, evaluator_rows(e, o->steps), &e->job.info, &answers);
    e->answers = o->output ? &answers : NULL;
    if (status == GRAPHI_OK)
        status = evaluator_score(e, o->steps, score);
    if (status == GRAPHI_OK) {
        job_explain_run(o, e->job.run); /* an error is the last that is said */
        status = report_stopped("eval", "to score the whole test split");
    }
    graphi_status ended = answers_end(&answers, status == GRAPHI_OK, result);
    e->answers = NULL;
    return status == GRAPHI_OK ? ended : status;
}

/* The metric goes into the result when it is one of the whole split (or of the --steps batches asked for). */
static graphi_status score_test(struct evaluator *e, struct result *result)
{
    const char *metric = e->job.info.metric;
    struct score score;
    graphi_status status = score_all(e, &score, result);
    if (status != GRAPHI_OK)
        return status;
    result->train = json_pack("{s:n,s:n,s:[f],s:s,s:[o],s:n}", "steps", "epochs", "loss", score.loss, "metric", metric,
                              "value", result_metric(result, score.metric), "state_sha256");
    result_set(result->root, "train", result->train);
    if (e->job.info.feed == GRAPHI_MODEL_IMAGES) {
        result_note(result, "%s %.4f, loss %.4f over %lld samples of the test split", metric, score.metric, score.loss,
                    (long long)score.samples);
        return GRAPHI_OK;
    }
    graphi_data_info about;
    graphi_data_get_info(e->data, &about);
    result_note(result, "%s %.4f, loss %.4f over %lld of %lld tokens of the test split, windows of %lld in %lld rows",
                metric, score.metric, score.loss, (long long)(score.samples * e->job.info.steps),
                (long long)about.samples, (long long)e->job.info.steps, (long long)about.batch);
    result_note(result, "%lld of %lld tokens (%.2f %%) are not in the vocabulary, and count as <unk>",
                (long long)about.unknown, (long long)about.samples,
                100 * (double)about.unknown / (double)about.samples);
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
    graphi_status status = form_trained(options, options->subject, &model, &data);
    if (status == GRAPHI_OK && (status = graphi_data_open_split(data, GRAPHI_TEST, 0, &test)) != GRAPHI_OK)
        report_failure(status);
    if (status == GRAPHI_OK) {
        model.evaluation = true; /* of the file only what evaluation computes with: no slots, no side classifiers */
        status = job_begin(options, options->subject, &model, &job);
    }
    if (status == GRAPHI_OK)
        status = checkpoint_load_parameters(&job, data, &result);
    if (status == GRAPHI_OK) {
        status = evaluator_open(&job, true, test, &evaluator);
        test = NULL; /* the evaluator's, also when it failed */
    }
    if (status == GRAPHI_OK) {
        job_describe(&evaluator.job, &result);
        if (options->data && !options_given(options, "--data"))
            result_note(&result, "--data: %s, on which %s was trained", options->data, options->checkpoint);
        if (options->explain)
            job_explain(options, evaluator.job.plan);
        status = score_test(&evaluator, &result);
        job_row(&evaluator.job, job.name, &result);
        result_plan(&result, evaluator.job.plan, evaluator.job.run);
        job_record(&evaluator.job, &result);
        if (status == GRAPHI_OK)
            status = job_timeline(&evaluator.job, 1, &result);
        status = job_finish(options, &result, status);
    }
    evaluator_close(&evaluator);
    graphi_data_close(test);
    graphi_data_close(data);
    job_close(&job);
    result_end(&result);
    return status;
}
