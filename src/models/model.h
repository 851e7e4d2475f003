/* SPDX-License-Identifier: Apache-2.0 */
/* What the networks share: the table entry of a network, and small building blocks on the public API. */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "graphi/graph.h"
#include "graphi/models.h"
#include "graphi/ops.h"

/* Text networks look back so far at most. */
enum { MODEL_MAX_STEPS = 256 };

/* Switches of graphi_model_options that only some networks have. */
enum model_switch {
    MODEL_MERGED = 1,
    MODEL_BATCH_NORM = 2,
    MODEL_LRN = 4,
    MODEL_AUXILIARY = 8,
    MODEL_BOTTLENECK = 16,
    MODEL_IMAGE = 32,
    MODEL_STEPS = 64,
    MODEL_LAYERS = 128 /* and what language models learn by */
};

/* A network is a table: sizes, and a function that builds its graph from settled sizes. */
struct model {
    graphi_model_info info; /* of the small size; build sees the settled copy */
    struct model_size {
        int64_t image, steps, units;
        const char *schedule; /* NULL: that of info, and its epochs */
        int epochs;
    } size[3];            /* a network of one size has the first alone */
    unsigned switches;       /* of enum model_switch: those that the network has */
    const char *role[3];  /* of networks that are several graphs over one state; the first is the default */
    graphi_optimizer_kind optimizer; /* of language models: their own */
    bool rate_per_sample; /* the learning rate grows with the batch */
    void (*build)(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options);
};

extern const struct model model_lstm, model_phased_lstm, model_pathnet, model_googlenet, model_resnet20, model_resnet50,
    model_dcgan, model_inception_v3, model_ptb, model_treelstm, model_dependency_treelstm, model_treefc,
    model_fixed_lstm, model_var_lstm, model_message_passing, model_alexnet, model_cifar10_full, model_cifar10_quick;

bool model_is_real(const graphi_model_options *options);

/* Most layers of a recurrent network. */
enum { MODEL_MOST_LAYERS = 8 };

/* The optimizer of that name; false: there is none. */
bool model_optimizer(const char *name, graphi_optimizer_kind *kind);
double model_rate(graphi_optimizer_kind kind); /* that it starts from where no network says one */

extern const char *const model_sizes[3];
/* 0 to 2 for small to large, -1 for another word. */
int model_size_index(const graphi_model_options *options);

/* Parameters. Weights are named SCOPE/NAME; a name that is there already gives the parameter that has it: parts of a
 * network that are applied twice share their weights. */
graphi_value model_weight(graphi_graph *graph, const char *scope, const char *name, int rank, const int64_t *dims,
                          graphi_init_kind kind, double a, double b);
graphi_value model_bias(graphi_graph *graph, const char *scope, const char *name, int64_t count);

/* A float32 scalar. */
graphi_value model_scalar(graphi_graph *graph, float value);

/* x[rows,in] -> x W + b, Glorot-uniform. */
graphi_value model_dense(graphi_graph *graph, const char *scope, graphi_value x, int64_t in, int64_t out);

/* Square images in a graph: [batch,side,side,channels]. */
struct model_image {
    graphi_value value;
    int64_t side, channels;
};

/* Of a convolution: "same" padding (kernel / 2 at all sides), or none. */
struct model_window {
    int64_t height, width, stride;
    bool valid;
};

/* Convolution without bias. With `valid` and height != width images would not stay square. */
struct model_image model_conv(graphi_graph *graph, const char *scope, struct model_image x,
                              const struct model_window *window, int64_t channels);

/* The side of what a pool without padding makes, rounded up (`ceil_mode`). */
int64_t model_pooled(int64_t side, int64_t kernel, int64_t stride);

/* Which statistics a batch normalization uses: the batch's, and the running ones (momentum 0.9) follow; the batch's
 * alone; the running ones. */
enum model_statistics { MODEL_TRAIN, MODEL_BATCH, MODEL_RUNNING };

graphi_value model_batch_norm(graphi_graph *graph, const char *scope, graphi_value x, int64_t channels, double epsilon,
                              enum model_statistics statistics);

/* Loss of image networks; output "logits". */
graphi_value model_classify(graphi_graph *graph, graphi_value logits, int64_t batch);

/* Appends updates with the task's optimizer unless only the forward pass is wanted. */
void model_train(graphi_graph *graph, graphi_value loss, const graphi_model_options *options,
                 const graphi_optimizer *optimizer);

/* Outputs "gradient/NAME" for parameters[0..n). */
void model_output_gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *parameters,
                            const char *const *names);

#endif
