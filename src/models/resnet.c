/* SPDX-License-Identifier: Apache-2.0 */
/* Residual networks for CIFAR-10 (He et al. 2016, pre-activation): a 3x3 stem, stages of blocks BN-ReLU-convolution
 * twice plus the block's input, average, classifier. The first block of a stage changes size and channels, with a 1x1
 * projection of its first pre-activation in place of its input. 6n + 2 layers: three stages of n blocks, 16, 32, 64
 * channels (`units` is the first), so resnet20 has n = 3 and resnet50 n = 8 (concurrency-control.txt takes TensorFlow's
 * model, which is this one). The bottleneck form has blocks of 1x1, 3x3, 1x1 convolutions, the last four times as wide:
 * resnet20 is three stages of two (9n + 2 layers); resnet50 is the network known by that name, 3, 4, 6, 3 blocks from 4
 * * `units` = 64 channels on. */
#include "models/model.h"

#include <stdio.h>

enum { MAX_STAGES = 4 };

struct builder {
    graphi_graph *graph;
    enum model_statistics statistics;
};

/* How many blocks a stage has; `width` of the first stage, of `units`. */
struct form {
    int64_t layers;
    bool bottleneck;
    int64_t width;
    int blocks[MAX_STAGES];
};

static const struct form forms[] = {
    {20, false, 1, {3, 3, 3}},
    {20, true, 1, {2, 2, 2}},
    {50, false, 1, {8, 8, 8}},
    {50, true, 4, {3, 4, 6, 3}},
};

static struct model_image conv(const struct builder *b, const char *scope, const char *name, struct model_image x,
                               int64_t kernel, int64_t stride, int64_t channels)
{
    char full[64];
    snprintf(full, sizeof full, "%s/%s", scope, name);
    graphi_scope(b->graph, full);
    return model_conv(b->graph, full, x, &(struct model_window){kernel, kernel, stride, false}, channels);
}

static struct model_image activate(const struct builder *b, const char *scope, const char *name, struct model_image x)
{
    char full[64];
    snprintf(full, sizeof full, "%s/%s", scope, name);
    graphi_scope(b->graph, full);
    x.value = graphi_relu(b->graph, model_batch_norm(b->graph, full, x.value, x.channels, 1e-5, b->statistics));
    return x;
}

static struct model_image block(const struct builder *b, const char *scope, struct model_image x, int64_t channels,
                                int64_t stride, bool first, bool bottleneck)
{
    int64_t out = bottleneck ? 4 * channels : channels;
    struct model_image y = activate(b, scope, "norm1", x);
    struct model_image shortcut = first ? conv(b, scope, "project", y, 1, stride, out) : x;
    if (bottleneck) {
        y = activate(b, scope, "norm2", conv(b, scope, "conv1", y, 1, 1, channels));
        y = activate(b, scope, "norm3", conv(b, scope, "conv2", y, 3, stride, channels));
        y = conv(b, scope, "conv3", y, 1, 1, out);
    } else {
        y = activate(b, scope, "norm2", conv(b, scope, "conv1", y, 3, stride, channels));
        y = conv(b, scope, "conv2", y, 3, 1, channels);
    }
    y.value = graphi_add(b->graph, y.value, shortcut.value);
    return y;
}

static const struct form *form_of(const graphi_model_info *s, bool bottleneck)
{
    const struct form *form = forms;
    while (form->layers != s->layers || form->bottleneck != bottleneck)
        form++;
    return form;
}

static void build(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    const struct builder b = {graph, options->evaluation ? MODEL_RUNNING : MODEL_TRAIN};
    const struct form *form = form_of(s, options->bottleneck);
    const int64_t dims[] = {s->batch, s->image, s->image, s->channels};
    struct model_image x = {graphi_input(graph, "images", GRAPHI_F32, 4, dims), s->image, s->channels};
    int64_t channels = form->width * s->units;
    x = conv(&b, "stem", "conv", x, 3, 1, channels);
    for (int stage = 0; stage < MAX_STAGES; stage++, channels *= 2)
        for (int i = 0; i < form->blocks[stage]; i++) {
            char scope[40];
            snprintf(scope, sizeof scope, "stage%d/block%d", stage, i);
            x = block(&b, scope, x, channels, stage && !i ? 2 : 1, i == 0, options->bottleneck);
        }
    x = activate(&b, "output", "norm", x);
    graphi_scope(graph, "output");
    graphi_value features =
        graphi_reshape(graph, graphi_global_avg_pool(graph, x.value), GRAPHI_LIST(s->batch, x.channels));
    graphi_value loss = model_classify(graph, model_dense(graph, "output", features, x.channels, s->classes), s->batch);
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options, &(graphi_optimizer){.kind = GRAPHI_MOMENTUM, .weight_decay = 2e-4});
}

#define TRAINING                                                                                                       \
    .feed = GRAPHI_MODEL_IMAGES, .batch = 64, .channels = 3, .classes = 10, .metric = "accuracy", .rate = 0.05,        \
    .epochs = 182, .schedule = "multi-step:0.1:91e:136e:182e"

const struct model model_resnet20 = {
    .info = {.name = "resnet20", .summary = "residual network for CIFAR-10, 20 layers", .layers = 20, TRAINING},
    .size = {{.image = 32, .units = 16}},
    .rate_per_sample = true,
    .switches = MODEL_IMAGE | MODEL_BOTTLENECK,
    .build = build,
};

const struct model model_resnet50 = {
    .info = {.name = "resnet50", .summary = "residual network for CIFAR-10, 50 layers", .layers = 50, TRAINING},
    .size = {{.image = 32, .units = 16}},
    .rate_per_sample = true,
    .switches = MODEL_IMAGE | MODEL_BOTTLENECK,
    .build = build,
};
