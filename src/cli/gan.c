/* SPDX-License-Identifier: Apache-2.0 */
/* One step is one run of the discriminator's update, then two of the generator's, all on the same noise; a third plan
 * draws samples from the same state. Noise depends on seed and step alone, so a resumed run goes on bit for bit. The
 * state counts runs with updates: three a step. Samples have noise of their own that never changes, a column for each
 * class. */
#include "cli/gan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/checkpoint.h"
#include "cli/form.h"
#include "cli/gan_steps.h"
#include "cli/png.h"
#include "cli/resume.h"
#include "cli/training.h"
#include "tool/output.h"
#include "tool/plan.h"
#include "tool/report.h"

enum { Z = 100 };

struct gan {
    const struct options *options;
    struct options local; /* of the players, with length and rate as they are usually trained */
    struct job job; /* the discriminator, and everybody's state */
    struct job generator, sampler;
    graphi_data *data;
    graphi_data_info about;
    graphi_schedule schedule;
    float *images, *z;
    int32_t *labels;
    uint64_t step, last_step;
    struct output_log log;
    struct result *result;
    struct losses mean;
    graphi_status drawn; /* whether pictures could be written */
};

/* A further player over the same state. */
static graphi_status player_begin(struct gan *gan, const char *role, struct job *player)
{
    graphi_model_options model = gan->job.model;
    model.role = role;
    return job_beside(&gan->job, &model, player);
}

/* Under the setting that the discriminator has, whose layers are the same; where that was measured (seconds > 0) so are
 * this one's operations. */
static graphi_status player_plan(struct gan *gan, double seconds, struct job *player)
{
    graphi_plan_info first;
    graphi_plan_get_info(gan->job.plan, &first);
    return job_plan_under(player, &first.setting, seconds);
}

static graphi_status settle(struct gan *gan)
{
    const graphi_model_info *s = &gan->job.info;
    const size_t pixels = (size_t)(s->batch * s->image * s->image * s->channels);
    gan->images = calloc(pixels, sizeof *gan->images);
    gan->z = calloc((size_t)s->batch * Z, sizeof *gan->z);
    gan->labels = calloc((size_t)s->batch, sizeof *gan->labels);
    if (!gan->images || !gan->z || !gan->labels)
        return report_error(GRAPHI_MEMORY, "batch", "found no memory, expected %zu bytes",
                            pixels * sizeof *gan->images);
    return training_length(&gan->local, s, gan->about.batches, &gan->last_step, &gan->schedule);
}

static graphi_status gan_open(const struct options *options, struct result *result, struct gan *gan)
{
    const double seconds = (options->tune_given ? options->tune : 5) / 2; /* two players are measured */
    graphi_model_options model;
    uint64_t logged; /* each step of a row has it before the checkpoint */
    bool owes;       /* no validation */
    *gan = (struct gan){.options = options, .local = *options, .result = result, .mean = NO_LOSSES};
    gan->local.tune = options->tune_given ? seconds : options->tune;
    graphi_status status = training_check(options);
    checkpoint_watch(options->checkpoint);
    if (status != GRAPHI_OK)
        return status;
    if (options->role)
        return report_usage("--role", options->role, "nothing: training alternates");
    if (!options->out && (status = output_check(".", true)) != GRAPHI_OK) /* where samples go */
        return status;
    status = form_with_data(options, options->subject, GRAPHI_TRAIN, &model, &gan->data);
    if (status != GRAPHI_OK)
        return status;
    graphi_data_get_info(gan->data, &gan->about);
    training_note_data(result, &gan->about);
    if ((status = job_begin(&gan->local, options->subject, &model, &gan->job)) != GRAPHI_OK ||
        (status = settle(gan)) != GRAPHI_OK ||
        (status = player_begin(gan, "generator", &gan->generator)) != GRAPHI_OK ||
        (status = player_begin(gan, "sample", &gan->sampler)) != GRAPHI_OK)
        return status;
    if (options->resume && (status = checkpoint_load(&gan->job, gan->data, &gan->mean, &owes)) != GRAPHI_OK)
        return status;
    gan->step = gan_steps(gan->job.name, graphi_state_step(gan->job.state));
    if (options->resume)
        resume_note(&gan->job, gan->step, gan->last_step, false, result);
    if ((status = job_plan(&gan->job, seconds)) != GRAPHI_OK ||
        (status = player_plan(gan, gan->job.plan_loaded ? 0 : seconds, &gan->generator)) != GRAPHI_OK ||
        (status = player_plan(gan, 0, &gan->sampler)) != GRAPHI_OK)
        return status;
    return training_log(options, "step,epoch,real_loss,fake_loss,generator_loss", gan->step, &gan->log, &logged);
}

static void gan_close(struct gan *gan)
{
    if (gan->log.file)
        fclose(gan->log.file);
    job_close(&gan->generator);
    job_close(&gan->sampler);
    graphi_data_close(gan->data);
    job_close(&gan->job);
    free(gan->images);
    free(gan->z);
    free(gan->labels);
}

/* U(-1, 1) from a stream that seed and step begin. */
static void fill_noise(const struct gan *gan, uint64_t step)
{
    uint64_t state = gan->options->seed * 0xd1342543de82ef95ull + step * 0x2545f4914f6cdd1dull;
    for (int64_t i = 0; i < gan->job.info.batch * Z; i++)
        gan->z[i] = (float)(job_random(&state) >> 40) * 0x1p-23f - 1;
}

/* Noise and labels, which every player takes. */
static graphi_status feed(const struct gan *gan, graphi_run *run)
{
    const size_t batch = (size_t)gan->job.info.batch;
    graphi_status status = graphi_run_set(run, "z", GRAPHI_F32, gan->z, batch * Z * sizeof *gan->z);
    return status == GRAPHI_OK ? graphi_run_set(run, "labels", GRAPHI_I32, gan->labels, batch * sizeof *gan->labels)
                               : status;
}

static graphi_status update(const struct gan *gan, struct job *player, int times)
{
    graphi_run *run = player->run;
    const float rate = (float)graphi_schedule_rate(&gan->schedule, (int64_t)gan->step);
    graphi_status status = feed(gan, run);
    if (status == GRAPHI_OK)
        status = graphi_run_set(run, "learning_rate", GRAPHI_F32, &rate, sizeof rate);
    for (int i = 0; i < times && status == GRAPHI_OK; i++)
        status = graphi_run_execute(run);
    if (status == GRAPHI_OK)
        job_clock(player);
    return status;
}

static graphi_status one_step(struct gan *gan, struct losses *losses)
{
    const graphi_model_info *s = &gan->job.info;
    const size_t bytes = (size_t)(s->batch * s->image * s->image * s->channels) * sizeof *gan->images;
    const size_t labels = (size_t)s->batch * sizeof *gan->labels;
    graphi_run *d = gan->job.run, *g = gan->generator.run;
    graphi_status status;
    float real, fake, generator;
    int64_t rows;
    fill_noise(gan, gan->step + 1);
    if ((status = graphi_data_next(gan->data, gan->images, bytes, gan->labels, labels, &rows)) != GRAPHI_OK ||
        (status = graphi_run_set(d, "images", GRAPHI_F32, gan->images, bytes)) != GRAPHI_OK ||
        (status = update(gan, &gan->job, 1)) != GRAPHI_OK ||
        (status = update(gan, &gan->generator, GAN_GENERATOR_RUNS)) != GRAPHI_OK ||
        (status = graphi_run_get(d, "loss/real", GRAPHI_F32, &real, sizeof real)) != GRAPHI_OK ||
        (status = graphi_run_get(d, "loss/fake", GRAPHI_F32, &fake, sizeof fake)) != GRAPHI_OK ||
        (status = graphi_run_get(g, "loss", GRAPHI_F32, &generator, sizeof generator)) != GRAPHI_OK)
        return report_failure(status);
    *losses = (struct losses){(double)real, (double)fake, (double)generator};
    gan->step = gan_steps(gan->job.name, graphi_state_step(gan->job.state));
    if (!isfinite(losses->real + losses->fake + losses->generator))
        return report_error(GRAPHI_NONFINITE, "loss", "found %g, %g and %g at step %llu, expected finite numbers",
                            losses->real, losses->fake, losses->generator,
                            (unsigned long long)gan->step);
    return GRAPHI_OK;
}

/* As many full rows as the batch gives, a column for each class; DIR/samples-STEP.png. gan->drawn, not the status, says
 * that it cannot be written: the state is whole all the same. */
static graphi_status write_samples(struct gan *gan)
{
    const graphi_model_info *s = &gan->job.info;
    const int64_t columns = s->classes < s->batch ? s->classes : s->batch, rows = s->batch / columns;
    const size_t bytes = (size_t)(s->batch * s->image * s->image * s->channels) * sizeof *gan->images;
    char path[4096];
    graphi_status status;
    for (int64_t i = 0; i < s->batch; i++)
        gan->labels[i] = (int32_t)(i % columns);
    fill_noise(gan, 0);
    if ((status = feed(gan, gan->sampler.run)) != GRAPHI_OK ||
        (status = graphi_run_execute(gan->sampler.run)) != GRAPHI_OK ||
        (status = graphi_run_get(gan->sampler.run, "images", GRAPHI_F32, gan->images, bytes)) != GRAPHI_OK)
        return report_failure(status);
    snprintf(path, sizeof path, "%s%ssamples-%06llu.png", gan->options->out ? gan->options->out : "",
             gan->options->out ? "/" : "", (unsigned long long)gan->step);
    gan->drawn = png_write_grid(path, gan->images, rows, columns, s->image, s->image, s->channels);
    if (gan->drawn == GRAPHI_OK)
        result_file(gan->result, path);
    return GRAPHI_OK;
}

static graphi_status take_stock(struct gan *gan, const struct losses *mean)
{
    json_t *train = gan->result->train;
    long long epoch = graphi_data_get_position(gan->data).epoch;
    result_append(json_object_get(train, "loss"), json_real(mean->real + mean->fake));
    result_append(json_object_get(train, "value"), json_real(mean->generator));
    report_progress(gan->options->quiet, "%s", "");
    if (!gan->options->quiet)
        fprintf(stderr, "step %llu, epoch %lld: discriminator loss %.4f real, %.4f fake, generator loss %.4f\n",
                (unsigned long long)gan->step, epoch, mean->real, mean->fake, mean->generator);
    if (gan->log.file) {
        fprintf(gan->log.file, "%llu,%lld,%.6f,%.6f,%.6f\n", (unsigned long long)gan->step, epoch, mean->real,
                mean->fake, mean->generator);
        output_log_row(&gan->log);
    }
    return write_samples(gan);
}

static graphi_status loop(struct gan *gan)
{
    const struct options *o = gan->options;
    const uint64_t first = gan->step, every = (uint64_t)(o->validate ? o->validate : gan->about.batches);
    const double started = report_seconds();
    double stepping = 0; /* validations, samples and checkpoints count in what is left, not in what a step takes */
    struct losses now;
    graphi_status status = GRAPHI_OK;
    while (status == GRAPHI_OK && gan->drawn == GRAPHI_OK && gan->step < gan->last_step && !report_interrupted()) {
        const double begun = report_seconds();
        if ((status = one_step(gan, &now)) != GRAPHI_OK)
            break;
        losses_add(&gan->mean, &now);
        const double ended = report_seconds(), steps = (double)(gan->step - first);
        stepping += ended - begun;
        report_progress(
            o->quiet, "step %llu of %llu, discriminator loss %.4f, generator loss %.4f, %.1f ms a step, %.0f s left",
            (unsigned long long)gan->step, (unsigned long long)gan->last_step, gan->mean.real + gan->mean.fake,
            gan->mean.generator, stepping / steps * 1e3,
            (ended - started) / steps * (double)(gan->last_step - gan->step));
        bool last = gan->step == gan->last_step;
        if (gan->step % every == 0 || last)
            status = take_stock(gan, &gan->mean);
        if (status == GRAPHI_OK && o->every && gan->step % (uint64_t)o->every == 0 && !last)
            status = checkpoint_save(&gan->job, gan->data, &gan->mean, false, gan->result);
    }
    report_progress(o->quiet, "%s", "");
    if (status == GRAPHI_OK)
        status = checkpoint_save(&gan->job, gan->data, &gan->mean, false, gan->result);
    if (status == GRAPHI_OK)
        status = gan->drawn;
    return training_end(&gan->job, &gan->log, gan->step, gan->last_step, false, status, gan->result);
}

static void summarize(struct gan *gan)
{
    char hash[65];
    graphi_state_sha256(gan->job.state, hash);
    json_t *train = gan->result->train;
    result_set(train, "steps", json_integer((json_int_t)gan->step));
    result_set(train, "epochs", json_integer(graphi_data_get_position(gan->data).epoch));
    result_set(train, "state_sha256", json_string(hash));
    result_plan(gan->result, gan->job.plan, gan->job.run);
    job_row(&gan->job, "discriminator", gan->result);
    job_row(&gan->generator, "generator", gan->result);
    job_record(&gan->job, gan->result);
    result_note(
        gan->result,
        "loss is the discriminator's, value the generator's; the plan and the timeline are the discriminator's");
}

int gan_train(const struct options *options)
{
    struct result result = result_begin("train", NULL, options->argc, options->argv);
    struct gan gan;
    result.train = json_pack("{s:[],s:[],s:s}", "loss", "value", "metric", "generator loss");
    result_set(result.root, "train", result.train);
    graphi_status status = gan_open(options, &result, &gan);
    if (status == GRAPHI_OK) {
        job_describe(&gan.job, &result);
        if (options->explain)
            job_explain(options, gan.job.plan);
        status = loop(&gan);
        summarize(&gan);
        if (status == GRAPHI_OK)
            status = job_timeline(&gan.job, 1, &result);
        status = job_finish(options, &result, status);
    }
    gan_close(&gan);
    result_end(&result);
    return status;
}
