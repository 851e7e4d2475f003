/* SPDX-License-Identifier: Apache-2.0 */
/* A conditional DCGAN for 28x28 grey images (Radford et al. 2016, with labels), as three graphs over one state: the
 * discriminator's update, the generator's, and samples. Labels y, one-hot, are joined to every layer's input.
 *
 *   generator      z [100] y -> 16u -> 2u of a quarter of the side -> 5x5/2 transposed 2u -> 5x5/2 transposed 1,
 *                  sigmoid
 *   discriminator  image y -> 5x5/2 (1 + classes) -> 5x5/2 (u + classes) -> 16u -> 1
 *
 * with u = `units` = 64.
 *
 * Batch normalization in between (layers before one have no bias, which it would take away again), by the batch's own
 * statistics while training; the generator's running ones follow in its own update alone and serve the samples. The
 * discriminator never runs outside of training, so it keeps none. Parameters are named generator/... and
 * discriminator/..., by which each optimizer takes its own. */
#include "models/model.h"

#include <string.h>

enum { Z = 100, KERNEL = 5 };

struct builder {
    graphi_graph *graph;
    const graphi_model_info *sizes;
    graphi_value y;                   /* [batch,classes] */
    enum model_statistics statistics; /* of the generator */
};

static graphi_value weight(const struct builder *b, const char *scope, int rank, const int64_t *dims)
{
    return model_weight(b->graph, scope, "weight", rank, dims, GRAPHI_INIT_NORMAL, 0, 0.02);
}

static graphi_value dense(const struct builder *b, const char *scope, graphi_value x, int64_t in, int64_t out)
{
    graphi_scope(b->graph, scope);
    return graphi_matmul(b->graph, x, weight(b, scope, 2, (int64_t[]){in, out}), 0, 0);
}

static graphi_value biased(const struct builder *b, const char *scope, graphi_value x, int64_t channels)
{
    return graphi_add(b->graph, x, model_bias(b->graph, scope, "bias", channels));
}

/* Padding of a 5x5 window that halves an even side exactly: one before, two after. */
#define HALVING GRAPHI_LIST(2, 2), GRAPHI_LIST(1, 1, 2, 2), GRAPHI_LIST(1, 1), 1

static struct model_image halve(const struct builder *b, const char *scope, struct model_image x, int64_t channels)
{
    graphi_scope(b->graph, scope);
    graphi_value w = weight(b, scope, 4, (int64_t[]){KERNEL, KERNEL, x.channels, channels});
    return (struct model_image){graphi_conv2d(b->graph, x.value, w, HALVING), x.side / 2, channels};
}

/* Transposed convolution: the gradient, with respect to its images, of the convolution that halves. */
static struct model_image enlarge(const struct builder *b, const char *scope, struct model_image x, int64_t channels)
{
    graphi_scope(b->graph, scope);
    int64_t side = 2 * x.side;
    graphi_value w = weight(b, scope, 4, (int64_t[]){KERNEL, KERNEL, channels, x.channels});
    graphi_value y = graphi_conv2d_backward_data(b->graph, x.value, w, HALVING, GRAPHI_LIST(side, side));
    return (struct model_image){y, side, channels};
}

static graphi_value norm(const struct builder *b, const char *scope, graphi_value x, int64_t channels,
                         enum model_statistics statistics)
{
    return model_batch_norm(b->graph, scope, x, channels, 1e-5, statistics);
}

static graphi_value leaky(const struct builder *b, graphi_value x)
{
    return graphi_max(b->graph, x, graphi_mul(b->graph, x, model_scalar(b->graph, 0.2f)));
}

static graphi_value join(const struct builder *b, graphi_value x)
{
    graphi_value both[] = {x, b->y};
    return graphi_concat(b->graph, 2, both, 1);
}

static struct model_image join_maps(const struct builder *b, struct model_image x)
{
    const int64_t n = b->sizes->batch, classes = b->sizes->classes;
    graphi_value y = graphi_reshape(b->graph, b->y, GRAPHI_LIST(n, 1, 1, classes));
    graphi_value both[] = {x.value, graphi_expand(b->graph, y, GRAPHI_LIST(n, x.side, x.side, classes), NULL, 0)};
    return (struct model_image){graphi_concat(b->graph, 2, both, 3), x.side, x.channels + classes};
}

static graphi_value generator(const struct builder *b, graphi_value z)
{
    graphi_graph *g = b->graph;
    const int64_t n = b->sizes->batch, classes = b->sizes->classes, u = b->sizes->units, side = b->sizes->image / 4;
    const int64_t flat = side * side * 2 * u;
    graphi_value x = dense(b, "generator/dense1", join(b, z), Z + classes, 16 * u);
    x = graphi_relu(g, norm(b, "generator/dense1", x, 16 * u, b->statistics));
    x = dense(b, "generator/dense2", join(b, x), 16 * u + classes, flat);
    x = graphi_relu(g, norm(b, "generator/dense2", x, flat, b->statistics));
    struct model_image image = {graphi_reshape(g, x, GRAPHI_LIST(n, side, side, 2 * u)), side, 2 * u};
    image = enlarge(b, "generator/conv1", join_maps(b, image), 2 * u);
    image.value = graphi_relu(g, norm(b, "generator/conv1", image.value, 2 * u, b->statistics));
    image = enlarge(b, "generator/conv2", join_maps(b, image), b->sizes->channels);
    return graphi_sigmoid(g, biased(b, "generator/conv2", image.value, image.channels));
}

/* Logits [batch,1] that images are real. */
static graphi_value discriminator(const struct builder *b, graphi_value images)
{
    graphi_graph *g = b->graph;
    const int64_t n = b->sizes->batch, classes = b->sizes->classes, u = b->sizes->units;
    struct model_image x = join_maps(b, (struct model_image){images, b->sizes->image, b->sizes->channels});
    x = halve(b, "discriminator/conv1", x, b->sizes->channels + classes);
    x.value = leaky(b, biased(b, "discriminator/conv1", x.value, x.channels));
    x = halve(b, "discriminator/conv2", join_maps(b, x), u + classes);
    x.value = leaky(b, norm(b, "discriminator/conv2", x.value, x.channels, MODEL_BATCH));
    const int64_t flat = x.side * x.side * x.channels;
    graphi_value y = join(b, graphi_reshape(g, x.value, GRAPHI_LIST(n, flat)));
    y = dense(b, "discriminator/dense1", y, flat + classes, 16 * u);
    y = leaky(b, norm(b, "discriminator/dense1", y, 16 * u, MODEL_BATCH));
    y = dense(b, "discriminator/dense2", join(b, y), 16 * u + classes, 1);
    return biased(b, "discriminator/dense2", y, 1);
}

/* Mean cross-entropy of logits against one label: -log sigmoid(x) is softplus(-x), -log(1 - sigmoid(x)) softplus(x). */
static graphi_value verdict(const struct builder *b, graphi_value logits, bool real)
{
    graphi_scope(b->graph, "loss");
    graphi_value x = real ? graphi_neg(b->graph, logits) : logits;
    return graphi_reduce_mean(b->graph, graphi_softplus(b->graph, x), NULL, 0, 0);
}

static void train(graphi_graph *graph, graphi_value loss, const graphi_model_options *options, const char *only)
{
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options, &(graphi_optimizer){.kind = GRAPHI_ADAM, .beta1 = 0.5, .only = only});
}

static void build(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    const char *role = options->role ? options->role : "discriminator";
    struct builder b = {graph, s, GRAPHI_NONE, MODEL_BATCH};
    const int64_t dims[] = {s->batch, s->image, s->image, s->channels};
    graphi_value labels = graphi_input(graph, "labels", GRAPHI_I32, 1, &s->batch);
    graphi_value z = graphi_input(graph, "z", GRAPHI_F32, 2, (int64_t[]){s->batch, Z});
    b.y = graphi_one_hot(graph, labels, s->classes);
    if (strcmp(role, "sample") == 0) {
        b.statistics = MODEL_RUNNING;
        graphi_output(graph, "images", generator(&b, z));
    } else if (strcmp(role, "generator") == 0) {
        b.statistics = options->evaluation ? MODEL_BATCH : MODEL_TRAIN;
        train(graph, verdict(&b, discriminator(&b, generator(&b, z)), true), options, "generator/");
    } else {
        graphi_value images = graphi_input(graph, "images", GRAPHI_F32, 4, dims);
        graphi_value real = verdict(&b, discriminator(&b, images), true);
        graphi_value fake = verdict(&b, discriminator(&b, generator(&b, z)), false);
        graphi_output(graph, "loss/real", real);
        graphi_output(graph, "loss/fake", fake);
        train(graph, graphi_add(graph, real, fake), options, "discriminator/");
    }
}

const struct model model_dcgan = {
    .info = {.name = "dcgan",
             .summary = "conditional DCGAN; --role: one of its two updates, or samples",
             .feed = GRAPHI_MODEL_IMAGES,
             .batch = 64,
             .channels = 1,
             .classes = 10,
             .rate = 2e-4,
             .schedule = "constant",
             .epochs = 25},
    .size = {{.image = 28, .units = 64}},
    .role = {"discriminator", "generator", "sample"},
    .switches = MODEL_IMAGE,
    .build = build,
};
