/* SPDX-License-Identifier: Apache-2.0 */
/* Inception-v3 (Szegedy et al. 2016; slim's form): a stem, eleven modules of three kinds and two reductions, average,
 * classifier; `auxiliary` adds the side classifier, weighed 0.4. Batch normalization and ReLU after every convolution.
 * A module is a table: branches are chains of convolutions and poolings, the last two steps of a chain may fork.
 * `units` multiplies all widths. */
#include "models/model.h"

#include <stdio.h>

struct builder {
    graphi_graph *graph;
    const graphi_model_info *sizes;
    const graphi_model_options *options;
};

/* One step of a chain: a convolution to `channels`, or without channels a 3x3 pooling, an average with stride 1, else a
 * maximum. Forked: this step and the next take the same input, and both are results. height 0 ends the chain. */
struct step {
    int64_t height, width, channels, stride;
    bool forked;
};

enum { CHAIN = 7, BRANCHES = 4, MODULES = 11 };
struct module {
    const char *name;
    struct step branch[BRANCHES][CHAIN];
};

static struct model_image conv(const struct builder *b, const char *scope, struct model_image x, const struct step *s)
{
    const struct model_window window = {s->height, s->width, s->stride ? s->stride : 1, s->stride != 0};
    graphi_scope(b->graph, scope);
    struct model_image y = model_conv(b->graph, scope, x, &window, s->channels * b->sizes->units);
    enum model_statistics statistics = b->options->evaluation ? MODEL_RUNNING : MODEL_TRAIN;
    y.value = graphi_relu(b->graph, model_batch_norm(b->graph, scope, y.value, y.channels, 1e-3, statistics));
    return y;
}

static struct model_image pool(const struct builder *b, const char *scope, struct model_image x, int64_t stride)
{
    graphi_scope(b->graph, scope);
    if (stride == 0) {
        x.value =
            graphi_avg_pool(b->graph, x.value, GRAPHI_LIST(3, 3), GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), 0, 0);
        return x;
    }
    graphi_value y =
        graphi_max_pool(b->graph, x.value, GRAPHI_LIST(3, 3), GRAPHI_LIST(stride, stride), GRAPHI_LIST(0, 0, 0, 0), 0);
    return (struct model_image){y, (x.side - 3) / stride + 1, x.channels};
}

static struct model_image step(const struct builder *b, const char *scope, struct model_image x, const struct step *s)
{
    return s->channels ? conv(b, scope, x, s) : pool(b, scope, x, s->stride);
}

/* Applies a chain; appends what comes out of it. */
static int chain(const struct builder *b, const char *module, int branch, const struct step *steps,
                 struct model_image x, struct model_image *out)
{
    for (int i = 0; i < CHAIN && steps[i].height; i++) {
        char scope[48];
        snprintf(scope, sizeof scope, "%s/branch%d/%d", module, branch, i);
        struct model_image y = step(b, scope, x, &steps[i]);
        if (steps[i].forked) {
            snprintf(scope, sizeof scope, "%s/branch%d/%d", module, branch, i + 1);
            out[0] = y;
            out[1] = step(b, scope, x, &steps[i + 1]);
            return 2;
        }
        x = y;
    }
    out[0] = x;
    return 1;
}

static struct model_image module(const struct builder *b, struct model_image x, const struct module *m)
{
    struct model_image out[2 * BRANCHES], y = {GRAPHI_NONE, 0, 0};
    graphi_value values[2 * BRANCHES];
    int count = 0;
    for (int i = 0; i < BRANCHES && m->branch[i][0].height; i++)
        count += chain(b, m->name, i, m->branch[i], x, out + count);
    for (int i = 0; i < count; i++) {
        values[i] = out[i].value;
        y.side = out[i].side;
        y.channels += out[i].channels;
    }
    graphi_scope(b->graph, m->name);
    y.value = count == 1 ? values[0] : graphi_concat(b->graph, count, values, 3);
    return y;
}

/* A stride that is given means no padding (the reductions and the stem); none means stride 1 and "same" padding. */
/* clang-format off */
#define C(size, n) {size, size, n, 0, false}
#define VALID(size, n, stride) {size, size, n, stride, false}
#define ROW(n) {1, 7, n, 0, false}
#define COLUMN(n) {7, 1, n, 0, false}
#define FORK(n) {1, 3, n, 0, true}, {3, 1, n, 0, false}
#define AVERAGE {3, 3, 0, 0, false}
#define MAXIMUM {3, 3, 0, 2, false}
#define FIVE(name, n) {name, {{C(1, 64)}, {C(1, 48), C(5, 64)}, {C(1, 64), C(3, 96), C(3, 96)}, {AVERAGE, C(1, n)}}}
#define SIX(name, n)                                                                                         \
    {name, {{C(1, 192)}, {C(1, n), ROW(n), COLUMN(192)}, {C(1, n), COLUMN(n), ROW(n), COLUMN(n), ROW(192)},  \
            {AVERAGE, C(1, 192)}}}
#define SEVEN(name)                                                                                          \
    {name, {{C(1, 320)}, {C(1, 384), FORK(384)}, {C(1, 448), C(3, 384), FORK(384)}, {AVERAGE, C(1, 192)}}}

static const struct module stem = {
    "stem", {{VALID(3, 32, 2), VALID(3, 32, 1), C(3, 64), MAXIMUM, C(1, 80), VALID(3, 192, 1), MAXIMUM}}};
static const struct module modules[MODULES] = {
    FIVE("5b", 32), FIVE("5c", 64), FIVE("5d", 64),
    {"6a", {{VALID(3, 384, 2)}, {C(1, 64), C(3, 96), VALID(3, 96, 2)}, {MAXIMUM}}},
    SIX("6b", 128), SIX("6c", 160), SIX("6d", 160), SIX("6e", 192),
    {"7a", {{C(1, 192), VALID(3, 320, 2)}, {C(1, 192), ROW(192), COLUMN(192), VALID(3, 192, 2)}, {MAXIMUM}}},
    SEVEN("7b"), SEVEN("7c"),
};
/* clang-format on */

enum { BEFORE_AUXILIARY = 7 }; /* the side classifier reads module 6e */

static graphi_value classifier(const struct builder *b, const char *scope, struct model_image x, double keep)
{
    graphi_graph *g = b->graph;
    graphi_scope(g, scope);
    graphi_value features =
        graphi_reshape(g, graphi_global_avg_pool(g, x.value), GRAPHI_LIST(b->sizes->batch, x.channels));
    if (keep < 1 && model_is_real(b->options) && !b->options->evaluation)
        features = graphi_dropout(g, features, keep);
    return model_dense(g, scope, features, x.channels, b->sizes->classes);
}

/* 5x5 average with stride 3, 1x1 128, 5x5 768; windows shrink with small images. */
static graphi_value auxiliary(const struct builder *b, struct model_image x)
{
    graphi_scope(b->graph, "auxiliary");
    int64_t window = x.side < 5 ? x.side : 5;
    x.value = graphi_avg_pool(b->graph, x.value, GRAPHI_LIST(window, window), GRAPHI_LIST(3, 3),
                              GRAPHI_LIST(0, 0, 0, 0), 0, 0);
    x.side = (x.side - window) / 3 + 1;
    x = conv(b, "auxiliary/conv1", x, &(struct step)C(1, 128));
    x = conv(b, "auxiliary/conv2", x, &(struct step)VALID(x.side < 5 ? x.side : 5, 768, 1));
    return classifier(b, "auxiliary", x, 1);
}

static void build(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    const struct builder b = {graph, s, options};
    const int64_t dims[] = {s->batch, s->image, s->image, s->channels};
    struct model_image x = {graphi_input(graph, "images", GRAPHI_F32, 4, dims), s->image, s->channels};
    graphi_value side = GRAPHI_NONE;
    x = module(&b, x, &stem);
    for (int i = 0; i < MODULES; i++) {
        x = module(&b, x, &modules[i]);
        if (i == BEFORE_AUXILIARY && options->auxiliary && !options->evaluation)
            side = auxiliary(&b, x);
    }
    graphi_value loss = model_classify(graph, classifier(&b, "output", x, 0.8), s->batch);
    if (side != GRAPHI_NONE) {
        graphi_value more = graphi_softmax_cross_entropy(graph, side, graphi_find(graph, "labels"));
        loss = graphi_add(graph, loss, graphi_mul(graph, model_scalar(graph, 0.4f), more));
    }
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options, &(graphi_optimizer){.kind = GRAPHI_MOMENTUM, .weight_decay = 4e-5});
}

const struct model model_inception_v3 = {
    .info = {.name = "inception-v3",
             .summary = "Inception-v3, eleven modules",
             .feed = GRAPHI_MODEL_IMAGES,
             .batch = 16,
             .channels = 3,
             .classes = 1000,
             .metric = "accuracy",
             .rate = 0.045,
             .schedule = "exponential:0.94:2e",
             .epochs = 100},
    .size = {{.image = 299, .units = 1}},
    .switches = MODEL_IMAGE | MODEL_AUXILIARY,
    .build = build,
};
