/* SPDX-License-Identifier: Apache-2.0 */
/* Weights from PyTorch: loaded, evaluated, and trained on. What this shows: of which graph the state is made when,
 * since loading wants every parameter that the state has, and a file from elsewhere has no optimizer's.
 *
 *     import WEIGHTS [IMAGE]
 *
 * WEIGHTS is what tools/from_pytorch.py (installed: share/graphi) makes with import.map of the state_dict of
 *
 *     nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
 *                   nn.Flatten(), nn.Linear(8 * 4 * 4, 10))
 *
 * IMAGE is an array of float32 [1,8,8,3] (.npy), channels last; without it, a ramp. Prints the logits, then the loss of
 * the class found before and after a step of training on it. */
#include <graphi/graphi.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 8, COLOURS = 3, CHANNELS = 8, CLASSES = 10, FEATURES = CHANNELS * SIDE * SIDE / 4 };
static const double epsilon = 1e-5, momentum = 0.1; /* PyTorch's of BatchNorm2d */

static void check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "import: error: %s\n", graphi_message());
        exit(status);
    }
}

static graphi_value parameter(graphi_graph *g, const char *name, int rank, const int64_t *dims)
{
    return graphi_parameter(g, name, GRAPHI_F32, rank, dims, NULL); /* zeros, until the file is loaded */
}

static graphi_value scalar(graphi_graph *g, double number)
{
    return graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){(float)number});
}

/* running <- (1 - momentum) running + momentum batch */
static void follow(graphi_graph *g, graphi_value running, graphi_value batch)
{
    graphi_value kept = graphi_mul(g, running, scalar(g, 1 - momentum));
    graphi_assign(g, running, graphi_add(g, kept, graphi_mul(g, batch, scalar(g, momentum))));
}

/* In evaluation by the running statistics, in training by those of the batch, which the running ones follow. (PyTorch's
 * follow the variance times n / (n - 1).) */
static graphi_value batch_norm(graphi_graph *g, graphi_value x, bool training)
{
    const int64_t dims[] = {CHANNELS};
    graphi_value scale = parameter(g, "norm/scale", 1, dims), shift = parameter(g, "norm/shift", 1, dims);
    graphi_value mean = parameter(g, "norm/mean", 1, dims), variance = parameter(g, "norm/variance", 1, dims);
    graphi_freeze(g, mean); /* no gradient moves them */
    graphi_freeze(g, variance);
    if (!training)
        return graphi_batch_norm_inference(g, x, scale, shift, mean, variance, epsilon);
    graphi_value y = graphi_batch_norm(g, x, scale, shift, epsilon), inverse = y + 2; /* y, mean, 1 / deviation */
    follow(g, mean, y + 1);
    follow(g, variance, graphi_sub(g, graphi_reciprocal(g, graphi_square(g, inverse)), scalar(g, epsilon)));
    return y;
}

static graphi_graph *network(bool training)
{
    graphi_graph *g;
    check(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "images", GRAPHI_F32, 4, (int64_t[]){1, SIDE, SIDE, COLOURS});
    graphi_value w = parameter(g, "conv/weight", 4, (int64_t[]){3, 3, COLOURS, CHANNELS});
    x = graphi_conv2d(g, x, w, NULL, 0, GRAPHI_LIST(1, 1, 1, 1), NULL, 0, 1);
    x = graphi_relu(g, batch_norm(g, x, training));
    x = graphi_max_pool(g, x, GRAPHI_LIST(2, 2), NULL, 0, NULL, 0, 0);
    x = graphi_reshape(g, x, GRAPHI_LIST(1, FEATURES)); /* height, width, channel: hence `flat` in import.map */
    w = parameter(g, "output/weight", 2, (int64_t[]){FEATURES, CLASSES});
    graphi_value b = parameter(g, "output/bias", 1, (int64_t[]){CLASSES});
    graphi_value logits = graphi_add(g, graphi_matmul(g, x, w, 0, 0), b);
    graphi_output(g, "logits", logits);
    if (training) {
        graphi_value labels = graphi_input(g, "labels", GRAPHI_I32, 1, (int64_t[]){1});
        graphi_value loss = graphi_softmax_cross_entropy(g, logits, labels);
        graphi_output(g, "loss", loss);
        check(graphi_minimize(g, loss, &(graphi_optimizer){.kind = GRAPHI_MOMENTUM, .learning_rate = scalar(g, 0.01)}));
    }
    return g;
}

static int highest(const float *logit)
{
    int best = 0;
    for (int c = 1; c < CLASSES; c++)
        best = logit[c] > logit[best] ? c : best;
    return best;
}

int main(int count, char **word)
{
    if (count < 2) {
        fprintf(stderr, "usage: import WEIGHTS [IMAGE]\n");
        return GRAPHI_USAGE;
    }
    static float image[SIDE * SIDE * COLOURS];
    const int64_t dims[] = {1, SIDE, SIDE, COLOURS};
    float logits[CLASSES], before, after;
    graphi_graph *forward = network(false), *training = network(true);
    graphi_machine *machine;
    graphi_plan *evaluating, *learning;
    graphi_state *state;
    graphi_run *run;
    for (int i = 0; i < SIDE * SIDE * COLOURS; i++)
        image[i] = (float)i / (SIDE * SIDE * COLOURS) - 0.5f;
    if (count > 2)
        check(graphi_array_load(word[2], GRAPHI_F32, 4, dims, image));
    check(graphi_machine_create(0, &machine));
    check(graphi_plan_create(forward, machine, NULL, &evaluating));
    check(graphi_plan_create(training, machine, NULL, &learning));

    /* 1. A state of the forward graph's parameters, all of which are in the file. */
    check(graphi_state_create(forward, 1, &state));
    check(graphi_state_load(state, word[1], NULL, NULL));
    check(graphi_run_create(evaluating, state, &run));
    check(graphi_run_set(run, "images", GRAPHI_F32, image, sizeof image));
    check(graphi_run_execute(run));
    check(graphi_run_get(run, "logits", GRAPHI_F32, logits, sizeof logits));
    graphi_run_destroy(run);
    printf("logits");
    for (int c = 0; c < CLASSES; c++)
        printf(" %.5f", (double)logits[c]);

    /* 2. What the training graph has beyond them: here the optimizer's momentum, from zero. */
    check(graphi_state_extend(state, training));
    int32_t label = highest(logits);
    check(graphi_run_create(learning, state, &run));
    check(graphi_run_set(run, "images", GRAPHI_F32, image, sizeof image));
    check(graphi_run_set(run, "labels", GRAPHI_I32, &label, sizeof label));
    check(graphi_run_execute(run));
    check(graphi_run_get(run, "loss", GRAPHI_F32, &before, sizeof before));
    check(graphi_run_execute(run)); /* a second step, whose loss is that after the first */
    check(graphi_run_get(run, "loss", GRAPHI_F32, &after, sizeof after));
    printf("\nclass %d, loss %.5f, after a step %.5f\n", label, (double)before, (double)after);

    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(evaluating);
    graphi_plan_destroy(learning);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(forward);
    graphi_graph_destroy(training);
    return 0;
}
