/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop. A step's data depend on the position alone, its random numbers on seed and step, so a training
 * that was killed and goes on from its checkpoint does so bit for bit. One thread; a step allocates nothing. */
#include <math.h>

#include "base/clock.h"
#include "base/status.h"
#include "engine/compile/ports.h"
#include "engine/run/run.h"
#include "train/trainer.h"
#include "train/trainer_note.h"

/* --- a step --- */

/* A callback tells the end of an epoch by giving nothing: then comes the first batch of the next one. */
static graphi_status next_batch(struct graphi_trainer *t)
{
    for (int tries = 0; tries < 2; tries++) {
        if (t->feeder.carried && feeder_at(&t->feeder).index == 0)
            TRY(graphi_state_zero(t->state, "state/"));
        TRY(feeder_next(&t->feeder));
        if (t->feeder.rows)
            break;
    }
    return GRAPHI_OK;
}

/* A schedule that has ended learns nothing more: somebody who went on further would wait for it in vain. */
static void tell_rate(struct graphi_trainer *t, double rate)
{
    if (t->told_rate || (float)rate != 0 || t->how.rate == 0)
        return;
    t->told_rate = true;
    trainer_note(t,
                 "the rate is 0 from step %llu on, the schedule '%s' has ended: nothing is learnt in the %llu steps "
                 "that are left; another --schedule goes on learning",
                 (unsigned long long)t->info.step + 1, t->how.schedule,
                 (unsigned long long)(t->info.last_step > t->info.step ? t->info.last_step - t->info.step : 0));
}

static graphi_status execute(struct graphi_trainer *t, int part, uint64_t first_sample)
{
    graphi_run *run = t->run[part];
    const float rate = (float)t->info.rate;
    int taken = 0;
    if (t->how.begin)
        TRY(t->how.begin(t->how.context, t->info.step, part, run));
    graphi_run_set_first_sample(run, first_sample);
    TRY(feeder_set(&t->feeder, run, &taken));
    if (plan_input(run->plan->compiled, t->how.rate_input) >= 0)
        TRY(graphi_run_set(run, t->how.rate_input, GRAPHI_F32, &rate, sizeof rate));
    for (int i = 0; i < t->how.times[part]; i++)
        TRY(graphi_run_execute(run));
    return GRAPHI_OK;
}

static double blend(double mean, double fresh)
{
    return isnan(mean) ? fresh : 0.95 * mean + 0.05 * fresh;
}

/* Somebody else's step, of the batch as it is in the buffers. */
static graphi_status have_stepped(struct graphi_trainer *t, uint64_t first_sample, float *loss)
{
    const struct feeder *f = &t->feeder;
    graphi_feed_array inputs[GRAPHI_FEED_ARRAYS];
    for (int i = 0; i < f->count; i++) {
        const struct feeder_input *input = &f->input[i];
        inputs[i] = (graphi_feed_array){input->name, input->dtype, input->sample_bytes, input->buffer};
    }
    const graphi_step_batch batch = {.inputs = inputs,
                                     .count = f->count,
                                     .samples = f->batch,
                                     .first_sample = first_sample,
                                     .rate_input = t->how.rate_input,
                                     .rate = (float)t->info.rate};
    return t->how.stepper->step(t->how.stepper->context, &batch, loss);
}

static graphi_status get_losses(struct graphi_trainer *t, float *loss)
{
    for (int i = 0; i < GRAPHI_TRAINER_LOSSES; i++)
        if (t->how.loss[i].output)
            TRY(graphi_run_get(t->run[t->how.loss[i].graph], t->how.loss[i].output, GRAPHI_F32, &loss[i],
                               sizeof loss[i]));
    return GRAPHI_OK;
}

static graphi_status take_losses(struct graphi_trainer *t, const float *loss)
{
    for (int i = 0; i < GRAPHI_TRAINER_LOSSES; i++) {
        if (!t->how.loss[i].output)
            continue;
        if (!isfinite(loss[i]))
            return fail(GRAPHI_NONFINITE, t->how.loss[i].output,
                        "found %g at step %llu, expected a finite number; --check-numerics names the operation",
                        (double)loss[i], (unsigned long long)t->info.step);
    }
    for (int i = 0; i < GRAPHI_TRAINER_LOSSES; i++)
        if (t->how.loss[i].output)
            t->info.loss[i] = blend(t->info.loss[i], (double)loss[i]);
    return GRAPHI_OK;
}

static graphi_status take_step(struct graphi_trainer *t)
{
    const graphi_data_position at = feeder_at(&t->feeder);
    const uint64_t batch = t->feeder.batches ? (uint64_t)(at.epoch * t->feeder.batches + at.index) : t->info.step;
    t->info.rate = graphi_schedule_rate(&t->schedule, (int64_t)t->info.step);
    tell_rate(t, t->info.rate);
    TRY(next_batch(t));
    float loss[GRAPHI_TRAINER_LOSSES] = {0};
    const uint64_t first_sample = batch * (uint64_t)t->feeder.batch;
    for (int i = 0; i < t->parts && !t->how.stepper; i++)
        TRY(execute(t, i, first_sample));
    TRY(t->how.stepper ? have_stepped(t, first_sample, loss) : get_losses(t, loss));
    TRY(take_losses(t, loss));
    t->info.step = graphi_state_step(t->state) / (uint64_t)t->runs_a_step;
    return GRAPHI_OK;
}

graphi_status graphi_trainer_step(graphi_trainer *t)
{
    GIVEN(t);
    TRY(trainer_compile(t));
    return take_step(t);
}

/* --- the loop --- */

static bool is_stopped(struct graphi_trainer *t)
{
    t->stopped |= t->how.stop && t->how.stop(t->how.context);
    return t->stopped;
}

/* Regularly and at the end. */
static bool validates_at(const struct graphi_trainer *t, uint64_t step)
{
    const int64_t every = t->how.validate_every ? t->how.validate_every : t->feeder.batches;
    return step == t->info.last_step || (every && step % (uint64_t)every == 0);
}

static bool is_better(const struct graphi_trainer *t, double metric)
{
    const double best = t->info.best;
    return isnan(best) || (t->how.metric == GRAPHI_METRIC_ACCURACY ? metric > best : metric < best);
}

/* The best score so far, its checkpoint, and whether there is hope for a better one. */
static graphi_status weigh_score(struct graphi_trainer *t, double metric)
{
    if (is_better(t, metric)) {
        t->info.best = metric;
        t->info.since = 0;
        return t->how.best ? graphi_trainer_save(t, t->how.best) : GRAPHI_OK;
    }
    t->info.since++;
    if (!t->how.patience || t->info.since < t->how.patience)
        return GRAPHI_OK;
    t->info.enough = true;
    trainer_note(t, "training ends at step %llu: no validation was better than %g in the last %lld",
                 (unsigned long long)t->info.step, t->info.best, (long long)t->info.since);
    return GRAPHI_OK;
}

static graphi_status validate(struct graphi_trainer *t)
{
    graphi_score score = {0};
    graphi_trainer_info info;
    t->info.owes = true;
    if (t->validates)
        TRY(scorer_run(&t->scorer, &score));
    if (is_stopped(t))
        return GRAPHI_OK;
    t->info.owes = false;
    graphi_trainer_get_info(t, &info);
    if (t->how.validated)
        t->ended = t->how.validated(t->how.context, &info, t->validates ? &score : NULL);
    return t->validates && !t->ended ? weigh_score(t, score.metric) : GRAPHI_OK;
}

/* Validations and checkpoints count in what is left, not in what a step takes. */
static void tell_step(struct graphi_trainer *t, int64_t began, int64_t stepping, uint64_t first)
{
    const double steps = (double)(t->info.step - first);
    graphi_trainer_info info;
    t->info.step_ms = (double)stepping / steps * 1e-6;
    t->info.left_s = (double)(clock_ns() - began) / steps * (double)(t->info.last_step - t->info.step) * 1e-9;
    graphi_trainer_get_info(t, &info);
    if (t->how.stepped)
        t->how.stepped(t->how.context, &info);
}

static graphi_status save(struct graphi_trainer *t)
{
    return t->how.checkpoint && !t->how.reads ? graphi_trainer_save(t, NULL) : GRAPHI_OK;
}

static graphi_status loop(struct graphi_trainer *t)
{
    const uint64_t first = t->info.step;
    const int64_t began = clock_ns();
    int64_t stepping = 0;
    if (t->info.owes)
        TRY(validate(t));
    while (!t->ended && !t->info.enough && t->info.step < t->info.last_step && !is_stopped(t)) {
        const int64_t begun = clock_ns();
        TRY(take_step(t));
        stepping += clock_ns() - begun;
        tell_step(t, began, stepping, first);
        if (validates_at(t, t->info.step))
            TRY(validate(t));
        const bool due = t->how.every && t->info.step % (uint64_t)t->how.every == 0;
        if (due && !t->ended && !t->info.enough && t->info.step != t->info.last_step)
            TRY(save(t));
    }
    return save(t);
}

static bool is_over(const struct graphi_trainer *t)
{
    return (t->info.step >= t->info.last_step || t->info.enough) && !t->info.owes;
}

graphi_status graphi_trainer_run(graphi_trainer *t)
{
    GIVEN(t);
    t->ended = GRAPHI_OK;
    t->stopped = false;
    if (is_over(t)) /* a file that is there stays as it is */
        return GRAPHI_OK;
    TRY(trainer_compile(t));
    TRY(loop(t));
    TRY(t->ended);
    if (!t->stopped || is_over(t)) /* nothing is left that was stopped */
        return GRAPHI_OK;
    return fail(GRAPHI_INTERRUPTED, "trainer", "found that it was stopped at step %llu%s, expected to reach %llu",
                (unsigned long long)t->info.step, t->info.owes ? " before its validation was over" : "",
                (unsigned long long)t->info.last_step);
}
