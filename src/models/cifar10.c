/* SPDX-License-Identifier: Apache-2.0 */
/* The two networks for CIFAR-10 that come with Caffe, which NUMA-Caffe is measured with (numa-caffe.txt 5): three 5x5
 * convolutions, each with a pool of 3x3 and stride 2, and one or two layers of neurons. `full` normalizes within
 * channels after its first two pools: the average of squares in a window of 3x3, zeros around, and
 * x (1 + 5e-5 average)^-0.75. Sizes of pools are rounded up. Images are bytes less their mean, neither divided nor
 * scaled: initial deviations and rates go with that. */
#include "models/model.h"

struct builder {
    graphi_graph *graph;
    bool full;
};

enum { LRN_SIDE = 3 };

/* x s^-0.75, by two roots in place of a power. */
static graphi_value normalize(graphi_graph *graph, graphi_value x)
{
    const int64_t pad = LRN_SIDE / 2;
    graphi_value squares = graphi_avg_pool(graph, graphi_square(graph, x), GRAPHI_LIST(LRN_SIDE, LRN_SIDE),
                                           GRAPHI_LIST(1, 1), GRAPHI_LIST(pad, pad, pad, pad), 0, 1);
    graphi_value sum = graphi_fma(graph, squares, model_scalar(graph, 5e-5f), model_scalar(graph, 1));
    graphi_value root = graphi_rsqrt(graph, sum);
    return graphi_mul(graph, x, graphi_mul(graph, root, graphi_sqrt(graph, root)));
}

static graphi_value parameter(graphi_graph *graph, const char *scope, const char *name, int rank, const int64_t *dims,
                              double deviation, double rate, double decay)
{
    const graphi_init_kind kind = deviation > 0 ? GRAPHI_INIT_NORMAL : GRAPHI_INIT_ZERO;
    graphi_value made = model_weight(graph, scope, name, rank, dims, kind, 0, deviation);
    graphi_multiply(graph, made, rate, decay);
    return made;
}

/* 5x5, "same" padding; bias_rate multiplies the learning rate of the bias. */
static struct model_image conv(const struct builder *b, const char *scope, struct model_image x, int64_t channels,
                               double deviation, double bias_rate)
{
    graphi_graph *g = b->graph;
    graphi_scope(g, scope);
    graphi_value w = parameter(g, scope, "weight", 4, (int64_t[]){5, 5, x.channels, channels}, deviation, 1, 1);
    graphi_value y = graphi_conv2d(g, x.value, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(2, 2, 2, 2), GRAPHI_LIST(1, 1), 1);
    y = graphi_add(g, y, parameter(g, scope, "bias", 1, &channels, 0, bias_rate, 1));
    return (struct model_image){y, x.side, channels};
}

static struct model_image pool(const struct builder *b, struct model_image x, bool average)
{
    graphi_graph *g = b->graph;
    x.value = average ? graphi_avg_pool(g, x.value, GRAPHI_LIST(3, 3), GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 1, 0)
                      : graphi_max_pool(g, x.value, GRAPHI_LIST(3, 3), GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 1);
    x.side = model_pooled(x.side, 3, 2);
    return x;
}

static graphi_value dense(const struct builder *b, const char *scope, graphi_value x, int64_t in, int64_t out,
                          double deviation, double weight_decay, double bias_decay)
{
    graphi_graph *g = b->graph;
    graphi_scope(g, scope);
    graphi_value w = parameter(g, scope, "weight", 2, (int64_t[]){in, out}, deviation, 1, weight_decay);
    return graphi_add(g, graphi_matmul(g, x, w, 0, 0), parameter(g, scope, "bias", 1, &out, 0, 2, bias_decay));
}

static void build_network(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options,
                          bool full)
{
    const struct builder b = {graph, full};
    struct model_image x = {
        graphi_input(graph, "images", GRAPHI_F32, 4, (int64_t[]){s->batch, s->image, s->image, s->channels}), s->image,
        s->channels};
    x = pool(&b, conv(&b, "conv1", x, s->units, 1e-4, 2), false);
    x.value = graphi_relu(graph, x.value);
    x.value = full ? normalize(graph, x.value) : x.value;
    x = conv(&b, "conv2", x, s->units, 0.01, 2);
    x.value = graphi_relu(graph, x.value);
    x = pool(&b, x, true);
    x.value = full ? normalize(graph, x.value) : x.value;
    x = conv(&b, "conv3", x, 2 * s->units, 0.01, full ? 1 : 2);
    x.value = graphi_relu(graph, x.value);
    x = pool(&b, x, true);
    const int64_t count = x.side * x.side * x.channels;
    graphi_value features = graphi_reshape(graph, x.value, GRAPHI_LIST(s->batch, count)), logits;
    if (full)
        logits = dense(&b, "dense1", features, count, s->classes, 0.01, 250, 0);
    else
        logits = dense(&b, "dense2", dense(&b, "dense1", features, count, 2 * s->units, 0.1, 1, 1), 2 * s->units,
                       s->classes, 0.1, 1, 1);
    graphi_value loss = model_classify(graph, logits, s->batch);
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options,
                &(graphi_optimizer){.kind = GRAPHI_MOMENTUM, .weight_decay = 0.004, .rate_in_velocity = true});
}

static void build_full(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    build_network(graph, s, options, true);
}

static void build_quick(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    build_network(graph, s, options, false);
}

#define TRAINING                                                                                                       \
    .feed = GRAPHI_MODEL_IMAGES, .batch = 128, .channels = 3, .classes = 10, .metric = "accuracy", .rate = 0.001,      \
    .bytes = true

/* 60,000, 65,000 and 70,000 steps of 390 an epoch. */
const struct model model_cifar10_full = {
    .info = {.name = "cifar10-full",
             .summary = "Caffe's larger network for CIFAR-10",
             TRAINING,
             .epochs = 179,
             .schedule = "multi-step:0.1:153e:166e"},
    .size = {{.image = 32, .units = 32}},
    .switches = MODEL_IMAGE,
    .build = build_full,
};

/* 4,000 and 5,000 steps of 500, of batches of 100. */
const struct model model_cifar10_quick = {
    .info = {.name = "cifar10-quick",
             .summary = "Caffe's smaller network for CIFAR-10",
             TRAINING,
             .epochs = 10,
             .schedule = "multi-step:0.1:8e"},
    .size = {{.image = 32, .units = 32}},
    .switches = MODEL_IMAGE,
    .build = build_quick,
};
