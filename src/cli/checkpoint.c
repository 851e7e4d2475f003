/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint says (graphi/train.h), as options of a command. */
#include "cli/checkpoint.h"

#include "cli/gan_steps.h"
#include "tool/report.h"

#include <stdio.h>
#include <string.h>

graphi_status checkpoint_open(const struct options *options, graphi_checkpoint **out)
{
    graphi_status status = graphi_checkpoint_open(options->checkpoint, out);
    return status == GRAPHI_OK ? status : report_failure(status);
}

graphi_status checkpoint_complete(const graphi_checkpoint *file, const char *name, struct options *o)
{
    graphi_form form = {.model = {.size = o->size, .task = o->task, .merged = o->merged, .batch = o->batch,
                                  .image = o->image, .classes = o->classes, .steps = o->unroll, .units = o->units,
                                  .batch_norm = o->batch_norm, .lrn = o->lrn, .auxiliary = o->auxiliary,
                                  .bottleneck = o->bottleneck, .layers = o->layers, .dropout = o->dropout,
                                  .optimizer = o->optimizer, .role = o->role},
                        .level = o->level,
                        .vocabulary = o->vocabulary};
    const graphi_model_options *m = &form.model;
    graphi_status status = graphi_checkpoint_complete(file, name, &form);
    if (status != GRAPHI_OK)
        return report_failure(status);
    o->size = m->size;
    o->task = m->task;
    o->merged = m->merged;
    o->batch = m->batch;
    o->image = m->image;
    o->classes = m->classes;
    o->unroll = m->steps;
    o->units = m->units;
    o->batch_norm = m->batch_norm;
    o->lrn = m->lrn;
    o->auxiliary = m->auxiliary;
    o->bottleneck = m->bottleneck;
    o->layers = m->layers;
    o->dropout = m->dropout;
    o->optimizer = m->optimizer;
    o->level = form.level;
    o->vocabulary = form.vocabulary;
    return GRAPHI_OK;
}

graphi_status checkpoint_options(struct options *options, const char *name, int64_t *vocabulary)
{
    graphi_checkpoint *file = NULL;
    graphi_checkpoint_info info;
    graphi_status status = checkpoint_open(options, &file);
    if (status != GRAPHI_OK)
        return status;
    graphi_checkpoint_get_info(file, &info);
    *vocabulary = info.vocabulary;
    status = checkpoint_complete(file, name, options);
    graphi_checkpoint_close(file);
    return status;
}

/* A score of windows of another length, in other rows, or of images of another side, looks like that of the training's
 * own validation. */
static void note_other_form(const struct job *job, const graphi_checkpoint_info *said, struct result *result)
{
    const graphi_model_info *s = &job->info;
    if (s->feed == GRAPHI_MODEL_TEXT && said->unroll > 0 && (said->unroll != s->steps || said->batch != s->batch))
        result_note(result, "scored in windows of %lld in %lld rows, training had %lld in %lld", (long long)s->steps,
                    (long long)s->batch, (long long)said->unroll, (long long)said->batch);
    if (s->feed == GRAPHI_MODEL_IMAGES && said->image > 0 && said->image != s->image)
        result_note(result, "scored on images of side %lld, training had %lld", (long long)s->image,
                    (long long)said->image);
}

static graphi_status load(const struct job *job, const graphi_data *data, graphi_checkpoint **file)
{
    graphi_status status = checkpoint_open(job->options, file);
    if (status != GRAPHI_OK)
        return status;
    status = graphi_checkpoint_load(*file, job->state, job->name, &job->model, data);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* Of input graphs the numbers of words and labels are those of the training files. */
static graphi_status check_words(const struct job *job, const struct samples *data, const graphi_checkpoint *file)
{
    const char *said = graphi_checkpoint_text(file, "data.encoding");
    graphi_data_info about;
    char found[24];
    samples_info(data, &about);
    snprintf(found, sizeof found, "%016llx", (unsigned long long)about.encoding);
    if (!data->trees || !said || strcmp(said, found) == 0)
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, job->options->checkpoint,
                        "found words and labels %s, expected %s: those of the files it was trained on", said, found);
}

graphi_status checkpoint_load_parameters(const struct job *job, const struct samples *data, struct result *result)
{
    graphi_checkpoint *file = NULL;
    graphi_checkpoint_info info;
    graphi_status status = load(job, data->data, &file);
    if (status == GRAPHI_OK)
        status = check_words(job, data, file);
    if (status == GRAPHI_OK) {
        graphi_checkpoint_get_info(file, &info);
        note_other_form(job, &info, result);
    }
    graphi_checkpoint_close(file);
    return status;
}

graphi_status checkpoint_weights(const struct job *job, struct result *result)
{
    graphi_checkpoint *file = NULL;
    const char *path = job->options->checkpoint;
    if (!path) {
        result_note(result, "weights are random; --checkpoint FILE takes trained ones");
        return GRAPHI_OK;
    }
    graphi_status status = load(job, NULL, &file);
    if (status == GRAPHI_OK)
        result_note(result, "weights: %s, step %llu", path,
                    (unsigned long long)gan_steps(job->name, graphi_state_step(job->state)));
    graphi_checkpoint_close(file);
    return status;
}
