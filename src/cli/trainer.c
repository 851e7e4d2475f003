/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop. A step's data depend on the position alone, its random numbers on seed and step, so a run that was
 * killed and resumed from its checkpoint goes on bit for bit. */
#include "cli/trainer.h"

#include <math.h>
#include <string.h>

#include "cli/checkpoint.h"
#include "cli/form.h"
#include "cli/resume.h"
#include "tool/output.h"
#include "tool/plan.h"
#include "tool/report.h"

/* Regularly and at the end. */
static bool validates_at(const struct trainer *t, uint64_t step)
{
    return step % (uint64_t)t->validate_every == 0 || step == t->last_step;
}

/* What is held out of the training files is no test. */
static const char *split_word(graphi_data_split split) { return split == GRAPHI_TEST ? "test" : "validation"; }

graphi_status trainer_open(const struct options *options, const char *name, graphi_data_split split, double tune,
                           struct result *result, struct trainer *t)
{
    graphi_model_options model;
    graphi_data *other;
    char columns[128];
    uint64_t logged;
    *t = (struct trainer){.options = *options, .result = result, .mean = NO_LOSSES};
    graphi_status status = training_check(options);
    checkpoint_watch(options->checkpoint);
    if (status != GRAPHI_OK || (status = form_with_data(options, name, GRAPHI_TRAIN, &model, &t->data)) != GRAPHI_OK)
        return status;
    graphi_data_get_info(t->data, &t->about);
    /* What can be wrong is looked at before the plan is tuned, which takes seconds. */
    if ((status = job_begin(&t->options, name, &model, &t->job)) != GRAPHI_OK ||
        (status = batch_open(&t->job.info, &t->batch)) != GRAPHI_OK ||
        (status = training_length(&t->options, &t->job.info, t->about.batches, &t->last_step, &t->schedule)) !=
            GRAPHI_OK)
        return status;
    t->validate_every = options->validate ? options->validate : t->about.batches;
    training_note_data(result, &t->about);
    status = graphi_data_open_split(t->data, split, 0, &other);
    if (status == GRAPHI_OK) {
        t->validates = true;
        if (split == GRAPHI_TEST)
            result_note(result, "%s: of the test split", t->job.info.metric);
        if ((status = evaluator_open(&t->job, false, other, &t->validation)) != GRAPHI_OK)
            return status;
    } else if (status == GRAPHI_UNSUPPORTED) { /* there is none: a broken one is an error */
        result_note(result, "no validation: %s", graphi_message());
    } else {
        return report_failure(status);
    }
    if (options->resume && (status = checkpoint_load(&t->job, t->data, &t->mean, &t->owes)) != GRAPHI_OK)
        return status;
    t->step = logged = graphi_state_step(t->job.state);
    if (t->owes)
        logged--;
    snprintf(columns, sizeof columns, "step,epoch,loss,rate,%s_loss,%s", split_word(split), t->job.info.metric);
    if ((status = job_plan(&t->job, tune)) != GRAPHI_OK ||
        (status = training_log(options, columns, t->step, &t->log, &logged)) != GRAPHI_OK)
        return status;
    t->owes = logged < t->step && (t->owes || validates_at(t, t->step));
    if (options->resume)
        resume_note(&t->job, t->step, t->last_step, t->owes, result);
    result->train = json_object();
    result_set(result->root, "train", result->train);
    result_set(result->train, "loss", json_array());
    result_set(result->train, "value", json_array());
    result_set(result->train, "metric", json_string(t->job.info.metric));
    return GRAPHI_OK;
}

void trainer_close(struct trainer *t)
{
    if (t->log.file)
        fclose(t->log.file);
    if (t->validates)
        evaluator_close(&t->validation);
    graphi_data_close(t->data);
    job_close(&t->job);
    batch_close(&t->batch);
    *t = (struct trainer){0};
}

/* The next batch and the learning rate of this step. */
static graphi_status feed(struct trainer *t)
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
        (status = graphi_run_set(t->job.run, "learning_rate", GRAPHI_F32, &rate, sizeof rate)) != GRAPHI_OK)
        return report_failure(status);
    return GRAPHI_OK;
}

/* What validation says, by the name of its split. */
static void tell_score(const struct trainer *t, double loss, const struct score *score)
{
    const bool accuracy = metric_is_accuracy(&t->job.info);
    graphi_data_info about;
    graphi_data_get_info(t->validation.data, &about);
    const char *split = split_word(about.split);
    fprintf(stderr, "step %llu: loss %.4f, %s loss %.4f, %s %s %.2f%s\n", (unsigned long long)t->step, loss, split,
            score->loss, split, t->job.info.metric, accuracy ? 100 * score->metric : score->metric,
            accuracy ? " %" : "");
}

static graphi_status validate(struct trainer *t, double loss)
{
    struct score score = {0};
    graphi_status status = GRAPHI_OK;
    t->owes = true;
    if (t->validates)
        status = evaluator_score(&t->validation, 0, &score);
    if (status != GRAPHI_OK || report_interrupted())
        return status;
    result_append(json_object_get(t->result->train, "loss"), json_real(loss));
    result_append(json_object_get(t->result->train, "value"),
                          t->validates ? result_metric(t->result, score.metric) : json_null());
    report_progress(t->job.options->quiet, "%s", "");
    if (!t->job.options->quiet && t->validates)
        tell_score(t, loss, &score);
    if (t->log.file) {
        fprintf(t->log.file, "%llu,%lld,%.6f,%g,", (unsigned long long)t->step,
                (long long)graphi_data_get_position(t->data).epoch, loss,
                graphi_schedule_rate(&t->schedule, (int64_t)t->step - 1)); /* of the last step of the row */
        if (t->validates)
            fprintf(t->log.file, "%.6f,%.6f\n", score.loss, score.metric);
        else
            fputs(",\n", t->log.file);
        output_log_row(&t->log);
    }
    t->owes = false;
    return GRAPHI_OK;
}

static graphi_status one_step(struct trainer *t)
{
    float loss;
    graphi_status status = feed(t);
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_run_execute(t->job.run)) != GRAPHI_OK ||
        (status = graphi_run_get(t->job.run, "loss", GRAPHI_F32, &loss, sizeof loss)) != GRAPHI_OK)
        return report_failure(status);
    if (!isfinite(loss))
        return report_error(GRAPHI_NONFINITE, "loss",
                            "found %g at step %llu, expected a finite number; --check-numerics names "
                            "the operation",
                            (double)loss, (unsigned long long)t->step);
    job_clock(&t->job);
    losses_add(&t->mean, &(struct losses){.real = (double)loss});
    t->step = graphi_state_step(t->job.state);
    return GRAPHI_OK;
}

/* Validations and checkpoints count in what is left, not in what a step takes: `stepping` seconds since `first`. */
static void progress(const struct trainer *t, double started, double stepping, uint64_t first)
{
    const double steps = (double)(t->step - first), each = stepping / steps,
                 all = (report_seconds() - started) / steps;
    report_progress(t->job.options->quiet,
                    "step %llu of %llu, epoch %lld, loss %.4f, %.1f ms a step, %.0f samples/s, %.0f s left",
                    (unsigned long long)t->step, (unsigned long long)t->last_step,
                    (long long)graphi_data_get_position(t->data).epoch, t->mean.real, each * 1e3,
                    (double)t->job.info.batch / each, all * (double)(t->last_step - t->step));
}

static void summarize(struct trainer *t)
{
    char hash[65];
    graphi_state_sha256(t->job.state, hash);
    result_set(t->result->train, "steps", json_integer((json_int_t)t->step));
    result_set(t->result->train, "epochs", json_integer(graphi_data_get_position(t->data).epoch));
    result_set(t->result->train, "state_sha256", json_string(hash));
}

graphi_status trainer_run(struct trainer *t)
{
    const struct options *o = t->job.options;
    graphi_status status = GRAPHI_OK;
    const double started = report_seconds();
    double stepping = 0;
    const uint64_t first = t->step;
    if (t->owes)
        status = validate(t, t->mean.real);
    while (status == GRAPHI_OK && t->step < t->last_step && !report_interrupted()) {
        const double begun = report_seconds();
        status = one_step(t);
        stepping += report_seconds() - begun;
        if (status != GRAPHI_OK)
            break;
        progress(t, started, stepping, first);
        if (validates_at(t, t->step))
            status = validate(t, t->mean.real);
        if (status == GRAPHI_OK && o->every && t->step % (uint64_t)o->every == 0 && t->step != t->last_step)
            status = checkpoint_save(&t->job, t->data, &t->mean, t->owes, t->result);
    }
    report_progress(o->quiet, "%s", "");
    if (status == GRAPHI_OK)
        status = checkpoint_save(&t->job, t->data, &t->mean, t->owes, t->result);
    summarize(t);
    return training_end(&t->job, &t->log, t->step, t->last_step, t->owes, status, t->result);
}
