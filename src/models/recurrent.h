/* SPDX-License-Identifier: Apache-2.0 */
/* The frame that lstm and phased-lstm share: a stack of layers unrolled over time, its bench and its language-model
 * form. They differ in the cell alone. */
#ifndef MODELS_RECURRENT_H
#define MODELS_RECURRENT_H

#include "models/model.h"

enum { GATES = 4 };

/* The parameters of one layer. Per gate: w[g] [in,units], u[g] [units,units], b[g] [units]; merged: w[0] [in,4*units]
 * and so on, columns in the order i, f, g, o. */
struct recurrent_layer {
    graphi_value w[GATES], u[GATES], b[GATES];
    graphi_value period, shift, ratio; /* phased-lstm */
    graphi_value turns; /* [units], of its rhythm before this window; GRAPHI_NONE: time is given whole */
    int64_t units;
    bool merged;
};

struct recurrent_state {
    graphi_value h, c;
};

struct recurrent_cell {
    /* Makes the parameters a cell has beyond the gates; NULL: none. */
    void (*parameters)(graphi_graph *graph, const char *scope, struct recurrent_layer *layer);
    /* Keeps what is learned of them where it has a meaning; NULL: all has. */
    void (*bound)(graphi_graph *graph, struct recurrent_layer *layer);
    /* One step: x [batch,in], time [batch,1] (phased-lstm; else GRAPHI_NONE). */
    struct recurrent_state (*step)(graphi_graph *graph, const struct recurrent_layer *layer, graphi_value x,
                                   graphi_value time, struct recurrent_state state);
    /* The turns after a window of so many steps; NULL: the cell has no rhythm. */
    graphi_value (*turned)(graphi_graph *graph, const struct recurrent_layer *layer, int64_t steps);
    const char *whole; /* the operation that goes through all steps of a layer; NULL: none */
    bool timed;
};

extern const struct recurrent_cell recurrent_lstm;

/* Pre-activations of the four gates, i, f, g, o: x W + h U + b. */
void recurrent_gates(graphi_graph *graph, const struct recurrent_layer *layer, graphi_value x, graphi_value h,
                     graphi_value gate[GATES]);

/* How a language model learns. */
struct recurrent_language {
    double range;       /* weights U(-range, range); 0: Glorot's, the embedding's 0.1 */
    double keep;        /* part that dropout keeps of the embedding and of every layer's output, in training */
    bool merged;        /* whatever the options say */
    bool sum_over_time; /* updates follow steps * loss */
    graphi_optimizer optimizer;
};

void recurrent_language_model(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options,
                              const struct recurrent_cell *cell, const struct recurrent_language *how);

/* The bench form, or the language model with Adam. */
void recurrent_build(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options,
                     const struct recurrent_cell *cell);

#endif
