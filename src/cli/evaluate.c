/* SPDX-License-Identifier: Apache-2.0 */
/* Loss, accuracy and perplexity over a split, by graphi_run_score. */
#include "cli/evaluate.h"

#include <string.h>

#include "tool/plan.h"
#include "tool/report.h"

graphi_metric metric_of(const graphi_model_info *info)
{
    return !info->metric                             ? GRAPHI_METRIC_LOSS
           : strcmp(info->metric, "accuracy") == 0 ? GRAPHI_METRIC_ACCURACY
                                                   : GRAPHI_METRIC_PERPLEXITY;
}

bool evaluator_stopped(void *context) { return report_interrupted() != 0; }

graphi_status evaluator_open(const struct job *job, bool main, struct samples data, struct evaluator *e)
{
    graphi_model_options model = job->model;
    *e = (struct evaluator){.data = data};
    model.evaluation = true;
    graphi_status status = job_beside(job, &model, &e->job);
    return status != GRAPHI_OK ? status : main ? job_plan(&e->job, 0) : job_plan_under(&e->job, NULL, 0);
}

void evaluator_close(struct evaluator *e)
{
    job_close(&e->job);
    samples_close(&e->data);
    *e = (struct evaluator){0};
}

static int64_t count_batches(const graphi_data_info *info, int64_t most)
{
    return most > 0 && most < info->batches ? most : info->batches;
}

int64_t evaluator_rows(const struct evaluator *e, int64_t batches)
{
    graphi_data_info info;
    samples_info(&e->data, &info);
    if (info.format == GRAPHI_DATA_TEXT)
        return count_batches(&info, batches) * info.steps;
    const int64_t samples = count_batches(&info, batches) * info.batch;
    return samples < info.samples ? samples : info.samples; /* the last batch may be short */
}

static graphi_status scored(void *context, const graphi_scored *batch)
{
    struct evaluator *e = context;
    job_clock(&e->job);
    graphi_status status = e->predictions ? predictions_add(e->predictions, batch) : GRAPHI_OK;
    e->reported = status != GRAPHI_OK;
    report_progress(e->job.options->quiet, "%s: %lld of %lld batches scored", e->job.name, (long long)batch->index + 1,
                    (long long)batch->batches);
    return status;
}

graphi_status evaluator_score(struct evaluator *e, int64_t batches, graphi_score *score)
{
    const graphi_score_options how = {.metric = metric_of(&e->job.info), .batches = batches,
                                      .logits = e->predictions != NULL, .scored = scored, .stop = evaluator_stopped,
                                      .context = e};
    *score = (graphi_score){0};
    graphi_feed feed;
    graphi_status status = samples_feed(&e->data, &feed);
    if (status == GRAPHI_OK)
        status = graphi_run_score(e->job.run, &feed, &how, score);
    report_progress(e->job.options->quiet, "%s", "");
    return status == GRAPHI_OK || e->reported ? status : report_failure(status);
}
