/* SPDX-License-Identifier: Apache-2.0 */
/* GoogLeNet (Szegedy et al. 2015): stem, nine inception modules, global average, classifier. `units` is the width
 * multiplier (graphi.txt Table 1: 1, 2, 4). Local response normalization, batch normalization and the two auxiliary
 * classifiers (behind 4a and 4d, as published; of images of a side below 65 the window of their average is what is left
 * of the image) are switches; dropout is part of the real task only, so that the bench form has one answer. */
#include "models/model.h"

#include <stdio.h>

struct builder {
    graphi_graph *graph;
    const graphi_model_info *sizes;
    const graphi_model_options *options;
};

/* Convolution (same padding), bias or batch normalization, ReLU. */
static struct model_image conv(const struct builder *b, const char *scope, struct model_image x, int64_t kernel,
                               int64_t stride, int64_t channels)
{
    graphi_graph *g = b->graph;
    graphi_scope(g, scope);
    const struct model_window window = {kernel, kernel, stride, false};
    struct model_image y = model_conv(g, scope, x, &window, channels * b->sizes->units);
    if (b->options->batch_norm)
        y.value =
            model_batch_norm(g, scope, y.value, y.channels, 1e-5, b->options->evaluation ? MODEL_RUNNING : MODEL_TRAIN);
    else
        y.value = graphi_add(g, y.value, model_bias(g, scope, "bias", y.channels));
    y.value = graphi_relu(g, y.value);
    return y;
}

/* 3x3 maximum, padded so that a stride of 2 halves the side. */
static struct model_image pool(const struct builder *b, const char *scope, struct model_image x, int64_t stride)
{
    graphi_scope(b->graph, scope);
    graphi_value y =
        graphi_max_pool(b->graph, x.value, GRAPHI_LIST(3, 3), GRAPHI_LIST(stride, stride), GRAPHI_LIST(1, 1, 1, 1), 0);
    return (struct model_image){y, (x.side - 1) / stride + 1, x.channels};
}

static struct model_image lrn(const struct builder *b, struct model_image x)
{
    if (b->options->lrn)
        x.value = graphi_lrn(b->graph, x.value, 5, 1e-4, 0.75, 1.0);
    return x;
}

struct inception {
    const char *name;
    int64_t one, three_reduce, three, five_reduce, five, projection;
};

static struct model_image inception(const struct builder *b, struct model_image x, const struct inception *m)
{
    char scope[4][48];
    static const char *const parts[] = {"%s/one", "%s/three", "%s/five", "%s/pool"};
    for (int i = 0; i < 4; i++)
        snprintf(scope[i], sizeof scope[i], parts[i], m->name);
    char reduce3[64], reduce5[64], project[64];
    snprintf(reduce3, sizeof reduce3, "%s/reduce", scope[1]);
    snprintf(reduce5, sizeof reduce5, "%s/reduce", scope[2]);
    snprintf(project, sizeof project, "%s/project", scope[3]);
    struct model_image branch[] = {
        conv(b, scope[0], x, 1, 1, m->one),
        conv(b, scope[1], conv(b, reduce3, x, 1, 1, m->three_reduce), 3, 1, m->three),
        conv(b, scope[2], conv(b, reduce5, x, 1, 1, m->five_reduce), 5, 1, m->five),
        conv(b, project, pool(b, scope[3], x, 1), 1, 1, m->projection),
    };
    graphi_scope(b->graph, m->name);
    graphi_value values[4];
    struct model_image y = {GRAPHI_NONE, x.side, 0};
    for (int i = 0; i < 4; i++) {
        values[i] = branch[i].value;
        y.channels += branch[i].channels;
    }
    y.value = graphi_concat(b->graph, 4, values, 3);
    return y;
}

/* features[batch,count] -> logits. */
static graphi_value decide(const struct builder *b, const char *scope, graphi_value features, int64_t count,
                           double drop)
{
    graphi_scope(b->graph, scope);
    if (model_is_real(b->options) && !b->options->evaluation)
        features = graphi_dropout(b->graph, features, 1 - drop);
    return model_dense(b->graph, scope, features, count, b->sizes->classes);
}

static graphi_value classifier(const struct builder *b, const char *scope, struct model_image x)
{
    graphi_graph *g = b->graph;
    graphi_scope(g, scope);
    graphi_value features =
        graphi_reshape(g, graphi_global_avg_pool(g, x.value), GRAPHI_LIST(b->sizes->batch, x.channels));
    return decide(b, scope, features, x.channels, 0.4);
}

/* 5x5 average with stride 3, 1x1 128, dense 1024, classifier. */
static graphi_value side_classifier(const struct builder *b, const char *scope, struct model_image x)
{
    enum { WINDOW = 5, STRIDE = 3, CHANNELS = 128, NEURONS = 1024 };
    graphi_graph *g = b->graph;
    char part[2][48];
    snprintf(part[0], sizeof part[0], "%s/conv", scope);
    snprintf(part[1], sizeof part[1], "%s/dense", scope);
    graphi_scope(g, scope);
    const int64_t window = x.side < WINDOW ? x.side : WINDOW, neurons = NEURONS * b->sizes->units;
    x.value = graphi_avg_pool(g, x.value, GRAPHI_LIST(window, window), GRAPHI_LIST(STRIDE, STRIDE),
                              GRAPHI_LIST(0, 0, 0, 0), 0, 0);
    x.side = (x.side - window) / STRIDE + 1;
    x = conv(b, part[0], x, 1, 1, CHANNELS);
    graphi_scope(g, part[1]);
    const int64_t count = x.side * x.side * x.channels;
    graphi_value features = graphi_reshape(g, x.value, GRAPHI_LIST(b->sizes->batch, count));
    features = graphi_relu(g, model_dense(g, part[1], features, count, neurons));
    return decide(b, scope, features, neurons, 0.7);
}

static void build(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    static const struct inception modules[] = {
        {"3a", 64, 96, 128, 16, 32, 32},     {"3b", 128, 128, 192, 32, 96, 64},   {"4a", 192, 96, 208, 16, 48, 64},
        {"4b", 160, 112, 224, 24, 64, 64},   {"4c", 128, 128, 256, 24, 64, 64},   {"4d", 112, 144, 288, 32, 64, 64},
        {"4e", 256, 160, 320, 32, 128, 128}, {"5a", 256, 160, 320, 32, 128, 128}, {"5b", 384, 192, 384, 48, 128, 128},
    };
    const struct builder b = {graph, s, options};
    struct model_image x = {
        graphi_input(graph, "images", GRAPHI_F32, 4, (int64_t[]){s->batch, s->image, s->image, s->channels}), s->image,
        s->channels};
    graphi_value auxiliary[2] = {GRAPHI_NONE, GRAPHI_NONE};
    x = lrn(&b, pool(&b, "pool1", conv(&b, "conv1", x, 7, 2, 64), 2));
    x = conv(&b, "conv2", conv(&b, "conv2/reduce", x, 1, 1, 64), 3, 1, 192);
    x = pool(&b, "pool2", lrn(&b, x), 2);
    for (int i = 0; i < 9; i++) {
        if (i == 2 || i == 7)
            x = pool(&b, i == 2 ? "pool3" : "pool4", x, 2);
        x = inception(&b, x, &modules[i]);
        if (options->auxiliary && !options->evaluation && (i == 2 || i == 5))
            auxiliary[i == 5] = side_classifier(&b, i == 2 ? "auxiliary1" : "auxiliary2", x);
    }
    graphi_value logits = classifier(&b, "output", x);
    graphi_value loss = model_classify(graph, logits, s->batch);
    for (int i = 0; i < 2 && auxiliary[i] != GRAPHI_NONE; i++) {
        graphi_value more = graphi_softmax_cross_entropy(graph, auxiliary[i], graphi_find(graph, "labels"));
        loss = graphi_add(graph, loss, graphi_mul(graph, model_scalar(graph, 0.3f), more));
    }
    graphi_output(graph, "loss", loss);
    graphi_optimizer optimizer = {.kind = model_is_real(options) ? GRAPHI_MOMENTUM : GRAPHI_SGD};
    model_train(graph, loss, options, &optimizer);
}

const struct model model_googlenet = {
    .info = {.name = "googlenet",
             .summary = "GoogLeNet, nine inception modules",
             .feed = GRAPHI_MODEL_IMAGES,
             .batch = 32,
             .channels = 3,
             .classes = 1000,
             .metric = "accuracy",
             .rate = 0.01,
             .schedule = "constant",
             .epochs = 1},
    .size = {{.image = 128, .units = 1}, {.image = 192, .units = 2}, {.image = 256, .units = 4}},
    .switches = MODEL_IMAGE | MODEL_BATCH_NORM | MODEL_LRN | MODEL_AUXILIARY,
    .build = build,
};
