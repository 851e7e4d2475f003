/* SPDX-License-Identifier: Apache-2.0 */
/* One step is one run of the discriminator's update, then two of the generator's, all on the same noise; a third plan
 * draws samples from the same state. Noise depends on seed and step alone, so a resumed run goes on bit for bit. The
 * state counts runs with updates: three a step. Samples have noise of their own that never changes, a column for each
 * class. */
#include "cli/gan.h"

#include <stdlib.h>
#include <string.h>

#include "cli/gan_steps.h"
#include "cli/png.h"
#include "cli/training.h"
#include "tool/output.h"
#include "tool/plan.h"
#include "tool/plan_notes.h"
#include "tool/report.h"

enum { Z = 100, DISCRIMINATOR = 0, GENERATOR = 1 };

struct gan {
    struct training training; /* first: callbacks are shared. Its job is the discriminator, and everybody's state */
    struct job generator, sampler;
    float *images, *z; /* a batch that was drawn; noise */
    int32_t *labels;   /* of what is drawn */
};

/* A further player over the same state. */
static graphi_status player_begin(struct gan *gan, const char *role, struct job *player)
{
    graphi_model_options model = gan->training.job.model;
    model.role = role;
    return job_beside(&gan->training.job, &model, player);
}

/* Under the setting that the discriminator has, whose layers are the same; where that was measured (seconds > 0) so are
 * this one's operations. */
static graphi_status player_plan(struct gan *gan, double seconds, struct job *player)
{
    graphi_plan_info first;
    graphi_plan_get_info(gan->training.job.plan, &first);
    const graphi_setting setting = graphi_decision_setting(&first.setting);
    return job_plan_under(player, &setting, seconds);
}

static graphi_status make_buffers(struct gan *gan)
{
    const graphi_model_info *s = &gan->training.job.info;
    const size_t pixels = (size_t)(s->batch * s->image * s->image * s->channels);
    gan->images = calloc(pixels, sizeof *gan->images);
    gan->z = calloc((size_t)s->batch * Z, sizeof *gan->z);
    gan->labels = calloc((size_t)s->batch, sizeof *gan->labels);
    return gan->images && gan->z && gan->labels
               ? GRAPHI_OK
               : report_error(GRAPHI_MEMORY, "batch", "found no memory, expected %zu bytes",
                              pixels * sizeof *gan->images);
}

/* U(-1, 1) from a stream that seed and step begin. */
static void fill_noise(const struct gan *gan, uint64_t step)
{
    uint64_t state = gan->training.options.seed * 0xd1342543de82ef95ull + step * 0x2545f4914f6cdd1dull;
    for (int64_t i = 0; i < gan->training.job.info.batch * Z; i++)
        gan->z[i] = (float)(job_random(&state) >> 40) * 0x1p-23f - 1;
}

static size_t noise_bytes(const struct gan *gan) { return (size_t)gan->training.job.info.batch * Z * sizeof *gan->z; }

/* --- what the trainer calls --- */

static graphi_status begin(void *context, uint64_t step, int part, graphi_run *run)
{
    struct gan *gan = context;
    if (part == DISCRIMINATOR)
        fill_noise(gan, step + 1);
    return graphi_run_set(run, "z", GRAPHI_F32, gan->z, noise_bytes(gan));
}

static void stepped(void *context, const graphi_trainer_info *info)
{
    struct gan *gan = context;
    job_clock(&gan->training.job);
    job_clock(&gan->generator);
    report_progress(gan->training.options.quiet,
                    "step %llu of %llu, discriminator loss %.4f, generator loss %.4f, %.1f ms a step, %.0f s left",
                    (unsigned long long)info->step, (unsigned long long)info->last_step, info->loss[0] + info->loss[1],
                    info->loss[2], info->step_ms, info->left_s);
}

/* As many full rows as the batch gives, a column for each class. */
static graphi_status draw(struct gan *gan)
{
    const graphi_model_info *s = &gan->training.job.info;
    const int64_t columns = s->classes < s->batch ? s->classes : s->batch;
    const size_t bytes = (size_t)(s->batch * s->image * s->image * s->channels) * sizeof *gan->images;
    graphi_run *run = gan->sampler.run;
    graphi_status status;
    for (int64_t i = 0; i < s->batch; i++)
        gan->labels[i] = (int32_t)(i % columns);
    fill_noise(gan, 0);
    if ((status = graphi_run_set(run, "z", GRAPHI_F32, gan->z, noise_bytes(gan))) != GRAPHI_OK ||
        (status = graphi_run_set(run, "labels", GRAPHI_I32, gan->labels,
                                 (size_t)s->batch * sizeof *gan->labels)) != GRAPHI_OK ||
        (status = graphi_run_execute(run)) != GRAPHI_OK ||
        (status = graphi_run_get(run, "images", GRAPHI_F32, gan->images, bytes)) != GRAPHI_OK)
        report_failure(status);
    return status;
}

/* DIR/samples-STEP.png */
static graphi_status write_samples(struct gan *gan, uint64_t step)
{
    const graphi_model_info *s = &gan->training.job.info;
    const char *folder = gan->training.options.out;
    const int64_t columns = s->classes < s->batch ? s->classes : s->batch, rows = s->batch / columns;
    char path[4096];
    graphi_status status = draw(gan);
    snprintf(path, sizeof path, "%s%ssamples-%06llu.png", folder ? folder : "", folder ? "/" : "",
             (unsigned long long)step);
    if (status == GRAPHI_OK)
        status = png_write_grid(path, gan->images, rows, columns, s->image, s->image, s->channels);
    if (status == GRAPHI_OK)
        result_file(gan->training.result, path);
    gan->training.reported = status != GRAPHI_OK;
    return status;
}

static graphi_status take_stock(void *context, const graphi_trainer_info *info, const graphi_score *score)
{
    struct gan *gan = context;
    struct training *t = &gan->training;
    const double real = info->loss[0], fake = info->loss[1], generator = info->loss[2];
    training_tell_losses(t, real + fake, json_real(generator));
    if (!t->options.quiet)
        fprintf(stderr, "step %llu, epoch %lld: discriminator loss %.4f real, %.4f fake, generator loss %.4f\n",
                (unsigned long long)info->step, (long long)info->at.epoch, real, fake, generator);
    if (t->log.file) {
        fprintf(t->log.file, "%llu,%lld,%.6f,%.6f,%.6f\n", (unsigned long long)info->step, (long long)info->at.epoch,
                real, fake, generator);
        output_log_row(&t->log);
    }
    return write_samples(gan, info->step);
}

static graphi_trainer_options usual(struct gan *gan)
{
    graphi_trainer_options how = training_usual(&gan->training);
    how.graph[GENERATOR] = gan->generator.graph;
    how.times[GENERATOR] = GAN_GENERATOR_RUNS;
    how.loss[0].output = "loss/real";
    how.loss[1].output = "loss/fake";
    how.loss[2].output = "loss";
    how.loss[2].graph = GENERATOR;
    how.begin = begin;
    how.stepped = stepped;
    how.validated = take_stock;
    how.context = gan;
    return how;
}

/* --- the command --- */

static graphi_status make_plans(struct gan *gan, double seconds)
{
    struct training *t = &gan->training;
    graphi_status status;
    if ((status = job_plan(&t->job, seconds)) != GRAPHI_OK ||
        (status = player_plan(gan, t->job.plan_loaded ? 0 : seconds, &gan->generator)) != GRAPHI_OK ||
        (status = player_plan(gan, 0, &gan->sampler)) != GRAPHI_OK)
        return status;
    if ((status = graphi_trainer_use(t->trainer, DISCRIMINATOR, t->job.run)) != GRAPHI_OK ||
        (status = graphi_trainer_use(t->trainer, GENERATOR, gan->generator.run)) != GRAPHI_OK)
        report_failure(status);
    return status;
}

static graphi_status gan_open(const struct options *options, struct result *result, struct gan *gan)
{
    const double seconds = (options->tune_given ? options->tune : 5) / 2; /* two players are measured */
    struct options half = *options;
    struct training *t = &gan->training;
    half.tune = options->tune_given ? seconds : options->tune;
    *gan = (struct gan){.images = NULL};
    graphi_status status;
    if (options->role)
        return report_usage("--role", options->role, "nothing: training alternates");
    if (!options->out && (status = output_check(".", true)) != GRAPHI_OK) /* where samples go */
        return status;
    if ((status = training_open(&half, options->subject, GRAPHI_VALIDATION, result, t)) != GRAPHI_OK ||
        (status = make_buffers(gan)) != GRAPHI_OK ||
        (status = player_begin(gan, "generator", &gan->generator)) != GRAPHI_OK ||
        (status = player_begin(gan, "sample", &gan->sampler)) != GRAPHI_OK)
        return status;
    const graphi_trainer_options how = usual(gan);
    if ((status = training_begin(t, &how)) != GRAPHI_OK || (status = make_plans(gan, seconds)) != GRAPHI_OK)
        return status;
    return training_log(t, "step,epoch,real_loss,fake_loss,generator_loss");
}

static void gan_close(struct gan *gan)
{
    graphi_trainer_destroy(gan->training.trainer);
    gan->training.trainer = NULL;
    job_close(&gan->generator);
    job_close(&gan->sampler);
    training_close(&gan->training);
    free(gan->images);
    free(gan->z);
    free(gan->labels);
}

static void summarize(struct gan *gan, struct result *result)
{
    struct job *job = &gan->training.job;
    result_plan(result, job->plan, job->run);
    job_row(job, "discriminator", result);
    job_row(&gan->generator, "generator", result);
    job_record(job, result);
    result_note(result, "loss is the discriminator's, value the generator's; the plan and the timeline are the "
                        "discriminator's");
}

int gan_train(const struct options *options)
{
    struct result result = result_begin("train", NULL, options->argc, options->argv);
    struct gan gan;
    graphi_status status = gan_open(options, &result, &gan);
    if (status == GRAPHI_OK) {
        job_describe(&gan.training.job, &result);
        if (options->explain)
            job_explain(options, gan.training.job.plan);
        status = training_run(&gan.training);
        summarize(&gan, &result);
        if (status == GRAPHI_OK)
            status = job_timeline(&gan.training.job, 1, &result);
        status = job_finish(options, &result, status);
    }
    gan_close(&gan);
    result_end(&result);
    return status;
}
