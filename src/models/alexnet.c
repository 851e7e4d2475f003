/* SPDX-License-Identifier: Apache-2.0 */
/* AlexNet (Krizhevsky et al. 2012) in the form that comes with Caffe, which NUMA-Caffe is measured with (numa-caffe.txt
 * 5): five convolutions, three of them in two groups, normalization across five channels, three maxima of 3x3 and
 * stride 2 whose sizes are rounded up, two layers of 4,096 neurons with dropout. `units` is the number of channels of
 * the first convolution, 96 as published; the others grow and shrink with it. */
#include "models/model.h"

struct builder {
    graphi_graph *graph;
    const graphi_model_info *sizes;
    bool drops;
};

/* A layer: its window, pads and stride (of a convolution), its results, groups, initial deviation and bias. */
struct layer {
    const char *name;
    int64_t kernel, stride, pad, count, groups;
    double deviation, bias;
};

/* Published counts are of 96 channels; even, since groups halve them. */
static int64_t count_of(const struct builder *b, int64_t published)
{
    enum { PUBLISHED = 96 };
    return (published * b->sizes->units + 2 * PUBLISHED - 1) / (2 * PUBLISHED) * 2;
}

static graphi_value weight(const struct builder *b, const struct layer *l, int rank, const int64_t *dims)
{
    return model_weight(b->graph, l->name, "weight", rank, dims, GRAPHI_INIT_NORMAL, 0, l->deviation);
}

/* y + bias, which learns twice as fast and does not decay. */
static graphi_value biased(const struct builder *b, const struct layer *l, graphi_value y, int64_t count)
{
    graphi_value bias = model_weight(b->graph, l->name, "bias", 1, &count, GRAPHI_INIT_CONSTANT, l->bias, 0);
    graphi_multiply(b->graph, bias, 2, 0);
    return graphi_add(b->graph, y, bias);
}

static struct model_image conv(const struct builder *b, const struct layer *l, struct model_image x)
{
    graphi_graph *g = b->graph;
    const int64_t count = count_of(b, l->count);
    graphi_scope(g, l->name);
    graphi_value w = weight(b, l, 4, (int64_t[]){l->kernel, l->kernel, x.channels / l->groups, count});
    graphi_value y = graphi_conv2d(g, x.value, w, GRAPHI_LIST(l->stride, l->stride),
                                   GRAPHI_LIST(l->pad, l->pad, l->pad, l->pad), GRAPHI_LIST(1, 1), l->groups);
    y = graphi_relu(g, biased(b, l, y, count));
    return (struct model_image){y, (x.side + 2 * l->pad - l->kernel) / l->stride + 1, count};
}

static struct model_image pool(const struct builder *b, struct model_image x, bool normalized)
{
    if (normalized)
        x.value = graphi_lrn(b->graph, x.value, 5, 1e-4, 0.75, 1);
    x.value = graphi_max_pool(b->graph, x.value, GRAPHI_LIST(3, 3), GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 1);
    x.side = model_pooled(x.side, 3, 2);
    return x;
}

static graphi_value dense(const struct builder *b, const struct layer *l, graphi_value x, int64_t in, int64_t out)
{
    graphi_scope(b->graph, l->name);
    return biased(b, l, graphi_matmul(b->graph, x, weight(b, l, 2, (int64_t[]){in, out}), 0, 0), out);
}

static graphi_value neurons(const struct builder *b, const struct layer *l, graphi_value x, int64_t in)
{
    x = graphi_relu(b->graph, dense(b, l, x, in, count_of(b, l->count)));
    return b->drops ? graphi_dropout(b->graph, x, 0.5) : x;
}

static void build(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    static const struct layer layers[] = {
        {"conv1", 11, 4, 0, 96, 1, 0.01, 0},      {"conv2", 5, 1, 2, 256, 2, 0.01, 0.1},
        {"conv3", 3, 1, 1, 384, 1, 0.01, 0},      {"conv4", 3, 1, 1, 384, 2, 0.01, 0.1},
        {"conv5", 3, 1, 1, 256, 2, 0.01, 0.1},    {"dense6", 0, 0, 0, 4096, 1, 0.005, 0.1},
        {"dense7", 0, 0, 0, 4096, 1, 0.005, 0.1}, {"dense8", 0, 0, 0, 0, 1, 0.01, 0},
    };
    const struct builder b = {graph, s, model_is_real(options) && !options->evaluation};
    struct model_image x = {
        graphi_input(graph, "images", GRAPHI_F32, 4, (int64_t[]){s->batch, s->image, s->image, s->channels}), s->image,
        s->channels};
    x = pool(&b, conv(&b, &layers[0], x), true);
    x = pool(&b, conv(&b, &layers[1], x), true);
    x = conv(&b, &layers[3], conv(&b, &layers[2], x));
    x = pool(&b, conv(&b, &layers[4], x), false);
    const int64_t count = x.side * x.side * x.channels, wide = count_of(&b, layers[5].count);
    graphi_value y = graphi_reshape(graph, x.value, GRAPHI_LIST(s->batch, count));
    y = neurons(&b, &layers[6], neurons(&b, &layers[5], y, count), wide);
    graphi_value logits = dense(&b, &layers[7], y, wide, s->classes);
    graphi_value loss = model_classify(graph, logits, s->batch);
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options,
                &(graphi_optimizer){.kind = GRAPHI_MOMENTUM, .weight_decay = 5e-4, .rate_in_velocity = true});
}

/* A tenth of the rate every 100,000 steps, of 5,005 an epoch of ImageNet. */
const struct model model_alexnet = {
    .info = {.name = "alexnet",
             .summary = "AlexNet, five convolutions in up to two groups",
             .feed = GRAPHI_MODEL_IMAGES,
             .batch = 256,
             .channels = 3,
             .classes = 1000,
             .metric = "accuracy",
             .rate = 0.01,
             .schedule = "step:0.1:100000",
             .epochs = 90,
             .bytes = true,
             .augment = "crop:29,flip"},
    .size = {{.image = 227, .units = 96}},
    .switches = MODEL_IMAGE,
    .build = build,
};
