/* SPDX-License-Identifier: Apache-2.0 */
/* What the networks share: the table entry of a network, and small building blocks on the public API. */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "graphi/graph.h"
#include "graphi/models.h"
#include "graphi/ops.h"

/* A network is a table: sizes, and a function that builds its graph from settled sizes. */
struct model {
    graphi_model_info info; /* of the small size; build sees the settled copy */
    struct model_size {
        int64_t image, steps, units;
    } size[3];
    void (*build)(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options);
};

extern const struct model model_lstm, model_phased_lstm, model_pathnet, model_googlenet;

bool model_is_real(const graphi_model_options *options);

/* Parameters. Weights are named SCOPE/NAME. */
graphi_value model_weight(graphi_graph *graph, const char *scope, const char *name, int rank, const int64_t *dims,
                          graphi_init_kind kind, double a, double b);
graphi_value model_bias(graphi_graph *graph, const char *scope, const char *name, int64_t count);

/* A float32 scalar. */
graphi_value model_scalar(graphi_graph *graph, float value);

/* x[rows,in] -> x W + b, Glorot-uniform. */
graphi_value model_dense(graphi_graph *graph, const char *scope, graphi_value x, int64_t in, int64_t out);

/* Loss of image networks; output "logits". */
graphi_value model_classify(graphi_graph *graph, graphi_value logits, int64_t batch);

/* Appends updates with the task's optimizer unless only the forward pass is wanted. */
void model_train(graphi_graph *graph, graphi_value loss, const graphi_model_options *options,
                 const graphi_optimizer *optimizer);

/* Outputs "gradient/NAME" for parameters[0..n). */
void model_output_gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *parameters,
                            const char *const *names);

#endif
