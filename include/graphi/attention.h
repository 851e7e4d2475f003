/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around recurrent layers (deepcpu.txt 6.2): attention of a query over the steps of a memory, maxima over
 * time, highway layers and perceptrons. Builders of graphs from ordinary operations, with gradients. One thread a
 * graph; errors are the graph's (sticky): INVALID, naming what does not fit. */
#ifndef GRAPHI_ATTENTION_H
#define GRAPHI_ATTENTION_H

#include "graphi/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How well a step m of the memory suits the query q. */
typedef enum graphi_attention_kind {
    GRAPHI_ATTENTION_DOT,       /* q . m, of the same size */
    GRAPHI_ATTENTION_BILINEAR,  /* q W . m; W [query, memory] is "weight" */
    GRAPHI_ATTENTION_ADDITIVE,  /* v . tanh(q Wq + m Wm + b); "vector" [units], "weight_query" [query, units],
                                 * "weight_memory" [memory, units], "bias" [units] (Bahdanau et al. 2015) */
    GRAPHI_ATTENTION_TRILINEAR, /* wm . m + wq . q + wp . (q m), of the same size; "weight_memory", "weight_query",
                                 * "weight_product" (BiDAF, Seo et al. 2017) */
    GRAPHI_ATTENTION_KINDS
} graphi_attention_kind;

typedef struct graphi_attention_options {
    graphi_attention_kind kind;
    int64_t units;     /* ADDITIVE: hidden units; 0: those of the query */
    double scale;      /* scores are multiplied by it; 0: 1 */
    const char *scope; /* before the names of parameters, "attention."; NULL: none */
} graphi_attention_options;

typedef struct graphi_attention_result {
    graphi_value scores;  /* [batch, steps]; beyond a length -1e30 */
    graphi_value weights; /* their softmax; beyond a length 0, of a sequence of no steps all are */
    graphi_value context; /* [batch, memory]: the sum of the memory's steps by weight */
} graphi_attention_result;

/* query float32 [batch, query], memory [batch, steps, memory], int32 lengths [batch] (GRAPHI_NONE: all steps count).
 * Gives the context. options, result NULL: the dot product; only the context. Weights are Glorot-uniform, biases 0. */
GRAPHI_API graphi_value graphi_attend(graphi_graph *graph, graphi_value query, graphi_value memory,
                                      graphi_value lengths, const graphi_attention_options *options,
                                      graphi_attention_result *result);

/* The largest number of each column over the steps within the length: [batch, steps, columns] to [batch, columns]; of a
 * sequence of no steps -1e30. */
GRAPHI_API graphi_value graphi_max_over_time(graphi_graph *graph, graphi_value x, graphi_value lengths);

/* Rows in the order of time, [steps batch, columns] (graphi/recurrent.h), as [batch, steps, columns]. */
GRAPHI_API graphi_value graphi_batch_major(graphi_graph *graph, graphi_value rows, int64_t batch);

/* Layers t relu(x W + b) + (1 - t) x with t = sigmoid(x Wt + bt) over x [rows, columns] (Srivastava et al. 2015):
 * parameters "weight_l0", "bias_l0", "gate_weight_l0", "gate_bias_l0" (-1 at first), ... behind the scope. */
GRAPHI_API graphi_value graphi_highway(graphi_graph *graph, graphi_value x, int layers, const char *scope);

/* Layers of `units` each over x [rows, columns], ReLU between them: "weight_l0" [columns, units[0]], "bias_l0", ...
 */
GRAPHI_API graphi_value graphi_perceptron(graphi_graph *graph, graphi_value x, int layers, const int64_t *units,
                                          const char *scope);

#ifdef __cplusplus
}
#endif
#endif
