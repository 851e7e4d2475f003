/* SPDX-License-Identifier: Apache-2.0 */
/* Loss, accuracy and perplexity over a split. */
#include "cli/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/plan.h"
#include "tool/report.h"

bool metric_is_accuracy(const graphi_model_info *info) { return strcmp(info->metric, "accuracy") == 0; }

graphi_status zero_states(graphi_state *state, const char *prefix)
{
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    for (int i = 0; graphi_state_at(state, i, &name, &dtype, &rank, dims); i++) {
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        size_t bytes = graphi_dtype_size(dtype);
        for (int d = 0; d < rank; d++)
            bytes *= (size_t)dims[d];
        void *zeros = calloc(1, bytes ? bytes : 1);
        if (!zeros)
            return report_error(GRAPHI_MEMORY, name, "found no memory for %zu bytes, expected some", bytes);
        graphi_status status = graphi_state_set(state, name, zeros, bytes);
        free(zeros);
        if (status != GRAPHI_OK)
            return report_failure(status);
    }
    return GRAPHI_OK;
}

graphi_status batch_open(const graphi_model_info *s, struct batch *batch)
{
    const bool images = s->feed == GRAPHI_MODEL_IMAGES;
    const size_t rows = (size_t)s->batch, cells = (size_t)(images ? s->image * s->image * s->channels : s->steps);
    *batch = (struct batch){.input_bytes = rows * cells * 4, .target_bytes = rows * (images ? 1 : cells) * 4};
    batch->inputs = calloc(1, batch->input_bytes);
    batch->targets = calloc(1, batch->target_bytes);
    return batch->inputs && batch->targets
               ? GRAPHI_OK
               : report_error(GRAPHI_MEMORY, "batch", "found no memory, expected %zu bytes", batch->input_bytes);
}

graphi_status batch_set(const struct batch *batch, const graphi_model_info *info, graphi_run *run)
{
    const bool images = info->feed == GRAPHI_MODEL_IMAGES;
    graphi_status status = graphi_run_set(run, images ? "images" : "tokens", images ? GRAPHI_F32 : GRAPHI_I32,
                                          batch->inputs, batch->input_bytes);
    return status == GRAPHI_OK
               ? graphi_run_set(run, images ? "labels" : "targets", GRAPHI_I32, batch->targets, batch->target_bytes)
               : status;
}

graphi_status batch_next(struct batch *batch, const graphi_model_info *info, graphi_data *data, graphi_run *run,
                         int64_t *rows)
{
    graphi_status status =
        graphi_data_next(data, batch->inputs, batch->input_bytes, batch->targets, batch->target_bytes, rows);
    return status == GRAPHI_OK ? batch_set(batch, info, run) : status;
}

void batch_close(struct batch *batch)
{
    free(batch->inputs);
    free(batch->targets);
    *batch = (struct batch){0};
}

graphi_status evaluator_open(const struct job *job, bool main, graphi_data *data, struct evaluator *e)
{
    graphi_model_options model = job->model;
    *e = (struct evaluator){.data = data};
    model.evaluation = true;
    graphi_status status = job_beside(job, &model, &e->job);
    if (status == GRAPHI_OK)
        status = main ? job_plan(&e->job, 0) : job_plan_under(&e->job, NULL, 0);
    if (status != GRAPHI_OK)
        return status;
    return batch_open(&e->job.info, &e->batch);
}

static bool has_images(const struct evaluator *e) { return e->job.info.feed == GRAPHI_MODEL_IMAGES; }

static size_t logits_bytes(const graphi_model_info *s)
{
    const bool images = s->feed == GRAPHI_MODEL_IMAGES;
    return (size_t)(images ? s->batch * s->classes : s->steps * s->batch * s->vocabulary) * sizeof(float);
}

/* A text's are many, and its loss needs none of them here. */
static graphi_status make_logits(struct evaluator *e)
{
    const size_t bytes = logits_bytes(&e->job.info);
    if (e->logits || (!has_images(e) && !e->answers))
        return GRAPHI_OK;
    e->logits = calloc(1, bytes);
    return e->logits ? GRAPHI_OK
                     : report_error(GRAPHI_MEMORY, "logits", "found no memory, expected %zu bytes", bytes);
}

void evaluator_close(struct evaluator *e)
{
    job_close(&e->job);
    graphi_data_close(e->data);
    batch_close(&e->batch);
    free(e->logits);
    *e = (struct evaluator){0};
}

/* Cross-entropy and hits of the rows that are there: the last batch may be short. */
static void score_images(const struct evaluator *e, int64_t rows, struct score *score)
{
    int64_t classes = e->job.info.classes;
    for (int64_t r = 0; r < rows; r++) {
        const struct verdict verdict = answers_judge(e->logits + r * classes, classes, e->batch.targets[r]);
        score->loss += verdict.loss;
        score->metric += verdict.best == e->batch.targets[r];
    }
}

static graphi_status score_batch(struct evaluator *e, int64_t *rows, struct score *score)
{
    const graphi_model_info *s = &e->job.info;
    float loss;
    graphi_status status;
    if ((status = batch_next(&e->batch, s, e->data, e->job.run, rows)) != GRAPHI_OK ||
        (status = graphi_run_execute(e->job.run)) != GRAPHI_OK)
        return status;
    job_clock(&e->job);
    if (e->logits &&
        (status = graphi_run_get(e->job.run, "logits", GRAPHI_F32, e->logits, logits_bytes(s))) != GRAPHI_OK)
        return status;
    if (has_images(e)) {
        score_images(e, *rows, score);
        return GRAPHI_OK;
    }
    status = graphi_run_get(e->job.run, "loss", GRAPHI_F32, &loss, sizeof loss);
    if (status == GRAPHI_OK)
        score->loss += (double)loss * (double)*rows;
    return status;
}

static int64_t count_batches(const graphi_data_info *info, int64_t most)
{
    return most > 0 && most < info->batches ? most : info->batches;
}

int64_t evaluator_rows(const struct evaluator *e, int64_t batches)
{
    graphi_data_info info;
    graphi_data_get_info(e->data, &info);
    if (info.format == GRAPHI_DATA_TEXT)
        return count_batches(&info, batches) * info.steps;
    const int64_t samples = count_batches(&info, batches) * info.batch;
    return samples < info.samples ? samples : info.samples; /* the last batch may be short */
}

static graphi_status score_batches(struct evaluator *e, int64_t count, struct score *score)
{
    for (int64_t i = 0; i < count && !report_interrupted(); i++) {
        int64_t rows;
        graphi_status status = score_batch(e, &rows, score);
        if (status)
            return report_failure(status);
        if (e->answers && (status = answers_add(e->answers, e->logits, e->batch.targets, rows)) != GRAPHI_OK)
            return status;
        score->samples += rows;
        report_progress(e->job.options->quiet, "%s: %lld of %lld batches scored", e->job.name, (long long)i + 1,
                        (long long)count);
    }
    report_progress(e->job.options->quiet, "%s", "");
    return GRAPHI_OK;
}

graphi_status evaluator_score(struct evaluator *e, int64_t batches, struct score *score)
{
    graphi_data_info info;
    graphi_status status;
    graphi_data_get_info(e->data, &info);
    *score = (struct score){0};
    const int64_t count = count_batches(&info, batches);
    if ((status = graphi_data_set_position(e->data, (graphi_data_position){0, 0})) != GRAPHI_OK)
        return report_failure(status);
    if ((status = zero_states(e->job.state, "eval/state/")) != GRAPHI_OK || (status = make_logits(e)) != GRAPHI_OK)
        return status;
    uint64_t step = graphi_state_step(e->job.state); /* carried states are updates too, but evaluation is no training */
    status = score_batches(e, count, score);
    graphi_state_set_step(e->job.state, step);
    if (status)
        return status;
    if (score->samples) {
        score->loss /= (double)score->samples;
        score->metric = metric_is_accuracy(&e->job.info) ? score->metric / (double)score->samples : exp(score->loss);
    }
    if (!isfinite(score->loss)) /* an accuracy beside it would look like a result */
        return report_error(GRAPHI_NONFINITE, "evaluation",
                            "found a loss that is not finite over %lld samples at step %llu, expected parameters and "
                            "running statistics that give one",
                            (long long)score->samples, (unsigned long long)step);
    return GRAPHI_OK;
}
