/* SPDX-License-Identifier: Apache-2.0 */
/* What training is asked for, shows and leaves behind; the steps are the library's. */
#include "cli/training.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/form.h"
#include "cli/gan_steps.h"
#include "cli/resume.h"
#include "cli/solvers.h"
#include "cli/training_log.h"
#include "tool/plan.h"
#include "tool/report.h"

/* --- what is asked for --- */

static graphi_status check(const struct options *options)
{
    const char *needs = options->resume      ? "--resume"
                        : options->every     ? "--every"
                        : options->overwrite ? "--overwrite"
                                             : NULL;
    if (options->steps && options->epochs)
        return report_usage("--epochs", "--steps too", "one of the two");
    if (options->resume && options->overwrite)
        return report_usage("--overwrite", "--resume too", "one of the two");
    if (needs && !options->checkpoint)
        return report_usage(needs, "no --checkpoint", "--checkpoint FILE");
    if (options->resume && access(options->checkpoint, R_OK) != 0)
        return report_error(GRAPHI_IO, options->checkpoint, "found no readable file (%s), expected one",
                            strerror(errno));
    if (options->schedule && graphi_schedule_parse(options->schedule, 1, 0, NULL) != GRAPHI_OK)
        return report_failure(GRAPHI_INVALID);
    const graphi_status status = solvers_check(options);
    return status == GRAPHI_OK ? training_log_check(options->log) : status;
}

/* What of a folder was joined or left out, and where there are fewer labels than classes: one wrong byte makes 256 of
 * 10. */
static void note_data(struct result *result, const graphi_data_info *about)
{
    if (about->note)
        result_note(result, "data: %s", about->note);
    if (about->format != GRAPHI_DATA_TEXT && about->labels == 1)
        result_note(result, "all training labels are of one class: nothing is told apart");
    else if (about->format != GRAPHI_DATA_TEXT && about->labels < about->classes)
        result_note(result, "%lld classes are told apart, labels of %lld occur in the training files",
                    (long long)about->classes, (long long)about->labels);
}

/* Length and rate that were not typed are the network's. */
static graphi_status settle_length(struct options *o, const graphi_model_info *info, int64_t batches)
{
    if (!o->steps && !o->epochs)
        o->epochs = info->epochs;
    const bool resumed = o->resume && o->schedule && !options_given(o, "--schedule");
    if (!o->schedule)
        o->schedule = info->schedule;
    if (!o->lr_given)
        o->lr = info->rate;
    o->lr_given = true;
    graphi_schedule schedule;
    graphi_status status = graphi_schedule_parse(o->schedule, o->lr, batches, &schedule);
    if (status == GRAPHI_INVALID && resumed)
        return report_error(status, o->checkpoint,
                            "found train.schedule '%s' over epochs of %lld steps, expected marks that rise and at most "
                            "2^53 steps",
                            o->schedule, (long long)batches);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static graphi_status open_validation(struct training *t, graphi_data_split split)
{
    struct samples other;
    graphi_status status = samples_open_split(&t->data, split, &other);
    if (status == GRAPHI_UNSUPPORTED) { /* there is none: a broken one is an error */
        result_note(t->result, "no validation: %s", graphi_message());
        return GRAPHI_OK;
    }
    if (status != GRAPHI_OK)
        return report_failure(status);
    t->validates = true;
    if (split == GRAPHI_TEST)
        result_note(t->result, "%s: of the test split", t->job.info.metric);
    return evaluator_open(&t->job, false, other, &t->validation);
}

graphi_status training_open(const struct options *options, const char *name, graphi_data_split split,
                            struct result *result, struct training *t)
{
    graphi_model_options model;
    *t = (struct training){.options = *options, .result = result};
    graphi_status status = check(options);
    if (status != GRAPHI_OK || (status = form_with_data(options, name, GRAPHI_TRAIN, &model, &t->data)) != GRAPHI_OK)
        return status;
    samples_info(&t->data, &t->about);
    /* What can be wrong is looked at before the plan is tuned, which takes seconds. */
    if ((status = job_begin(&t->options, name, &model, &t->job)) != GRAPHI_OK ||
        (status = settle_length(&t->options, &t->job.info, t->about.batches)) != GRAPHI_OK)
        return status;
    note_data(result, &t->about);
    result->train = json_pack("{s:[],s:[],s:s}", "loss", "value", "metric",
                              t->job.info.metric ? t->job.info.metric : "generator loss");
    result_set(result->root, "train", result->train);
    if (t->job.info.metric && (status = open_validation(t, split)) != GRAPHI_OK)
        return status;
    status = samples_feed(&t->data, &t->feed);
    if (status == GRAPHI_OK && t->validates)
        status = samples_feed(&t->validation.data, &t->validation_feed);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* --- what is told --- */

static void tell_note(void *context, const char *text)
{
    struct training *t = context;
    report_progress(t->options.quiet, "%s", "");
    result_note(t->result, "%s", text);
    if (!t->options.quiet)
        report_warning("%s", text);
}

static void tell_saved(void *context, const char *path) { result_file(((struct training *)context)->result, path); }

static void tell_step(void *context, const graphi_trainer_info *info)
{
    struct training *t = context;
    graphi_group_info group;
    graphi_group_get_info(t->group, &group);
    if (t->group)
        job_clock_ms(&t->job, group.step_ms);
    else
        job_clock(&t->job);
    report_progress(t->options.quiet,
                    "step %llu of %llu, epoch %lld, loss %.4f, %.1f ms a step, %.0f samples/s, %.0f s left",
                    (unsigned long long)info->step, (unsigned long long)info->last_step, (long long)info->at.epoch,
                    info->loss[0], info->step_ms, (double)t->job.info.batch / info->step_ms * 1e3, info->left_s);
}

static graphi_status tell_scored(void *context, const graphi_scored *batch)
{
    const struct training *t = context;
    report_progress(t->options.quiet, "%s: %lld of %lld batches scored", t->job.name, (long long)batch->index + 1,
                    (long long)batch->batches);
    return GRAPHI_OK;
}

/* What is held out of the training files is no test. */
static const char *split_word(const struct training *t)
{
    graphi_data_info about = {.split = GRAPHI_VALIDATION};
    if (t->validates)
        samples_info(&t->validation.data, &about);
    return about.split == GRAPHI_TEST ? "test" : "validation";
}

/* What validation says, by the name of its split. */
static void tell_score(const struct training *t, const graphi_trainer_info *info, const graphi_score *score)
{
    const bool accuracy = metric_of(&t->job.info) == GRAPHI_METRIC_ACCURACY;
    const char *split = split_word(t);
    if (!t->options.quiet)
        fprintf(stderr, "step %llu: loss %.4f, %s loss %.4f, %s %s %.2f%s\n", (unsigned long long)info->step,
                info->loss[0], split, score->loss, split, t->job.info.metric,
                accuracy ? 100 * score->metric : score->metric, accuracy ? " %" : "");
}

void training_tell_losses(const struct training *t, double loss, json_t *value)
{
    result_append(json_object_get(t->result->train, "loss"), json_real(loss));
    result_append(json_object_get(t->result->train, "value"), value);
    report_progress(t->options.quiet, "%s", "");
}

static graphi_status tell_validated(void *context, const graphi_trainer_info *info, const graphi_score *score)
{
    struct training *t = context;
    training_tell_losses(t, info->loss[0], score ? result_metric(t->result, score->metric) : json_null());
    if (score)
        tell_score(t, info, score);
    if (!t->log.file)
        return GRAPHI_OK;
    fprintf(t->log.file, "%llu,%lld,%.6f,%g,", (unsigned long long)info->step, (long long)info->at.epoch,
            info->loss[0], info->rate);
    if (score)
        fprintf(t->log.file, "%.6f,%.6f\n", score->loss, score->metric);
    else
        fputs(",\n", t->log.file);
    output_log_row(&t->log);
    return GRAPHI_OK;
}

/* --- the trainer --- */

/* At the same step in all processes. */
static bool stopped_together(void *context)
{
    const struct training *t = context;
    graphi_group_info info;
    graphi_group_get_info(t->group, &info);
    return info.stopped;
}

/* Those of the options; of input graphs also what their numbers mean, which the trainer knows of other data itself. */
static void add_strings(struct training *t, graphi_trainer_options *how)
{
    const char *const *keys, *const *values;
    int count = resume_strings(&t->job, &keys, &values);
    memcpy(t->keys, keys, (size_t)count * sizeof *keys);
    memcpy(t->values, values, (size_t)count * sizeof *values);
    snprintf(t->encoding, sizeof t->encoding, "%016llx", (unsigned long long)t->about.encoding);
    if (t->data.trees && count < TRAINING_STRINGS) {
        t->keys[count] = "data.encoding";
        t->values[count++] = t->encoding;
    }
    how->keys = t->keys;
    how->values = t->values;
    how->string_count = count;
}

graphi_trainer_options training_usual(struct training *t)
{
    const struct options *o = &t->options;
    graphi_trainer_options how = {.graph = {t->group ? graphi_group_graph(t->group) : t->job.graph},
                                  .stepper = graphi_group_stepper(t->group),
                                  .evaluation = t->validates ? t->validation.job.graph : NULL,
                                  .state = t->job.state,
                                  .machine = t->job.machine,
                                  .seed = o->seed,
                                  .training = t->feed,
                                  .validation = t->validation_feed,
                                  .metric = metric_of(&t->job.info),
                                  .steps = o->steps,
                                  .epochs = o->epochs,
                                  .rate = o->lr,
                                  .schedule = o->schedule,
                                  .validate_every = o->validate,
                                  .patience = o->patience,
                                  .best = o->best,
                                  .checkpoint = o->checkpoint,
                                  .every = o->every,
                                  .start = o->resume      ? GRAPHI_TRAINER_RESUME
                                           : o->overwrite ? GRAPHI_TRAINER_OVERWRITE
                                                          : GRAPHI_TRAINER_NEW,
                                  .network = t->job.name,
                                  .model = &t->job.model,
                                  .reads = solvers_follow(t->ranks),
                                  .stop = t->ranks ? stopped_together : evaluator_stopped,
                                  .stepped = tell_step,
                                  .scored = tell_scored,
                                  .validated = tell_validated,
                                  .saved = tell_saved,
                                  .note = tell_note,
                                  .context = t};
    add_strings(t, &how);
    return how;
}

graphi_status training_begin(struct training *t, const graphi_trainer_options *how)
{
    graphi_status status = graphi_trainer_create(how, &t->trainer);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* The validation that the checkpoint owes is made where the log ends before it, too; not where it has its row. */
static void settle_owed(struct training *t, uint64_t logged)
{
    graphi_trainer_info info;
    graphi_trainer_get_info(t->trainer, &info);
    const uint64_t every = (uint64_t)(t->options.validate ? t->options.validate : t->about.batches);
    const bool due = info.step % every == 0 || info.step == info.last_step;
    graphi_trainer_owe(t->trainer, logged < info.step && (info.owes || due));
}

graphi_status training_log(struct training *t, const char *columns)
{
    graphi_trainer_info info;
    graphi_trainer_get_info(t->trainer, &info);
    uint64_t logged = info.step - info.owes;
    graphi_status status = training_log_open(&t->options, columns, info.step, &t->log, &logged);
    if (status != GRAPHI_OK)
        return status;
    settle_owed(t, logged);
    graphi_trainer_get_info(t->trainer, &info);
    if (t->options.resume)
        resume_note(&t->job, info.step, info.last_step, info.owes, t->result);
    return GRAPHI_OK;
}

graphi_status training_prepare(const struct options *options, const char *name, graphi_data_split split, double tune,
                               graphi_ranks *ranks, struct result *result, struct training *t)
{
    char columns[128];
    graphi_status status = training_open(options, name, split, result, t);
    const bool group = solvers_asked(&t->options);
    t->ranks = ranks;
    if (status == GRAPHI_OK && group)
        status = solvers_open(&t->options, ranks, &t->job, &t->group);
    if (status != GRAPHI_OK)
        return status;
    const graphi_trainer_options how = training_usual(t);
    if ((status = training_begin(t, &how)) != GRAPHI_OK ||
        (!group && (status = job_plan(&t->job, tune)) != GRAPHI_OK))
        return status;
    if ((!group && (status = graphi_trainer_use(t->trainer, 0, t->job.run)) != GRAPHI_OK) ||
        (t->validates && (status = graphi_trainer_use(t->trainer, -1, t->validation.job.run)) != GRAPHI_OK))
        return report_failure(status);
    snprintf(columns, sizeof columns, "step,epoch,loss,rate,%s_loss,%s", split == GRAPHI_TEST ? "test" : "validation",
             t->job.info.metric);
    return training_log(t, columns);
}

static void summarize(struct training *t, const graphi_trainer_info *info)
{
    char hash[65];
    graphi_state_sha256(t->job.state, hash);
    result_set(t->result->train, "steps", json_integer((json_int_t)info->step));
    result_set(t->result->train, "epochs", json_integer(info->at.epoch));
    result_set(t->result->train, "state_sha256", json_string(hash));
}

/* After the last checkpoint: the log is whole and named in the result, --explain is answered, Ctrl-C told if it left
 * any work. */
static graphi_status end(struct training *t, const graphi_trainer_info *info, graphi_status status)
{
    const struct options *o = &t->options;
    const bool stopped = status == GRAPHI_INTERRUPTED;
    if (status == GRAPHI_OK || stopped) {
        const graphi_status written = output_log_check(&t->log, o->log);
        status = written == GRAPHI_OK ? status : written;
    }
    if (t->log.file && !t->log.error)
        result_file(t->result, o->log);
    if (status != GRAPHI_OK && status != GRAPHI_INTERRUPTED)
        return status;
    job_explain_run(o, t->job.run); /* an error is the last that is said */
    if (status == GRAPHI_OK)
        return status;
    return report_error(GRAPHI_INTERRUPTED, "train", "found %s at step %llu%s, expected to reach %llu; %s",
                        report_signal(), (unsigned long long)info->step,
                        info->owes ? " before its validation was over" : "", (unsigned long long)info->last_step,
                        o->checkpoint ? "the checkpoint is written, --resume goes on" : "no --checkpoint was given");
}

graphi_status training_run(struct training *t)
{
    graphi_trainer_info info;
    graphi_status status = graphi_trainer_run(t->trainer);
    report_progress(t->options.quiet, "%s", "");
    if (status != GRAPHI_OK && status != GRAPHI_INTERRUPTED && !t->reported)
        report_failure(status);
    graphi_trainer_get_info(t->trainer, &info);
    summarize(t, &info);
    return end(t, &info, status);
}

void training_close(struct training *t)
{
    if (t->log.file)
        fclose(t->log.file);
    graphi_trainer_destroy(t->trainer);
    graphi_group_destroy(t->group);
    if (t->validates)
        evaluator_close(&t->validation);
    samples_close(&t->data);
    job_close(&t->job);
    *t = (struct training){0};
}
