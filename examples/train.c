/* SPDX-License-Identifier: Apache-2.0 */
/* Training, from data to a checkpoint: a small convolutional network learns which way a bar in an image lies. What this
 * shows: a data set, a learning rate that falls by a schedule, a plan that is tuned once and stored, validation by a
 * second plan over the same state, and a checkpoint from which training goes on with the same bits.
 *
 *     train [STEPS [DATA]]
 *
 * trains up to step STEPS (300) on DATA (docs/data.md; without it, images made here and put into bars/). Training that
 * left train.safetensors in this folder goes on where it ended: `train 100; train 300` ends with the state of
 * `train 300`. */
#include <graphi/graphi.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCH = 32, CHANNELS = 16, IMAGES = 2048, SIDE = 8, WAYS = 4 };

static const char *const checkpoint_path = "train.safetensors", *const plan_path = "train.plan.json";

static void check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "train: error: %s\n", graphi_message());
        exit(status);
    }
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "train: error: found no memory\n");
        exit(GRAPHI_MEMORY);
    }
    return memory;
}

/* --- data --- */

static float noise(void)
{
    static uint64_t state = 1; /* the same images every time */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / (1 << 24);
}

/* Lying, standing, falling, rising: is pixel (r, c) on the bar that goes through the one at `at`? */
static bool on_bar(int way, int r, int c, int at)
{
    const int place[WAYS] = {r - at, c - at, r - c + at - SIDE / 2, r + c - SIDE / 2 - at};
    return place[way] == 0;
}

/* A folder of arrays, as any program may write one: images.npy and labels.npy. */
static void make_bars(const char *folder)
{
    static float image[IMAGES][SIDE][SIDE];
    static int32_t label[IMAGES];
    for (int i = 0; i < IMAGES; i++) {
        int at = (int)(noise() * SIDE);
        label[i] = i % WAYS;
        for (int r = 0; r < SIDE; r++)
            for (int c = 0; c < SIDE; c++)
                image[i][r][c] = noise() + (on_bar(label[i], r, c, at) ? 0.5f : 0);
    }
    char path[64];
    mkdir(folder, 0777); /* where it fails, saving tells */
    snprintf(path, sizeof path, "%s/images.npy", folder);
    check(graphi_array_save(path, GRAPHI_F32, 3, (int64_t[]){IMAGES, SIDE, SIDE}, image));
    snprintf(path, sizeof path, "%s/labels.npy", folder);
    check(graphi_array_save(path, GRAPHI_I32, 1, (int64_t[]){IMAGES}, label));
}

/* --- graphs --- */

static graphi_value weight(graphi_graph *g, const char *name, int rank, const int64_t *dims)
{
    return graphi_parameter(g, name, GRAPHI_F32, rank, dims, &(graphi_initializer){.kind = GRAPHI_INIT_HE_NORMAL});
}

static graphi_value convolution(graphi_graph *g, const char *name, graphi_value x, int64_t in, int64_t out)
{
    graphi_value w = weight(g, name, 4, (int64_t[]){3, 3, in, out});
    return graphi_relu(g, graphi_conv2d(g, x, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), NULL, 0, 1));
}

/* Mistakes in building are kept by the graph: making a plan of it tells the first one. */
static graphi_graph *network(const graphi_data_info *data, bool training)
{
    graphi_graph *g;
    check(graphi_graph_create(&g));
    int64_t rows = training ? BATCH : graphi_symbol(g, "rows", BATCH); /* the last batch of validation may be smaller */
    graphi_value x =
        graphi_input(g, "images", GRAPHI_F32, 4, (int64_t[]){rows, data->height, data->width, data->channels});
    graphi_value labels = graphi_input(g, "labels", GRAPHI_I32, 1, &rows);
    x = convolution(g, "first", x, data->channels, CHANNELS);
    x = graphi_max_pool(g, x, GRAPHI_LIST(2, 2), NULL, 0, NULL, 0, 0);
    x = graphi_global_avg_pool(g, convolution(g, "second", x, CHANNELS, 2 * CHANNELS));
    if (training)
        x = graphi_dropout(g, x, 0.9);
    graphi_value w = weight(g, "output/weight", 2, (int64_t[]){2 * CHANNELS, data->classes});
    graphi_value b = graphi_parameter(g, "output/bias", GRAPHI_F32, 1, &data->classes, NULL);
    graphi_value logits = graphi_add(g, graphi_matmul(g, x, w, 0, 0), b);
    graphi_value loss = graphi_softmax_cross_entropy(g, logits, labels);
    graphi_output(g, "loss", loss);
    graphi_output(g, "logits", logits);
    if (training) { /* appends gradients and updates: each execution is a step of training */
        graphi_value rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
        check(graphi_minimize(
            g, loss, &(graphi_optimizer){.kind = GRAPHI_MOMENTUM, .learning_rate = rate, .weight_decay = 1e-4}));
    }
    return g;
}

/* The stored plan, or, where there is none for this graph and machine, one that is tuned for a second. It changes how
 * fast training goes, never a bit of its results. */
static graphi_plan *tuned_plan(const graphi_graph *graph, const graphi_machine *machine, graphi_state *state)
{
    graphi_plan *fresh, *plan;
    if (graphi_plan_load(graph, machine, NULL, plan_path, &plan) == GRAPHI_OK)
        return plan;
    check(graphi_plan_create(graph, machine, NULL, &fresh));
    check(graphi_plan_tune(fresh, state, &(graphi_tune_options){.seconds = 1}, &plan));
    check(graphi_plan_save(plan, plan_path));
    graphi_plan_destroy(fresh);
    return plan;
}

/* --- checkpoints: the state, and where the data stand --- */

static void save(const graphi_state *state, const graphi_data *data)
{
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    graphi_data_position at = graphi_data_get_position(data);
    char epoch[24], index[24], hash[24];
    snprintf(epoch, sizeof epoch, "%" PRId64, at.epoch);
    snprintf(index, sizeof index, "%" PRId64, at.index);
    snprintf(hash, sizeof hash, "%" PRIu64, info.hash);
    check(graphi_state_save(state, checkpoint_path, 3, (const char *[]){"epoch", "index", "data"},
                            (const char *[]){epoch, index, hash}));
}

struct place {
    graphi_data_position at;
    uint64_t hash;
};

static void read_place(void *context, const char *key, const char *value)
{
    struct place *place = context;
    if (strcmp(key, "epoch") == 0)
        place->at.epoch = strtoll(value, NULL, 10);
    if (strcmp(key, "index") == 0)
        place->at.index = strtoll(value, NULL, 10);
    if (strcmp(key, "data") == 0)
        place->hash = strtoull(value, NULL, 10);
}

static void resume(graphi_state *state, graphi_data *data)
{
    struct stat there;
    struct place place = {{0, 0}, 0};
    graphi_data_info info;
    if (stat(checkpoint_path, &there) != 0)
        return;
    graphi_data_get_info(data, &info);
    check(graphi_state_load(state, checkpoint_path, read_place, &place));
    if (place.hash != info.hash) {
        fprintf(stderr, "train: error: %s: found a checkpoint of other data\n", checkpoint_path);
        exit(GRAPHI_INVALID);
    }
    check(graphi_data_set_position(data, place.at));
    printf("goes on after step %" PRIu64 "\n", graphi_state_step(state));
}

/* --- steps --- */

/* A batch and its place in memory. */
struct batch {
    float *images;
    int32_t labels[BATCH];
    float *logits;
    size_t image_bytes; /* of one */
    int64_t rows;
};

static void next(graphi_data *data, struct batch *b)
{
    check(graphi_data_next(data, b->images, BATCH * b->image_bytes, b->labels, sizeof b->labels, &b->rows));
}

static void feed(graphi_run *run, const struct batch *b)
{
    check(graphi_run_set(run, "images", GRAPHI_F32, b->images, (size_t)b->rows * b->image_bytes));
    check(graphi_run_set(run, "labels", GRAPHI_I32, b->labels, (size_t)b->rows * sizeof *b->labels));
}

static int correct(const struct batch *b, int64_t classes)
{
    int count = 0;
    for (int64_t r = 0; r < b->rows; r++) {
        const float *logit = b->logits + r * classes;
        int best = 0;
        for (int c = 1; c < classes; c++)
            best = logit[c] > logit[best] ? c : best;
        count += best == b->labels[r];
    }
    return count;
}

/* Share of the validation images whose label is found. */
static double validate(graphi_run *run, graphi_data *data, struct batch *b)
{
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    int found = 0;
    for (int64_t i = 0; i < info.batches; i++) {
        next(data, b);
        check(graphi_run_set_symbol(run, "rows", b->rows));
        feed(run, b);
        check(graphi_run_execute(run));
        check(graphi_run_get(run, "logits", GRAPHI_F32, b->logits,
                             (size_t)(b->rows * info.classes) * sizeof *b->logits));
        found += correct(b, info.classes);
    }
    return (double)found / (double)info.samples;
}

int main(int count, char **word)
{
    char *end = "";
    const uint64_t steps = count > 1 ? strtoull(word[1], &end, 10) : 300;
    const char *path = count > 2 ? word[2] : "bars";
    graphi_data *data, *validation;
    graphi_data_info info;
    graphi_schedule schedule;
    if (*end || steps == 0 || count > 3) {
        fprintf(stderr, "usage: train [STEPS [DATA]]\n");
        return GRAPHI_USAGE;
    }
    if (count <= 2)
        make_bars(path);
    check(graphi_data_open(path, &(graphi_data_options){.format = GRAPHI_DATA_IMAGES, .batch = BATCH}, &data));
    check(graphi_data_open_split(data, GRAPHI_VALIDATION, 0, &validation));
    graphi_data_get_info(data, &info);
    check(graphi_schedule_parse("step:0.5:2e,warmup:20", 0.1, info.batches, &schedule));

    graphi_graph *training = network(&info, true), *evaluation = network(&info, false);
    graphi_machine *machine;
    graphi_state *state;
    graphi_plan *plan, *second;
    graphi_run *run, *scoring;
    check(graphi_machine_create(0, &machine));
    check(graphi_state_create(training, 1, &state)); /* the evaluation's parameters are among these */
    resume(state, data);
    plan = tuned_plan(training, machine, state);
    check(graphi_plan_create(evaluation, machine, &(graphi_plan_options){.outputs = "logits"}, &second));
    check(graphi_run_create(plan, state, &run));
    check(graphi_run_create(second, state, &scoring));

    struct batch b = {.image_bytes = (size_t)(info.height * info.width * info.channels) * sizeof(float)};
    b.images = allocate(BATCH, b.image_bytes);
    b.logits = allocate(BATCH, (size_t)info.classes * sizeof *b.logits);
    for (uint64_t step = graphi_state_step(state); step < steps; step++) {
        float loss, rate = (float)graphi_schedule_rate(&schedule, (int64_t)step);
        next(data, &b);
        feed(run, &b);
        check(graphi_run_set(run, "rate", GRAPHI_F32, &rate, sizeof rate));
        graphi_run_set_first_sample(run, step * BATCH); /* dropout draws by it */
        check(graphi_run_execute(run));
        check(graphi_run_get(run, "loss", GRAPHI_F32, &loss, sizeof loss));
        if (step + 1 < steps && (step + 1) % (uint64_t)info.batches != 0)
            continue;
        printf("step %3" PRIu64 "  rate %.4f  loss %.4f  validation accuracy %.1f %%\n", step + 1, (double)rate,
               (double)loss, 100 * validate(scoring, validation, &b));
        save(state, data);
    }
    char hex[65];
    graphi_state_sha256(state, hex);
    printf("state %s\n", hex);

    free(b.images);
    free(b.logits);
    graphi_run_destroy(run);
    graphi_run_destroy(scoring);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    graphi_plan_destroy(second);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(training);
    graphi_graph_destroy(evaluation);
    graphi_data_close(validation);
    graphi_data_close(data);
    return 0;
}
