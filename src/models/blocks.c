/* SPDX-License-Identifier: Apache-2.0 */
/* The building blocks that the networks share. */
#include "models/model.h"

#include <stdio.h>
#include <string.h>

const char *const model_sizes[3] = {"small", "medium", "large"};

int model_size_index(const graphi_model_options *options)
{
    for (int i = 0; i < 3; i++)
        if (!options->size || strcmp(options->size, model_sizes[i]) == 0)
            return i;
    return -1;
}

bool model_is_real(const graphi_model_options *options)
{
    return options->task && strcmp(options->task, "real") == 0;
}

graphi_value model_weight(graphi_graph *graph, const char *scope, const char *name, int rank, const int64_t *dims,
                          graphi_init_kind kind, double a, double b)
{
    char full[160];
    snprintf(full, sizeof full, "%s/%s", scope, name);
    graphi_value shared = graphi_find(graph, full);
    if (shared != GRAPHI_NONE)
        return shared;
    graphi_initializer init = {.kind = kind, .a = a, .b = b};
    return graphi_parameter(graph, full, GRAPHI_F32, rank, dims, &init);
}

graphi_value model_bias(graphi_graph *graph, const char *scope, const char *name, int64_t count)
{
    return model_weight(graph, scope, name, 1, &count, GRAPHI_INIT_ZERO, 0, 0);
}

graphi_value model_scalar(graphi_graph *graph, float value)
{
    return graphi_constant(graph, GRAPHI_F32, 0, NULL, &value);
}

graphi_value model_dense(graphi_graph *graph, const char *scope, graphi_value x, int64_t in, int64_t out)
{
    graphi_value w = model_weight(graph, scope, "weight", 2, (int64_t[]){in, out}, GRAPHI_INIT_GLOROT_UNIFORM, 0, 0);
    return graphi_add(graph, graphi_matmul(graph, x, w, 0, 0), model_bias(graph, scope, "bias", out));
}

struct model_image model_conv(graphi_graph *graph, const char *scope, struct model_image x,
                              const struct model_window *window, int64_t channels)
{
    const int64_t h = window->height, w = window->width, stride = window->stride;
    const int64_t above = window->valid ? 0 : h / 2, left = window->valid ? 0 : w / 2;
    const int64_t dims[] = {h, w, x.channels, channels};
    graphi_value weight = model_weight(graph, scope, "weight", 4, dims, GRAPHI_INIT_HE_NORMAL, 0, 0);
    graphi_value y = graphi_conv2d(graph, x.value, weight, GRAPHI_LIST(stride, stride),
                                   GRAPHI_LIST(above, left, above, left), GRAPHI_LIST(1, 1), 1);
    return (struct model_image){y, (x.side + 2 * above - h) / stride + 1, channels};
}

int64_t model_pooled(int64_t side, int64_t kernel, int64_t stride)
{
    return side <= kernel ? 1 : (side - kernel + stride - 1) / stride + 1;
}

/* running <- 0.9 running + 0.1 batch */
static void follow(graphi_graph *graph, graphi_value running, graphi_value batch)
{
    graphi_value rate = model_scalar(graph, 0.1f), kept = graphi_sub(graph, model_scalar(graph, 1), rate);
    graphi_assign(graph, running, graphi_add(graph, graphi_mul(graph, kept, running), graphi_mul(graph, rate, batch)));
}

graphi_value model_batch_norm(graphi_graph *graph, const char *scope, graphi_value x, int64_t channels, double epsilon,
                              enum model_statistics statistics)
{
    graphi_value scale = model_weight(graph, scope, "scale", 1, &channels, GRAPHI_INIT_CONSTANT, 1, 0);
    graphi_value shift = model_bias(graph, scope, "shift", channels);
    if (statistics == MODEL_BATCH)
        return graphi_batch_norm(graph, x, scale, shift, epsilon);
    graphi_value mean = model_bias(graph, scope, "mean", channels);
    graphi_value variance = model_weight(graph, scope, "variance", 1, &channels, GRAPHI_INIT_CONSTANT, 1, 0);
    graphi_freeze(graph, mean);
    graphi_freeze(graph, variance);
    if (statistics == MODEL_RUNNING)
        return graphi_batch_norm_inference(graph, x, scale, shift, mean, variance, epsilon);
    graphi_value y = graphi_batch_norm(graph, x, scale, shift, epsilon), batch_mean = y + 1, inv_std = y + 2;
    follow(graph, mean, batch_mean);
    graphi_value inverse = graphi_reciprocal(graph, graphi_mul(graph, inv_std, inv_std));
    follow(graph, variance, graphi_sub(graph, inverse, model_scalar(graph, (float)epsilon)));
    return y;
}

graphi_value model_classify(graphi_graph *graph, graphi_value logits, int64_t batch)
{
    graphi_scope(graph, "loss");
    graphi_value labels = graphi_input(graph, "labels", GRAPHI_I32, 1, &batch);
    graphi_value loss = graphi_softmax_cross_entropy(graph, logits, labels);
    graphi_output(graph, "logits", logits);
    return loss;
}

void model_train(graphi_graph *graph, graphi_value loss, const graphi_model_options *options,
                 const graphi_optimizer *optimizer)
{
    if (options->evaluation || options->forward)
        return;
    graphi_optimizer settled = *optimizer;
    settled.sparse = options->dense ? GRAPHI_OFF : settled.sparse;
    settled.learning_rate = graphi_input(graph, "learning_rate", GRAPHI_F32, 0, NULL);
    graphi_minimize(graph, loss, &settled);
}

void model_output_gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *parameters,
                            const char *const *names)
{
    graphi_value gradients[64];
    if (graphi_gradients(graph, loss, n, parameters, gradients) != GRAPHI_OK)
        return;
    for (int i = 0; i < n; i++) {
        char name[160];
        snprintf(name, sizeof name, "gradient/%s", names[i]);
        graphi_output(graph, name, gradients[i]);
    }
}

/* Rates that optimizers start from where the network's own one has another. */
static const struct {
    const char *name;
    graphi_optimizer_kind kind;
    double rate;
} optimizers[] = {{"sgd", GRAPHI_SGD, 1}, {"momentum", GRAPHI_MOMENTUM, 0.1}, {"adam", GRAPHI_ADAM, 0.002},
                  {"adagrad", GRAPHI_ADAGRAD, 0.1}};

bool model_optimizer(const char *name, graphi_optimizer_kind *kind)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (strcmp(optimizers[i].name, name) == 0) {
            *kind = optimizers[i].kind;
            return true;
        }
    return false;
}

double model_rate(graphi_optimizer_kind kind)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (optimizers[i].kind == kind)
            return optimizers[i].rate;
    return 0;
}
