/* SPDX-License-Identifier: Apache-2.0 */
/* graphi eval: a checkpoint on a split of its data, by default the test split, or what training held out. */
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/evaluate.h"
#include "cli/form.h"
#include "cli/gan_steps.h"
#include "tool/plan_notes.h"
#include "tool/report.h"

#include <string.h>

static const char *const splits[] = {[GRAPHI_TRAIN] = "train", [GRAPHI_VALIDATION] = "validation",
                                     [GRAPHI_TEST] = "test"};

/* --split, by default test. */
static graphi_data_split split_asked(const struct options *options)
{
    int split = GRAPHI_TEST;
    while (options->split && strcmp(options->split, splits[split]) != 0)
        split--;
    return (graphi_data_split)split;
}

static const char *split_of(const struct evaluator *e)
{
    graphi_data_info about;
    samples_info(&e->data, &about);
    return e->whole ? "whole" : splits[about.split];
}

/* One pass over the split, or the --steps batches of it that were asked for, whole or not at all. */
static graphi_status score_all(struct evaluator *e, graphi_score *score, struct result *result)
{
    const struct options *o = e->job.options;
    struct predictions predictions = {.info = {0}};
    char whole[48];
    graphi_status status = GRAPHI_OK;
    snprintf(whole, sizeof whole, "to score the %s split", split_of(e));
    if (o->output)
        status = predictions_begin(o, evaluator_rows(e, o->steps), &e->job.info, &predictions);
    e->predictions = o->output ? &predictions : NULL;
    if (status == GRAPHI_OK)
        status = evaluator_score(e, o->steps, score);
    if (status == GRAPHI_OK) {
        job_explain_run(o, e->job.run); /* an error is the last that is said */
        status = report_stopped("eval", whole);
    }
    graphi_status ended = predictions_end(&predictions, status == GRAPHI_OK, result);
    e->predictions = NULL;
    return status == GRAPHI_OK ? ended : status;
}

/* The metric goes into the result when it is one of the whole split (or of the --steps batches asked for). */
static graphi_status score_split(struct evaluator *e, struct result *result)
{
    const char *metric = e->job.info.metric;
    graphi_score score;
    graphi_status status = score_all(e, &score, result);
    if (status != GRAPHI_OK)
        return status;
    result->train = json_pack("{s:n,s:n,s:[f],s:s,s:[o],s:n}", "steps", "epochs", "loss", score.loss, "metric", metric,
                              "value", result_metric(result, score.metric), "state_sha256");
    result_set(result->root, "train", result->train);
    if (e->job.info.feed == GRAPHI_MODEL_IMAGES) {
        result_note(result, "scored over %lld samples of the %s split", (long long)score.samples, split_of(e));
        return GRAPHI_OK;
    }
    graphi_data_info about;
    samples_info(&e->data, &about);
    if (e->data.trees) {
        if (about.note)
            result_note(result, "data: %s", about.note);
        result_note(result, "scored over %lld %s of %lld samples of the %s split, %lld words are not in the vocabulary",
                    (long long)score.samples, e->data.graphs.roots ? "roots" : "vertices", (long long)about.samples,
                    split_of(e), (long long)about.unknown);
        return GRAPHI_OK;
    }
    result_note(result, "scored over %lld of %lld tokens of the %s split, windows of %lld in %lld rows",
                (long long)(score.samples * e->job.info.steps),
                (long long)about.samples, split_of(e), (long long)e->job.info.steps, (long long)about.batch);
    result_note(result, "%lld of %lld tokens (%.2f %%) are not in the vocabulary, and count as <unk>",
                (long long)about.unknown, (long long)about.samples,
                100 * (double)about.unknown / (double)about.samples);
    return GRAPHI_OK;
}

/* Where nobody asks and there are no test files, what training held out: a single file has no other part that was not
 * learnt. */
static graphi_status open_split(const struct options *options, const struct samples *data, bool whole,
                                struct result *result, struct samples *out)
{
    graphi_status status = samples_open_split(data, whole ? GRAPHI_TRAIN : split_asked(options), out);
    if (status == GRAPHI_OK && whole)
        result_note(result,
                    "another text than it was trained on: all of it is scored, its words numbered as in training");
    if (status == GRAPHI_UNSUPPORTED && !options->split) {
        char why[512];
        snprintf(why, sizeof why, "%s", graphi_message());
        status = samples_open_split(data, GRAPHI_VALIDATION, out);
        if (status == GRAPHI_OK)
            result_note(result, "no test split, scored on what training holds out: %s", why);
    }
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* The network in its evaluation form, with the parameters of the checkpoint. */
static graphi_status open(const struct options *options, struct result *result, struct job *job, struct evaluator *e)
{
    graphi_model_options model;
    struct samples data = {NULL}, split = {NULL};
    graphi_status status = form_trained(options, options->subject, &model, &data, &e->whole);
    const bool whole = e->whole; /* opening begins anew */
    if (status == GRAPHI_OK)
        status = open_split(options, &data, whole, result, &split);
    if (status == GRAPHI_OK) {
        model.evaluation = true; /* of the file only what evaluation computes with: no slots, no side classifiers */
        status = job_begin(options, options->subject, &model, job);
    }
    if (status == GRAPHI_OK)
        status = checkpoint_load_parameters(job, &data, result);
    if (status == GRAPHI_OK) {
        status = evaluator_open(job, true, split, e);
        e->whole = whole;
        split = (struct samples){NULL}; /* the evaluator's, also when it failed */
    }
    samples_close(&split);
    samples_close(&data);
    return status;
}

int command_eval(const struct options *options)
{
    struct job job = {0};
    struct evaluator evaluator = {0};
    if (gan_is(options->subject))
        return report_usage("eval", options->subject, "a network with a metric: samples come from training");
    if (!options->checkpoint)
        return report_usage("--checkpoint", "nothing", "the file that training wrote");
    graphi_model_info info;
    if (options->output && graphi_model_get_info(options->subject, NULL, &info) == GRAPHI_OK &&
        info.feed == GRAPHI_MODEL_TREES)
        return report_usage("--output", options->subject, "a network of images or text");
    struct result result = result_begin("eval", NULL, options->argc, options->argv);
    graphi_status status = open(options, &result, &job, &evaluator);
    if (status == GRAPHI_OK) {
        job_describe(&evaluator.job, &result);
        if (options->data && !options_given(options, "--data"))
            result_note(&result, "--data: %s, on which %s was trained", options->data, options->checkpoint);
        if (options->explain)
            job_explain(options, evaluator.job.plan);
        status = score_split(&evaluator, &result);
        job_row(&evaluator.job, job.name, &result);
        result_plan(&result, evaluator.job.plan, evaluator.job.run);
        job_record(&evaluator.job, &result);
        if (status == GRAPHI_OK)
            status = job_timeline(&evaluator.job, 1, &result);
        status = job_finish(options, &result, status);
    }
    evaluator_close(&evaluator);
    job_close(&job);
    result_end(&result);
    return status;
}
