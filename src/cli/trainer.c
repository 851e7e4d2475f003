/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop. A step's data depend on the position alone, its random numbers on seed and step, so a run that was
 * killed and resumed from its checkpoint goes on bit for bit. */
#include "cli/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/report.h"

#define FASHION "/usr/share/datasets/fashion-mnist"

graphi_status open_data(const struct options *options, const char *name, graphi_data_split split,
                        graphi_model_options *model, graphi_data **data)
{
    graphi_model_info info;
    graphi_data_info about;
    if (options->inference || options->training)
        return report_usage(options->command, options->inference ? "--inference" : "--training",
                            "neither of the two: train trains, eval evaluates");
    graphi_status status = job_model_options(options, model);
    if (status != GRAPHI_OK)
        return status;
    model->task = options->task ? options->task : "real";
    if ((status = graphi_model_get_info(name, model, &info)) != GRAPHI_OK)
        return report_failure(status);
    if (info.feed == GRAPHI_MODEL_VECTORS)
        return report_usage("--task", "bench", "real: the bench form of %s is made for timing, not for data", name);
    bool images = info.feed == GRAPHI_MODEL_IMAGES;
    if (!options->data && !images)
        return report_usage("--data", "nothing", "a text file");
    graphi_data_options how = {.split = split,
                               .batch = info.batch,
                               .seed = options->seed,
                               .height = images ? info.image : 0,
                               .width = images ? info.image : 0,
                               .channels = images ? info.channels : 0,
                               .classes = options->classes,
                               .steps = images ? 0 : info.steps,
                               .cache_bytes = images ? (size_t)1 << 31 : 0,
                               .raw = !info.metric, /* a network that makes images wants them in [0, 1] */
                               .characters = options->level && strcmp(options->level, "character") == 0,
                               .format = images ? GRAPHI_DATA_IMAGES : GRAPHI_DATA_TEXT};
    if (options->classes && !images)
        return report_usage("--classes", name, "a network of images");
    if (options->level && strcmp(options->level, "character") != 0 && strcmp(options->level, "word") != 0)
        return report_usage("--level", options->level, "word or character");
    status = graphi_data_open(options->data ? options->data : FASHION, &how, data);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_data_get_info(*data, &about);
    if (images)
        model->classes = about.classes;
    else
        model->vocabulary = about.classes;
    return GRAPHI_OK;
}

void note_labels(struct result *result, const graphi_data_info *about)
{
    if (about->labels < about->classes)
        result_note(result, "%lld classes are told apart, labels of %lld occur in the training files",
                    (long long)about->classes, (long long)about->labels);
}

struct position_reader {
    long long epoch, index, batch;
    unsigned long long seed, hash;
    int found;
};

static void read_position(void *context, const char *key, const char *value)
{
    struct position_reader *reader = context;
    if (strcmp(key, "data.epoch") == 0)
        reader->found += sscanf(value, "%lld", &reader->epoch) == 1;
    if (strcmp(key, "data.index") == 0)
        reader->found += sscanf(value, "%lld", &reader->index) == 1;
    if (strcmp(key, "data.batch") == 0)
        reader->found += sscanf(value, "%lld", &reader->batch) == 1;
    if (strcmp(key, "data.seed") == 0)
        reader->found += sscanf(value, "%llu", &reader->seed) == 1;
    if (strcmp(key, "data.hash") == 0)
        reader->found += sscanf(value, "%llx", &reader->hash) == 1;
}

/* Going on bit for bit needs the same data in the same order. */
static graphi_status check_position(const struct position_reader *reader, const char *path, uint64_t seed,
                                    const graphi_data *data)
{
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    if (reader->found != 5)
        return report_error(GRAPHI_INVALID, path,
                            "found no position in the data, expected a checkpoint that training wrote");
    if (reader->hash != info.hash)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of other data (%016llx), expected %016llx",
                            reader->hash, (unsigned long long)info.hash);
    if (reader->batch != info.batch)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of --batch %lld, expected %lld", reader->batch,
                            (long long)info.batch);
    if (reader->seed != seed)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of --seed %llu, expected %llu", reader->seed,
                            (unsigned long long)seed);
    return GRAPHI_OK;
}

graphi_status checkpoint_load(const char *path, uint64_t seed, graphi_state *state, graphi_data *data)
{
    struct position_reader reader = {0};
    graphi_status status = graphi_state_load(state, path, read_position, &reader);
    if (status != GRAPHI_OK)
        return report_failure(status);
    if (data && (status = check_position(&reader, path, seed, data)) != GRAPHI_OK)
        return status;
    if (data)
        status = graphi_data_set_position(data, (graphi_data_position){reader.epoch, reader.index});
    return status == GRAPHI_OK ? status : report_failure(status);
}

graphi_status checkpoint_save(const char *path, uint64_t seed, const graphi_state *state, const graphi_data *data)
{
    char epoch[32], index[32], batch[32], shuffle[32], hash[32];
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    graphi_data_position position = graphi_data_get_position(data);
    snprintf(epoch, sizeof epoch, "%lld", (long long)position.epoch);
    snprintf(index, sizeof index, "%lld", (long long)position.index);
    snprintf(batch, sizeof batch, "%lld", (long long)info.batch);
    snprintf(shuffle, sizeof shuffle, "%llu", (unsigned long long)seed);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)info.hash);
    const char *keys[] = {"data.epoch", "data.index", "data.batch", "data.seed", "data.hash"};
    const char *values[] = {epoch, index, batch, shuffle, hash};
    graphi_status status = graphi_state_save(state, path, 5, keys, values);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static graphi_status open_log(struct trainer *t)
{
    const char *path = t->job.options->log;
    if (!path)
        return GRAPHI_OK;
    t->log = fopen(path, t->job.options->resume ? "a" : "w");
    if (!t->log)
        return report_error(GRAPHI_IO, path, "found that it cannot be written (%s), expected a writable place",
                            strerror(errno));
    if (!t->job.options->resume)
        fprintf(t->log, "step,epoch,loss,rate,validation_loss,%s\n", t->job.info.metric);
    return GRAPHI_OK;
}

static graphi_status settle_length(struct trainer *t)
{
    const struct options *o = t->job.options;
    const graphi_model_info *info = &t->job.info;
    int64_t epochs = o->epochs ? o->epochs : info->epochs, steps = o->steps ? o->steps : epochs * t->about.batches;
    t->last_step = (uint64_t)steps;
    t->validate_every = o->validate ? o->validate : t->about.batches;
    graphi_status status = graphi_schedule_parse(o->schedule ? o->schedule : info->schedule,
                                                 o->lr > 0 ? o->lr : info->rate, t->about.batches, &t->schedule);
    return status == GRAPHI_OK ? status : report_failure(status);
}

graphi_status trainer_open(const struct options *options, const char *name, graphi_data_split split, double tune,
                           struct result *result, struct trainer *t)
{
    graphi_model_options model;
    graphi_data *other;
    *t = (struct trainer){.result = result};
    if (options->resume && !options->checkpoint)
        return report_usage("--resume", "no --checkpoint", "--checkpoint FILE");
    if (options->every && !options->checkpoint)
        return report_usage("--every", "no --checkpoint", "--checkpoint FILE");
    graphi_status status = open_data(options, name, GRAPHI_TRAIN, &model, &t->data);
    if (status != GRAPHI_OK)
        return status;
    graphi_data_get_info(t->data, &t->about);
    /* What can be wrong is looked at before the plan is tuned, which takes seconds. */
    if ((status = job_begin(options, name, &model, &t->job)) != GRAPHI_OK ||
        (status = batch_open(&t->job.info, &t->batch)) != GRAPHI_OK || (status = settle_length(t)) != GRAPHI_OK)
        return status;
    if (t->job.info.feed == GRAPHI_MODEL_IMAGES)
        note_labels(result, &t->about);
    status = graphi_data_open_split(t->data, split, 0, &other);
    if (status == GRAPHI_OK) {
        t->validates = true;
        if ((status = evaluator_open(&t->job, false, other, &t->validation)) != GRAPHI_OK)
            return status;
    } else if (status == GRAPHI_UNSUPPORTED) { /* there is none: a broken one is an error */
        result_note(result, "no validation: %s", graphi_message());
    } else {
        return report_failure(status);
    }
    if (options->resume &&
        (status = checkpoint_load(options->checkpoint, options->seed, t->job.state, t->data)) != GRAPHI_OK)
        return status;
    if ((status = job_plan(&t->job, tune)) != GRAPHI_OK || (status = open_log(t)) != GRAPHI_OK)
        return status;
    t->step = graphi_state_step(t->job.state);
    result->train = json_object();
    json_object_set_new(result->root, "train", result->train);
    json_object_set_new(result->train, "loss", json_array());
    json_object_set_new(result->train, "value", json_array());
    json_object_set_new(result->train, "metric", json_string(t->job.info.metric));
    return GRAPHI_OK;
}

void trainer_close(struct trainer *t)
{
    if (t->log)
        fclose(t->log);
    if (t->validates)
        evaluator_close(&t->validation);
    graphi_data_close(t->data);
    job_close(&t->job);
    batch_close(&t->batch);
    *t = (struct trainer){0};
}

graphi_status trainer_feed(struct trainer *t)
{
    const graphi_model_info *s = &t->job.info;
    float rate = (float)graphi_schedule_rate(&t->schedule, (int64_t)t->step);
    int64_t rows;
    graphi_status status;
    graphi_data_position position = graphi_data_get_position(t->data);
    if (s->feed != GRAPHI_MODEL_IMAGES && position.index == 0 &&
        (status = zero_states(t->job.state, "state/")) != GRAPHI_OK)
        return status;
    graphi_run_set_first_sample(t->job.run,
                                (uint64_t)((position.epoch * t->about.batches + position.index) * s->batch));
    if ((status = batch_next(&t->batch, s, t->data, t->job.run, &rows)) != GRAPHI_OK ||
        (status = graphi_run_set(t->job.run, "learning_rate", &rate, sizeof rate)) != GRAPHI_OK)
        return report_failure(status);
    return GRAPHI_OK;
}

static graphi_status validate(struct trainer *t, double loss)
{
    struct score score = {0};
    graphi_status status = GRAPHI_OK;
    bool accuracy = metric_is_accuracy(&t->job.info);
    if (t->validates)
        status = evaluator_score(&t->validation, 0, &score);
    if (status != GRAPHI_OK || report_interrupted())
        return status;
    json_array_append_new(json_object_get(t->result->train, "loss"), json_real(loss));
    json_array_append_new(json_object_get(t->result->train, "value"),
                          t->validates ? result_metric(t->result, score.metric) : json_null());
    report_progress(t->job.options->quiet, "%s", "");
    if (!t->job.options->quiet && t->validates)
        fprintf(stderr,
                accuracy ? "step %llu: loss %.4f, validation loss %.4f, %s %.2f %%\n"
                         : "step %llu: loss %.4f, validation loss %.4f, %s %.2f\n",
                (unsigned long long)t->step, loss, score.loss, t->job.info.metric,
                accuracy ? 100 * score.metric : score.metric);
    if (t->log) {
        fprintf(t->log, "%llu,%lld,%.6f,%g,", (unsigned long long)t->step,
                (long long)graphi_data_get_position(t->data).epoch, loss,
                graphi_schedule_rate(&t->schedule, (int64_t)t->step));
        if (t->validates)
            fprintf(t->log, "%.6f,%.6f\n", score.loss, score.metric);
        else
            fputs(",\n", t->log);
        fflush(t->log); /* a killed run keeps its rows */
    }
    return GRAPHI_OK;
}

static graphi_status one_step(struct trainer *t, double *smooth)
{
    float loss;
    graphi_status status = trainer_feed(t);
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_run_execute(t->job.run)) != GRAPHI_OK ||
        (status = graphi_run_get(t->job.run, "loss", &loss, sizeof loss)) != GRAPHI_OK)
        return report_failure(status);
    if (!isfinite(loss))
        return report_error(GRAPHI_NONFINITE, "loss",
                            "found %g at step %llu, expected a finite number; --check-numerics names "
                            "the operation",
                            (double)loss, (unsigned long long)t->step);
    job_clock(&t->job);
    *smooth = *smooth == 0 ? loss : 0.95 * *smooth + 0.05 * loss;
    t->step = graphi_state_step(t->job.state);
    return GRAPHI_OK;
}

static void progress(const struct trainer *t, double smooth, double started, uint64_t first)
{
    double seconds = report_seconds() - started, each = seconds / (double)(t->step - first);
    report_progress(t->job.options->quiet,
                    "step %llu of %llu, epoch %lld, loss %.4f, %.1f ms a step, %.0f samples/s, %.0f s left",
                    (unsigned long long)t->step, (unsigned long long)t->last_step,
                    (long long)graphi_data_get_position(t->data).epoch, smooth, each * 1e3,
                    (double)t->job.info.batch / each, each * (double)(t->last_step - t->step));
}

static void summarize(struct trainer *t)
{
    char hash[65];
    graphi_state_sha256(t->job.state, hash);
    json_object_set_new(t->result->train, "steps", json_integer((json_int_t)t->step));
    json_object_set_new(t->result->train, "epochs", json_integer(graphi_data_get_position(t->data).epoch));
    json_object_set_new(t->result->train, "state_sha256", json_string(hash));
}

graphi_status trainer_run(struct trainer *t)
{
    const struct options *o = t->job.options;
    graphi_status status = GRAPHI_OK;
    double smooth = 0, started = report_seconds();
    uint64_t first = t->step;
    while (status == GRAPHI_OK && t->step < t->last_step && !report_interrupted()) {
        status = one_step(t, &smooth);
        if (status != GRAPHI_OK)
            break;
        progress(t, smooth, started, first);
        bool last = t->step == t->last_step;
        if (t->step % (uint64_t)t->validate_every == 0 || last)
            status = validate(t, smooth);
        if (status == GRAPHI_OK && o->checkpoint && o->every && t->step % (uint64_t)o->every == 0 && !last)
            status = checkpoint_save(o->checkpoint, o->seed, t->job.state, t->data);
    }
    report_progress(o->quiet, "%s", "");
    if (status == GRAPHI_OK && o->checkpoint)
        status = checkpoint_save(o->checkpoint, o->seed, t->job.state, t->data);
    if (status == GRAPHI_OK)
        status = output_log(t->log, o->log);
    summarize(t);
    if (status == GRAPHI_OK && report_interrupted())
        status =
            report_error(GRAPHI_INTERRUPTED, "train", "found Ctrl-C at step %llu, expected to reach %llu; %s",
                         (unsigned long long)t->step, (unsigned long long)t->last_step,
                         o->checkpoint ? "the checkpoint is written, --resume goes on" : "no --checkpoint was given");
    return status;
}
