/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a training: everything that can be wrong is looked at, and what it goes on from loaded, before anything is
 * compiled: plans may be tuned for seconds. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "train/trainer.h"
#include "train/trainer_save.h"

/* --- what is asked for --- */

static graphi_status check_counts(const graphi_trainer_options *how)
{
    const struct {
        const char *name;
        int64_t value, most;
    } counts[] = {{"steps", how->steps, INT64_MAX},
                  {"epochs", how->epochs, INT64_MAX},
                  {"validate_every", how->validate_every, INT64_MAX},
                  {"every", how->every, INT64_MAX},
                  {"strings", how->string_count, 32}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < 0 || counts[i].value > counts[i].most)
            return fail(GRAPHI_INVALID, "trainer", "found %s %lld, expected 0 to %lld", counts[i].name,
                        (long long)counts[i].value, (long long)counts[i].most);
    if ((unsigned)how->start > GRAPHI_TRAINER_RESUME || (unsigned)how->metric > GRAPHI_METRIC_PERPLEXITY)
        return fail(GRAPHI_INVALID, "trainer", "found start %d and metric %d, expected those of train.h",
                    (int)how->start, (int)how->metric);
    if ((how->start == GRAPHI_TRAINER_RESUME || how->every) && !how->checkpoint)
        return fail(GRAPHI_INVALID, "trainer", "found no checkpoint, expected one to %s",
                    how->every ? "be written" : "go on from");
    return GRAPHI_OK;
}

static graphi_status settle_parts(struct graphi_trainer *t)
{
    graphi_trainer_options *how = &t->how;
    if (!how->graph[0])
        return fail(GRAPHI_INVALID, "trainer", "found no graph, expected one that learns");
    t->parts = how->graph[1] ? 2 : 1;
    if (how->stepper && (how->graph[1] || how->begin || how->times[0] > 1))
        return fail(GRAPHI_INVALID, "trainer",
                    "found a stepper beside a second graph, `times` or `begin`, expected one graph that it takes one "
                    "step of");
    if (how->stepper && how->training.set)
        return fail(GRAPHI_UNSUPPORTED, "trainer",
                    "found a feed that sets runs itself beside a stepper, expected samples that can be divided");
    for (int i = 0; i < t->parts; i++) {
        if (how->times[i] < 0)
            return fail(GRAPHI_INVALID, "trainer", "found %d times a step, expected some", how->times[i]);
        how->times[i] = how->times[i] ? how->times[i] : 1;
        t->runs_a_step += how->times[i];
    }
    if (!how->loss[0].output)
        how->loss[0].output = "loss";
    for (int i = 0; i < GRAPHI_TRAINER_LOSSES; i++)
        if (how->loss[i].output && (unsigned)how->loss[i].graph >= (unsigned)t->parts)
            return fail(GRAPHI_INVALID, "trainer", "found loss '%s' of graph %d, expected one of %d",
                        how->loss[i].output, how->loss[i].graph, t->parts);
    how->rate_input = how->rate_input ? how->rate_input : "learning_rate";
    how->schedule = how->schedule ? how->schedule : "constant";
    return GRAPHI_OK;
}

static graphi_status check_stepper(const struct graphi_trainer *t)
{
    const graphi_stepper *stepper = t->how.stepper;
    if (!stepper || (stepper->batch == t->feeder.batch && !t->how.training.symbol))
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "trainer", "found batches of %s%lld samples, expected %lld, those of the stepper",
                t->how.training.symbol ? "up to " : "", (long long)t->feeder.batch, (long long)stepper->batch);
}

/* After the feed, which knows how long an epoch is. */
static graphi_status settle_length(struct graphi_trainer *t)
{
    const graphi_trainer_options *how = &t->how;
    const int64_t batches = t->feeder.batches;
    int64_t steps = how->steps;
    if (!how->steps == !how->epochs)
        return fail(GRAPHI_INVALID, "trainer", "found %s, expected one of steps and epochs",
                    how->steps ? "both lengths" : "no length");
    if (how->epochs && !batches)
        return fail(GRAPHI_INVALID, "trainer",
                    "found epochs of unknown length, expected steps, or batches in the feed");
    if (how->epochs && __builtin_mul_overflow(how->epochs, batches, &steps))
        return fail(GRAPHI_INVALID, "trainer", "found %lld epochs of %lld batches, expected fewer",
                    (long long)how->epochs, (long long)batches);
    t->info.last_step = (uint64_t)steps;
    t->info.batches = batches;
    return graphi_schedule_parse(how->schedule, how->rate, batches, &t->schedule);
}

static bool has_input(const graphi_graph *graph, const char *name)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(graph, GRAPHI_PORT_INPUT, i, &port); i++)
        if (strcmp(port.name, name) == 0)
            return true;
    return false;
}

/* An input that no graph has would be fed to none, silently. */
static graphi_status check_inputs(const struct graphi_trainer *t)
{
    for (int k = 0; k < t->feeder.count; k++) {
        bool found = false;
        for (int i = 0; i < t->parts; i++)
            found |= has_input(t->how.graph[i], t->feeder.input[k].name);
        if (!found)
            return fail(GRAPHI_INVALID, "feed", "found input '%s', expected one that the graph has",
                        t->feeder.input[k].name);
    }
    return GRAPHI_OK;
}

/* --- state and validation --- */

static graphi_status make_state(struct graphi_trainer *t)
{
    const graphi_trainer_options *how = &t->how;
    if (!how->state)
        TRY(graphi_state_create(how->graph[0], how->seed, &t->own_state));
    t->state = how->state ? how->state : t->own_state;
    for (int i = 0; i < t->parts; i++)
        TRY(graphi_state_extend(t->state, how->graph[i]));
    return how->evaluation ? graphi_state_extend(t->state, how->evaluation) : GRAPHI_OK;
}

static bool asked_to_stop(void *context)
{
    struct graphi_trainer *t = context;
    t->stopped |= t->how.stop && t->how.stop(t->how.context);
    return t->stopped;
}

static graphi_status tell_scored(void *context, const graphi_scored *batch)
{
    const struct graphi_trainer *t = context;
    return t->how.scored ? t->how.scored(t->how.context, batch) : GRAPHI_OK;
}

static graphi_status open_validation(struct graphi_trainer *t)
{
    const graphi_score_options how = {
        .metric = t->how.metric, .scored = tell_scored, .stop = asked_to_stop, .context = t};
    if (!feeder_is_given(&t->how.validation))
        return GRAPHI_OK;
    if (!t->how.evaluation)
        return fail(GRAPHI_INVALID, "trainer", "found data for validation and no graph, expected `evaluation`, too");
    t->validates = true;
    return scorer_open(NULL, &t->how.validation, &how, &t->scorer);
}

/* --- going on --- */

static graphi_status resume(struct graphi_trainer *t)
{
    const char *path = t->how.checkpoint;
    const struct network network = trainer_network(t);
    struct record record = record_none();
    const graphi_status loaded = graphi_state_load(t->state, path, record_add, &record);
    if (loaded == GRAPHI_INVALID) { /* as is what is no checkpoint at all, and has no words */
        char message[512];
        message_get(message, sizeof message);
        record = record_none();
        if (graphi_state_load(NULL, path, record_add, &record) != GRAPHI_OK)
            message_set(message);
        TRY(record_check(path, &record, &network)); /* that it is of another network comes first */
        TRY(record_check_form(path, &record, &network));
        message_set(message);
    }
    TRY(loaded);
    TRY(record_check(path, &record, &network));
    TRY(record_check_form(path, &record, &network));
    TRY(record_check_place(path, &record, t->feeder.hash, t->feeder.batch, t->how.seed));
    memcpy(t->info.loss, record.loss, sizeof record.loss);
    t->info.owes = record.owes;
    t->info.best = record.best;
    t->info.since = record.since;
    t->info.enough = t->how.patience && record.since >= t->how.patience;
    return feeder_move(&t->feeder, (graphi_data_position){record.epoch, record.index});
}

static graphi_status open(struct graphi_trainer *t)
{
    TRY(check_counts(&t->how));
    TRY(settle_parts(t));
    TRY(trainer_guard(t));
    trainer_watch(t);
    TRY(feeder_open(&t->how.training, true, t->how.seed, &t->feeder));
    TRY(check_inputs(t));
    TRY(check_stepper(t));
    TRY(settle_length(t));
    TRY(make_state(t));
    TRY(open_validation(t));
    if (t->how.start == GRAPHI_TRAINER_RESUME)
        TRY(resume(t));
    t->info.step = t->info.started = graphi_state_step(t->state) / (uint64_t)t->runs_a_step;
    if (t->info.step) /* of the step before: the validation that is owed tells it */
        t->info.rate = graphi_schedule_rate(&t->schedule, (int64_t)t->info.step - 1);
    return GRAPHI_OK;
}

graphi_status graphi_trainer_create(const graphi_trainer_options *options, graphi_trainer **out)
{
    GIVEN(options);
    GIVEN(out);
    graphi_trainer *t = mem_zalloc(sizeof *t);
    if (!t)
        return fail_memory("trainer", sizeof *t);
    t->how = *options;
    t->info.best = NAN;
    for (int i = 0; i < GRAPHI_TRAINER_LOSSES; i++)
        t->info.loss[i] = NAN;
    graphi_status status = open(t);
    if (status == GRAPHI_OK)
        *out = t;
    else
        graphi_trainer_destroy(t);
    return status;
}

void graphi_trainer_destroy(graphi_trainer *t)
{
    if (!t)
        return;
    for (int i = 0; i <= EVALUATION; i++) {
        graphi_run_destroy(t->own_run[i]);
        graphi_plan_destroy(t->plan[i]);
    }
    feeder_close(&t->feeder);
    if (t->validates)
        scorer_close(&t->scorer);
    graphi_state_destroy(t->own_state);
    graphi_machine_destroy(t->machine);
    mem_free(t);
}

/* --- runs --- */

graphi_status graphi_trainer_use(graphi_trainer *t, int part, graphi_run *run)
{
    GIVEN(t);
    GIVEN(run);
    if (part < -1 || part >= t->parts || (part < 0 && !t->how.evaluation))
        return fail(GRAPHI_INVALID, "trainer", "found part %d, expected -1, the evaluation, or one of %d graphs", part,
                    t->parts);
    t->run[part < 0 ? EVALUATION : part] = run;
    return GRAPHI_OK;
}

static graphi_status compile(struct graphi_trainer *t, int part, const graphi_graph *graph)
{
    if (t->run[part] || !graph)
        return GRAPHI_OK;
    if (!t->how.machine && !t->machine)
        TRY(graphi_machine_create(0, &t->machine));
    TRY(graphi_plan_create(graph, t->how.machine ? t->how.machine : t->machine, t->how.plan, &t->plan[part]));
    TRY(graphi_run_create(t->plan[part], t->state, &t->own_run[part]));
    t->run[part] = t->own_run[part];
    return GRAPHI_OK;
}

graphi_status trainer_compile(struct graphi_trainer *t)
{
    for (int i = 0; i < t->parts && !t->how.stepper; i++)
        TRY(compile(t, i, t->how.graph[i]));
    if (t->validates)
        TRY(compile(t, EVALUATION, t->how.evaluation));
    t->scorer.run = t->run[EVALUATION];
    return GRAPHI_OK;
}

void graphi_trainer_owe(graphi_trainer *t, bool owes)
{
    if (t)
        t->info.owes = owes;
}

void graphi_trainer_get_info(const graphi_trainer *t, graphi_trainer_info *info)
{
    if (!info)
        return;
    *info = t ? t->info : (graphi_trainer_info){0};
    if (t)
        info->at = feeder_at(&t->feeder);
}

graphi_state *graphi_trainer_state(const graphi_trainer *t)
{
    return t ? t->state : NULL;
}
