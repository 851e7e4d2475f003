/* SPDX-License-Identifier: Apache-2.0 */
/* Training, from data to a checkpoint: a small convolutional network learns which way a bar in an image lies. What this
 * shows: a data set, and the library's trainer, which steps, lets the learning rate fall by a schedule, validates by a
 * second graph over the same state, and keeps a checkpoint from which training goes on with the same bits; and how it
 * is given a plan that was tuned once and stored.
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

enum { BATCH = 32, CHANNELS = 16, IMAGES = 2048, SEED = 1, SIDE = 8, WAYS = 4 };

static const char *const checkpoint_path = "train.safetensors", *const plan_path = "train.plan.json";

static void check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "train: error: %s\n", graphi_message());
        exit(status);
    }
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
        graphi_value rate = graphi_input(g, "learning_rate", GRAPHI_F32, 0, NULL);
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

/* --- what the trainer tells --- */

static graphi_status validated(void *context, const graphi_trainer_info *info, const graphi_score *score)
{
    (void)context;
    printf("step %3" PRIu64 "  rate %.4f  loss %.4f  validation accuracy %.1f %%\n", info->step, info->rate,
           info->loss[0], 100 * score->metric);
    return GRAPHI_OK; /* anything else would end the training, with that status */
}

static void note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "train: note: %s\n", text);
}

int main(int count, char **word)
{
    char *end = "";
    const int64_t steps = count > 1 ? strtoll(word[1], &end, 10) : 300;
    const char *path = count > 2 ? word[2] : "bars";
    graphi_data *data, *validation;
    graphi_data_info info;
    struct stat there;
    if (*end || steps < 1 || count > 3) {
        fprintf(stderr, "usage: train [STEPS [DATA]]\n");
        return GRAPHI_USAGE;
    }
    if (count <= 2)
        make_bars(path);
    const graphi_data_options how_read = {.format = GRAPHI_DATA_IMAGES, .batch = BATCH, .seed = SEED};
    check(graphi_data_open(path, &how_read, &data));
    check(graphi_data_open_split(data, GRAPHI_VALIDATION, 0, &validation));
    graphi_data_get_info(data, &info);

    graphi_graph *training = network(&info, true), *evaluation = network(&info, false);
    graphi_machine *machine;
    check(graphi_machine_create(0, &machine));
    const bool resumes = stat(checkpoint_path, &there) == 0;
    const graphi_trainer_options how = {.graph = {training},
                                        .evaluation = evaluation,
                                        .machine = machine,
                                        .seed = SEED,
                                        .training = {.data = data},
                                        .validation = {.data = validation, .symbol = "rows"},
                                        .metric = GRAPHI_METRIC_ACCURACY,
                                        .steps = steps,
                                        .rate = 0.1,
                                        .schedule = "step:0.5:2e,warmup:20",
                                        .checkpoint = checkpoint_path,
                                        .every = info.batches,
                                        .start = resumes ? GRAPHI_TRAINER_RESUME : GRAPHI_TRAINER_NEW,
                                        .network = "bars",
                                        .validated = validated,
                                        .note = note};
    graphi_trainer *trainer;
    graphi_trainer_info begin;
    check(graphi_trainer_create(&how, &trainer)); /* and loads the checkpoint */
    graphi_trainer_get_info(trainer, &begin);
    if (resumes)
        printf("goes on after step %" PRIu64 "\n", begin.step);

    /* A tuned plan instead of the one that the trainer would choose statically. */
    graphi_state *state = graphi_trainer_state(trainer);
    graphi_plan *plan = tuned_plan(training, machine, state);
    graphi_run *run;
    check(graphi_run_create(plan, state, &run));
    check(graphi_trainer_use(trainer, 0, run));
    check(graphi_trainer_run(trainer));

    char hex[65];
    graphi_state_sha256(state, hex);
    printf("state %s\n", hex);

    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    graphi_trainer_destroy(trainer);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(training);
    graphi_graph_destroy(evaluation);
    graphi_data_close(validation);
    graphi_data_close(data);
    return 0;
}
