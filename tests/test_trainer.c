/* SPDX-License-Identifier: Apache-2.0 */
/* Training through the library: from arrays and callbacks, stopped and gone on bit for bit, checkpoints that are
 * refused, written over and understood, and what the callbacks are told. */
#include "base/memory.h"
#include "base/random.h"
#include "graphi/graphi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "fixture.h"
#include "folder.h"

enum { SAMPLES = 70, HELD = 20, ROWS = 8, WIDE = 6, WAYS = 3 };

static struct folder folder;
static char checkpoint[300], other[300];
static float points[SAMPLES][WIDE];
static int32_t labels[SAMPLES];
static graphi_graph *network, *judge;

/* Points around one corner a class. */
static void make_points(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = (int32_t)(random_philox(1, 0, (uint64_t)i).v[0] % WAYS);
        for (int k = 0; k < WIDE; k++)
            points[i][k] = random_unit(random_philox(2, (uint64_t)k, (uint64_t)i).v[0]) + (k == labels[i] ? 2.0f : 0);
    }
}

static graphi_graph *make_network(bool training)
{
    static const graphi_initializer he = {.kind = GRAPHI_INIT_HE_NORMAL};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const int64_t rows = training ? ROWS : graphi_symbol(g, "rows", ROWS);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){rows, WIDE});
    graphi_value targets = graphi_input(g, "labels", GRAPHI_I32, 1, &rows);
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){WIDE, WAYS}, &he);
    x = training ? graphi_dropout(g, x, 0.9) : x;
    graphi_value logits = graphi_matmul(g, x, w, 0, 0);
    graphi_value loss = graphi_reduce_mean(g, graphi_softmax_cross_entropy(g, logits, targets), NULL, 0, 0);
    graphi_output(g, "loss", loss);
    graphi_output(g, "logits", logits);
    if (training) {
        graphi_value rate = graphi_input(g, "learning_rate", GRAPHI_F32, 0, NULL);
        check_ok(graphi_minimize(g, loss, &(graphi_optimizer){.kind = GRAPHI_ADAM, .learning_rate = rate}));
    }
    check_ok(graphi_graph_status(g));
    return g;
}

/* What the callbacks were told. */
struct told {
    int steps, validations, saves, notes, stop_at;
    double loss, accuracy;
    int64_t scored;
    char note[256];
};

static bool stop(void *context)
{
    const struct told *told = context;
    return told->stop_at && told->steps >= told->stop_at;
}

static void stepped(void *context, const graphi_trainer_info *info)
{
    struct told *told = context;
    told->steps++;
    told->loss = info->loss[0];
    assert_true(info->step <= info->last_step && isnan(info->loss[1]) && info->step_ms > 0);
}

static graphi_status validated(void *context, const graphi_trainer_info *info, const graphi_score *score)
{
    struct told *told = context;
    told->validations++;
    if (score) {
        told->accuracy = score->metric;
        told->scored = score->samples;
    }
    return GRAPHI_OK;
}

static void saved(void *context, const char *path) { ((struct told *)context)->saves++; }

static void note(void *context, const char *text)
{
    struct told *told = context;
    told->notes++;
    snprintf(told->note, sizeof told->note, "%s", text);
}

static const graphi_feed_array arrays[] = {{"x", GRAPHI_F32, sizeof points[0], points},
                                           {"labels", GRAPHI_I32, sizeof labels[0], labels}};
static const graphi_feed_array held[] = {{"x", GRAPHI_F32, sizeof points[0], points + SAMPLES - HELD},
                                         {"labels", GRAPHI_I32, sizeof labels[0], labels + SAMPLES - HELD}};

static graphi_trainer_options options(struct told *told)
{
    return (graphi_trainer_options){
        .graph = {network},
        .evaluation = judge,
        .machine = machine,
        .seed = 3,
        .training = {.arrays = arrays, .array_count = 2, .samples = SAMPLES - HELD, .batch = ROWS},
        .validation = {.arrays = held, .array_count = 2, .samples = HELD, .batch = ROWS, .symbol = "rows"},
        .metric = GRAPHI_METRIC_ACCURACY,
        .steps = 40,
        .rate = 0.05,
        .schedule = "cosine:60",
        .stop = stop,
        .stepped = stepped,
        .validated = validated,
        .saved = saved,
        .note = note,
        .context = told};
}

/* Trains as the options say; gives the status of running. */
static graphi_status train(const graphi_trainer_options *how, char hash[65])
{
    graphi_trainer *trainer;
    check_ok(graphi_trainer_create(how, &trainer));
    const graphi_status status = graphi_trainer_run(trainer);
    graphi_state_sha256(graphi_trainer_state(trainer), hash);
    graphi_trainer_destroy(trainer);
    return status;
}

static void no_file(void)
{
    unlink(checkpoint);
    unlink(other);
}

/* Without it a program would have to write the loop, and would validate on rows of the batch before. */
static void arrays_are_learnt(void **state)
{
    struct told told = {0};
    char hash[65];
    graphi_trainer_options how = options(&told);
    how.validate_every = 15;
    check_ok(train(&how, hash));
    assert_int_equal(told.steps, 40);
    assert_int_equal(told.validations, 3); /* 15, 30, and the last */
    assert_int_equal(told.scored, HELD);   /* 20 are two batches of 8 and one of 4 */
    assert_true(told.accuracy > 0.9 && told.loss < 0.7);
    assert_int_equal(told.saves, 0);
}

/* Without it training that was stopped would end elsewhere than one that was not: other order, rate, dropout, slots. */
static void resumed_training_gives_the_same_bits(void **state)
{
    char whole[65], hash[65];
    struct told told = {0};
    graphi_trainer_options how = options(&told);
    check_ok(train(&how, whole));
    how.checkpoint = checkpoint;
    how.every = 4;
    for (int at = 1; at <= 15; at += 1 + at) { /* steps 1, 4 and 11 */
        told = (struct told){.stop_at = at};
        assert_int_equal(train(&how, hash), GRAPHI_INTERRUPTED);
        assert_int_equal(told.steps, at);
        assert_non_null(strstr(graphi_message(), "expected to reach 40"));
        how.start = GRAPHI_TRAINER_RESUME;
    }
    told = (struct told){0};
    check_ok(train(&how, hash));
    assert_string_equal(hash, whole);
    no_file();
}

/* A batch of a text or of anything else that is made as it is needed. */
struct source {
    int64_t calls, epochs; /* of which length: 5 batches */
    graphi_data_position last;
};

static graphi_status fill(void *context, graphi_data_position at, void *const *buffers, int64_t *rows)
{
    struct source *source = context;
    source->last = at;
    if (at.index == 5) {
        source->epochs++;
        return GRAPHI_OK; /* no rows: the epoch is over */
    }
    source->calls++;
    for (int r = 0; r < ROWS; r++) {
        const int sample = (int)(at.index * ROWS + r) % SAMPLES;
        memcpy((float *)buffers[0] + r * WIDE, points[sample], sizeof points[0]);
        ((int32_t *)buffers[1])[r] = labels[sample];
    }
    *rows = ROWS;
    return GRAPHI_OK;
}

/* Without it only what fits into memory, or lies in files of known formats, could be trained on. */
static void iterators_are_learnt_and_gone_on_from(void **state)
{
    static const graphi_feed_array names[] = {{"x", GRAPHI_F32, sizeof points[0], NULL},
                                               {"labels", GRAPHI_I32, sizeof labels[0], NULL}};
    struct told told = {0};
    struct source source = {0};
    char whole[65], hash[65];
    graphi_trainer_options how = options(&told);
    how.training = (graphi_feed){.arrays = names, .array_count = 2, .batch = ROWS, .next = fill, .context = &source};
    how.steps = 17;
    check_ok(train(&how, whole));
    assert_int_equal(source.calls, 17);
    assert_int_equal(source.epochs, 3);
    how.checkpoint = checkpoint;
    told = (struct told){.stop_at = 7};
    assert_int_equal(train(&how, hash), GRAPHI_INTERRUPTED);
    told = (struct told){0};
    how.start = GRAPHI_TRAINER_RESUME;
    source = (struct source){0};
    check_ok(train(&how, hash));
    assert_string_equal(hash, whole);
    assert_int_equal(source.calls, 10);
    no_file();
}

static graphi_status refuse(const graphi_trainer_options *how)
{
    graphi_trainer *trainer = NULL;
    const graphi_status status = graphi_trainer_create(how, &trainer);
    assert_null(trainer);
    return status;
}

/* A batch that goes into runs by itself, of which every third row is not scored. */
struct setter {
    struct source source;
    float x[ROWS][WIDE];
    int32_t targets[ROWS], fed[ROWS];
    int64_t rows;
    bool trains;
};

static graphi_status go_to(void *context, graphi_data_position at, void *const *buffers, int64_t *rows)
{
    struct setter *s = context;
    assert_null(buffers);
    check_ok(fill(&s->source, at, (void *const[]){s->x, s->fed}, rows));
    *rows = s->rows = *rows && !s->trains ? ROWS - at.index : *rows; /* each batch of validation has another size */
    for (int r = 0; r < ROWS; r++)
        s->targets[r] = r % 3 == 2 ? -1 : s->fed[r];
    return GRAPHI_OK;
}

static graphi_status set_run(void *context, graphi_run *run)
{
    struct setter *s = context;
    graphi_status status = s->trains ? GRAPHI_OK : graphi_run_set_symbol(run, "rows", s->rows);
    if (!status)
        status = graphi_run_set(run, "x", GRAPHI_F32, s->x, (size_t)s->rows * sizeof s->x[0]);
    return status ? status : graphi_run_set(run, "labels", GRAPHI_I32, s->fed, (size_t)s->rows * sizeof *s->fed);
}

static const int32_t *targets_of(void *context, int64_t *rows)
{
    struct setter *s = context;
    *rows = s->rows;
    return s->targets;
}

/* Without it batches of graphs, whose vertices and edges differ, could not be trained on or scored. */
static void batches_that_set_runs_are_learnt(void **state)
{
    struct told told = {0};
    struct setter training = {.trains = true}, validation = {.rows = 0};
    char hash[65], whole[65];
    graphi_trainer_options how = options(&told);
    how.steps = 40;
    how.training =
        (graphi_feed){.batch = ROWS, .next = go_to, .set = set_run, .batches = 5, .context = &training, .hash = 7};
    how.validation = (graphi_feed){
        .batch = ROWS, .next = go_to, .set = set_run, .targets = targets_of, .batches = 4, .context = &validation};
    check_ok(train(&how, whole));
    assert_int_equal(told.scored, 6 + 5 + 4 + 4); /* of 8, 7, 6 and 5 rows */
    assert_true(told.accuracy > 0.8);
    how.metric = GRAPHI_METRIC_LOSS;
    how.checkpoint = checkpoint;
    told = (struct told){.stop_at = 7};
    assert_int_equal(train(&how, hash), GRAPHI_INTERRUPTED);
    told = (struct told){0};
    how.start = GRAPHI_TRAINER_RESUME;
    check_ok(train(&how, hash));
    assert_string_equal(hash, whole);
    how.training.hash = 8;
    assert_int_equal(refuse(&how), GRAPHI_INVALID);
    how.training.next = NULL;
    assert_int_equal(refuse(&how), GRAPHI_INVALID);
    no_file();
}

/* Without it hours of training were lost to a name that was typed again. */
static void checkpoints_are_not_lost(void **state)
{
    struct told told = {0};
    char hash[65], text[64];
    graphi_trainer_options how = options(&told);
    how.checkpoint = checkpoint;
    check_ok(train(&how, hash));
    assert_int_equal(refuse(&how), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found a checkpoint of step 40, expected --resume"));
    how.start = GRAPHI_TRAINER_RESUME; /* less far: nothing is done, and nothing written */
    how.steps = 10;
    told = (struct told){0};
    check_ok(train(&how, hash));
    assert_int_equal(told.steps + told.saves, 0);
    how.start = GRAPHI_TRAINER_OVERWRITE;
    check_ok(train(&how, hash));
    assert_int_equal(told.saves, 1);
    folder_write(&folder, "text", "nothing of ours, but a text of some lines\n", 42);
    how.checkpoint = strcpy(other, folder_name(&folder, "text"));
    for (int start = GRAPHI_TRAINER_NEW; start <= GRAPHI_TRAINER_OVERWRITE; start++) {
        how.start = (graphi_trainer_start)start;
        assert_int_equal(refuse(&how), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), "found a file that is no checkpoint"));
    }
    FILE *file = fopen(other, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "nothing of ours, but a text of some lines\n");
    no_file();
}

/* Without it a training would go on elsewhere: on other data, in another order, as another network. */
static void other_trainings_are_refused(void **state)
{
    struct told told = {0};
    char hash[65];
    graphi_trainer_options how = options(&told), wrong;
    how.checkpoint = checkpoint;
    how.network = "points";
    check_ok(train(&how, hash));
    how.start = GRAPHI_TRAINER_RESUME;
    how.steps = 50;
    wrong = how;
    wrong.network = "lines";
    assert_int_equal(refuse(&wrong), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found a checkpoint of 'points', expected one of 'lines'"));
    wrong = how;
    wrong.seed = 4;
    assert_int_equal(refuse(&wrong), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "--seed 3, expected 4"));
    wrong = how;
    wrong.training.samples--;
    assert_int_equal(refuse(&wrong), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found a checkpoint of other data"));
    wrong = how;
    wrong.checkpoint = other;
    assert_int_equal(refuse(&wrong), GRAPHI_IO);
    no_file();
}

/* Without it 20 steps at rate 0 passed for training. */
static void a_schedule_that_has_ended_is_told(void **state)
{
    struct told told = {0};
    char hash[65];
    graphi_trainer_options how = options(&told);
    how.schedule = "cosine:20";
    check_ok(train(&how, hash));
    assert_int_equal(told.notes, 1);
    assert_non_null(strstr(told.note, "the rate is 0 from step 21 on, the schedule 'cosine:20' has ended"));
    told = (struct told){0};
    how.rate = 0; /* as it was asked for */
    check_ok(train(&how, hash));
    assert_int_equal(told.notes, 0);
}

/* Without it training goes on for hours after its best, and the best is gone: ends after so many validations that are
 * not better, also over a checkpoint between them, and leaves the best in a file. */
static void training_ends_where_nothing_gets_better(void **state)
{
    struct told told = {0};
    char hash[65];
    graphi_checkpoint *file;
    graphi_checkpoint_info about;
    no_file();
    graphi_trainer_options how = options(&told);
    how.rate = 0; /* nothing is learnt: the first validation stays the best */
    how.validate_every = 1;
    how.patience = 3;
    how.checkpoint = checkpoint;
    how.best = other;
    check_ok(train(&how, hash));
    assert_int_equal(told.steps, 4);
    assert_int_equal(told.saves, 2);
    assert_non_null(strstr(told.note, "training ends at step 4: no validation was better than"));
    check_ok(graphi_checkpoint_open(other, &file));
    graphi_checkpoint_get_info(file, &about);
    graphi_checkpoint_close(file);
    assert_int_equal(about.step, 1);
    how.start = GRAPHI_TRAINER_RESUME;
    told = (struct told){0};
    check_ok(train(&how, hash)); /* had enough already */
    assert_int_equal(told.steps, 0);
    how.patience = 5;
    check_ok(train(&how, hash));
    assert_int_equal(told.steps, 2);
    how.patience = 0;
    told = (struct told){0};
    FILE *own = fopen(other, "w");
    fputs("mine", own);
    fclose(own);
    how.best = other;
    assert_int_equal(refuse(&how), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "no checkpoint"));
    no_file();
}

/* Without it whoever has a checkpoint must know by heart what it was trained on, and how far. */
static void checkpoints_are_understood(void **state)
{
    struct told told = {.stop_at = 9};
    char hash[65];
    graphi_checkpoint *file;
    graphi_checkpoint_info info;
    graphi_trainer_options how = options(&told);
    how.checkpoint = checkpoint;
    how.network = "points";
    how.string_count = 1;
    how.keys = (const char *const[]){"mine"};
    how.values = (const char *const[]){"a string"};
    assert_int_equal(train(&how, hash), GRAPHI_INTERRUPTED);
    check_ok(graphi_checkpoint_open(checkpoint, &file));
    graphi_checkpoint_get_info(file, &info);
    assert_true(info.own && info.placed && !info.owes && !info.network);
    assert_int_equal(info.step, 9);
    assert_int_equal(info.batch, ROWS);
    assert_int_equal(info.at.epoch, 1); /* six batches of 50 samples */
    assert_int_equal(info.at.index, 3);
    assert_string_equal(info.words, "points");
    assert_string_equal(graphi_checkpoint_text(file, "mine"), "a string");
    assert_string_equal(graphi_checkpoint_text(file, "train.schedule"), "cosine:60");
    assert_string_equal(graphi_checkpoint_text(file, "train.lr"), "0.05");
    assert_null(graphi_checkpoint_text(file, "train.epochs"));
    graphi_state *fresh;
    char loaded[65];
    check_ok(graphi_state_create(network, 99, &fresh));
    check_ok(graphi_checkpoint_load(file, fresh, "points", NULL, NULL));
    graphi_state_sha256(fresh, loaded);
    assert_string_equal(loaded, hash);
    assert_int_equal(graphi_checkpoint_load(file, fresh, "lines", NULL, NULL), GRAPHI_INVALID);
    graphi_state_destroy(fresh);
    graphi_checkpoint_close(file);
    graphi_trainer *trainer; /* of the last step, as an owed validation tells it */
    graphi_trainer_info again;
    how.start = GRAPHI_TRAINER_RESUME;
    check_ok(graphi_trainer_create(&how, &trainer));
    graphi_trainer_get_info(trainer, &again);
    assert_true(again.started == 9 && fabs(again.rate - 0.05 * (1 + cos(acos(-1.0) * 8 / 60)) / 2) < 1e-12);
    graphi_trainer_destroy(trainer);
    no_file();
}

/* Without it what a checkpoint says of a built-in network is known to the command alone. */
static void forms_are_completed(void **state)
{
    static const char *const keys[] = {"network", "network.trained", "network.text", "network.units", "data.level",
                                       "data.limit", "data.batch"};
    static const char *const values[] = {"lstm --merged", "--task real", "--size medium --unroll 12", "48", "word",
                                         "500", "16"};
    graphi_state *some;
    graphi_checkpoint *file;
    check_ok(graphi_state_create(network, 1, &some));
    check_ok(graphi_state_save(some, checkpoint, 7, keys, values));
    check_ok(graphi_checkpoint_open(checkpoint, &file));
    graphi_form form = {.model = {.batch = 4}};
    check_ok(graphi_checkpoint_complete(file, "lstm", &form));
    assert_true(form.model.merged && form.model.batch == 4 && form.model.steps == 12 && form.model.units == 48);
    assert_string_equal(form.model.size, "medium");
    assert_string_equal(form.level, "word");
    assert_int_equal(form.vocabulary, 500);
    form = (graphi_form){.level = "character"};
    assert_int_equal(graphi_checkpoint_complete(file, "lstm", &form), GRAPHI_INVALID);
    assert_true(!form.model.merged && !form.model.task);
    assert_int_equal(graphi_checkpoint_complete(file, "pathnet", &form), GRAPHI_INVALID);
    graphi_checkpoint_close(file);
    graphi_state_destroy(some);
    no_file();
}

/* Without it a wrong option would train on nothing, or never end. */
static void wrong_options_are_refused(void **state)
{
    struct told told = {0};
    const graphi_trainer_options right = options(&told);
    graphi_trainer_options how = right;
    static const graphi_feed_array unknown[] = {{"y", GRAPHI_F32, 4, points}};
#define REFUSED(part, text)                                                                                            \
    do {                                                                                                               \
        assert_int_equal(refuse(&how), GRAPHI_INVALID);                                                                \
        assert_non_null(strstr(graphi_message(), text));                                                               \
        how = right;                                                                                                   \
    } while (0)
    how.epochs = 2;
    REFUSED(epochs, "found both lengths");
    how.steps = 0;
    REFUSED(steps, "found no length");
    how.graph[0] = NULL;
    REFUSED(graph, "found no graph");
    how.every = 3;
    REFUSED(every, "found no checkpoint");
    how.schedule = "no such";
    REFUSED(schedule, "expected");
    how.training = (graphi_feed){0};
    REFUSED(training, "found no data");
    how.training.batch = SAMPLES;
    REFUSED(training, "found arrays of 50 samples, expected 70");
    how.training = (graphi_feed){.arrays = unknown, .array_count = 1, .samples = 20, .batch = 4};
    REFUSED(training, "found input 'y', expected one that the graph has");
    how.evaluation = NULL;
    REFUSED(evaluation, "found data for validation and no graph");
    how.loss[0].output = "loss";
    how.loss[0].graph = 1;
    REFUSED(loss, "found loss 'loss' of graph 1");
}

/* Without it a step would wait for the heap, and slow down as it fragments. */
static void steps_allocate_nothing(void **state)
{
    struct told told = {0};
    graphi_trainer *trainer;
    const graphi_trainer_options how = options(&told);
    check_ok(graphi_trainer_create(&how, &trainer));
    for (int i = 0; i < 3; i++)
        check_ok(graphi_trainer_step(trainer));
    const uint64_t before = mem_allocations();
    for (int i = 0; i < 9; i++) /* into the next epoch, which has another order */
        check_ok(graphi_trainer_step(trainer));
    assert_int_equal(mem_allocations(), before);
    graphi_trainer_destroy(trainer);
}

static int set_up(void **state)
{
    if (open_machine(state) != 0)
        return -1;
    folder_make(&folder);
    snprintf(checkpoint, sizeof checkpoint, "%s/c.safetensors", folder.path);
    snprintf(other, sizeof other, "%s/other.safetensors", folder.path);
    make_points();
    network = make_network(true);
    judge = make_network(false);
    return 0;
}

static int tear_down(void **state)
{
    graphi_graph_destroy(network);
    graphi_graph_destroy(judge);
    folder_remove(&folder);
    return close_machines(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_learnt),
        cmocka_unit_test(resumed_training_gives_the_same_bits),
        cmocka_unit_test(iterators_are_learnt_and_gone_on_from),
        cmocka_unit_test(batches_that_set_runs_are_learnt),
        cmocka_unit_test(checkpoints_are_not_lost),
        cmocka_unit_test(other_trainings_are_refused),
        cmocka_unit_test(a_schedule_that_has_ended_is_told),
        cmocka_unit_test(training_ends_where_nothing_gets_better),
        cmocka_unit_test(checkpoints_are_understood),
        cmocka_unit_test(forms_are_completed),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(steps_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
