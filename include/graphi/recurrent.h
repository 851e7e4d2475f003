/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers over whole sequences (deepcpu.txt): LSTM, GRU and RNN, stacked, in both directions, of sequences of
 * many lengths, with gradients. A layer is one product of its input and one operation that goes through all steps on
 * its team (docs/recurrent.md).
 *
 * Rows are in step order: step t is the rows of the sequences that are longer than t, longest first. Sequences of one
 * length are a time-major array [steps, batch] of rows. graphi_sequence_sort and graphi_sequence_pack make such rows
 * of padded arrays. */
#ifndef GRAPHI_RECURRENT_H
#define GRAPHI_RECURRENT_H

#include "graphi/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum graphi_cell { GRAPHI_LSTM, GRAPHI_GRU, GRAPHI_RNN } graphi_cell;

/* Activations, those of the ONNX operators LSTM, GRU and RNN. */
typedef enum graphi_activation {
    GRAPHI_SIGMOID,
    GRAPHI_TANH,
    GRAPHI_RELU,
    GRAPHI_AFFINE,
    GRAPHI_LEAKY_RELU,
    GRAPHI_THRESHOLDED_RELU,
    GRAPHI_SCALED_TANH,
    GRAPHI_HARD_SIGMOID,
    GRAPHI_ELU,
    GRAPHI_SOFTSIGN,
    GRAPHI_SOFTPLUS,
    GRAPHI_ACTIVATIONS
} graphi_activation;

/* How the recurrence runs. The same bits, but for the order in which gradients of weights are summed. Unrolled ones are
 * built so; the others are one operation, of which a plan decides (graphi_plan_options.sequences). */
typedef enum graphi_lowering {
    GRAPHI_LOWERING_AUTO,        /* one operation */
    GRAPHI_LOWERING_STREAMLINED, /* one loop operation, each member of its team with its own part of the weights
                                  * (deepcpu.txt 5.2.4) */
    GRAPHI_LOWERING_ACROSS,      /* unrolled; the input's products of all steps are one (5.2.1) */
    GRAPHI_LOWERING_FUSED,       /* unrolled; the gates of a step are one product */
    GRAPHI_LOWERING_EIGHT,       /* unrolled; a product for each gate of input and of state */
    GRAPHI_LOWERING_UNROLLED,    /* unrolled; a product of the input and one of the state in each step */
    GRAPHI_LOWERING_PARTITIONED, /* one loop operation, rows and units of a step cut into given parts (5.2.3) */
    GRAPHI_LOWERING_CHUNKED,     /* loop operations over some steps each, so that layers overlap */
    GRAPHI_LOWERINGS
} graphi_lowering;

/* The word for --sequences; "?" for none. Static text; any thread. */
GRAPHI_API const char *graphi_lowering_name(graphi_lowering lowering);

/* Zero fields: one layer, forward, without dropout, PyTorch's defaults. */
typedef struct graphi_recurrent_options {
    int64_t units; /* of a layer and direction */
    int layers;    /* 0: 1 */
    bool bidirectional;
    double keep;       /* of results between layers, dropout keeps this part; 0: all */
    int64_t batch;     /* sequences; needed where no initial state is given */
    int64_t steps;     /* most of a sequence; needed with offsets and for unrolled lowerings */
    bool reset_before; /* GRU: the reset gate comes before the product (ONNX linear_before_reset = 0) */
    bool relu;         /* RNN: ReLU in place of tanh */
    double range;      /* initial weights are uniform within +-range; 0: 1 / sqrt(units) */
    const char *scope; /* before the names of parameters, "encoder."; NULL: none */
    graphi_lowering lowering;
} graphi_recurrent_options;

/* Values of a graph. States are in PyTorch's order: layer 0 forward, layer 0 backward, layer 1 forward, ... */
enum { GRAPHI_MOST_STATES = 64 };
typedef struct graphi_recurrent_result {
    graphi_value y;                     /* [rows, units], of two directions [rows, 2 units], forward first */
    graphi_value h[GRAPHI_MOST_STATES]; /* last states [batch, units] */
    graphi_value c[GRAPHI_MOST_STATES]; /* LSTM alone */
    int states;                         /* layers times directions */
} graphi_recurrent_result;

/* Adds layers over x, float32 [rows, features] in step order. h0, c0: initial states, `layers` times directions of
 * them, each [batch, units]; NULL: zeros. offsets: graphi_sequence_offsets of the lengths, GRAPHI_NONE: all sequences
 * have rows / batch steps. Parameters have PyTorch's names and shapes after the scope: weight_ih_l0 [gates units,
 * features], weight_hh_l0 [gates units, units], bias_ih_l0, bias_hh_l0 [gates units], then l1 ..., "_reverse" behind
 * those of the backward direction; gates i, f, g, o of LSTM, r, z, n of GRU. A sequence of no steps has zeros as last
 * states. Errors are the graph's (sticky): INVALID, naming what does not fit. Sources: deepcpu.txt 5.2, cuDNN's and
 * PyTorch's equations. One thread a graph. */
GRAPHI_API graphi_value graphi_recurrent(graphi_graph *graph, graphi_cell cell, graphi_value x, const graphi_value *h0,
                                         const graphi_value *c0, graphi_value offsets,
                                         const graphi_recurrent_options *options, graphi_recurrent_result *result);

static inline graphi_value graphi_lstm(graphi_graph *graph, graphi_value x, const graphi_value *h0,
                                       const graphi_value *c0, graphi_value offsets,
                                       const graphi_recurrent_options *options, graphi_recurrent_result *result)
{
    return graphi_recurrent(graph, GRAPHI_LSTM, x, h0, c0, offsets, options, result);
}

static inline graphi_value graphi_gru(graphi_graph *graph, graphi_value x, const graphi_value *h0, graphi_value offsets,
                                      const graphi_recurrent_options *options, graphi_recurrent_result *result)
{
    return graphi_recurrent(graph, GRAPHI_GRU, x, h0, NULL, offsets, options, result);
}

static inline graphi_value graphi_rnn(graphi_graph *graph, graphi_value x, const graphi_value *h0, graphi_value offsets,
                                      const graphi_recurrent_options *options, graphi_recurrent_result *result)
{
    return graphi_recurrent(graph, GRAPHI_RNN, x, h0, NULL, offsets, options, result);
}

/* Where the rows of each step begin, int32 [steps + 1], of int32 lengths [batch] that do not rise. */
static inline graphi_value graphi_sequence_offsets(graphi_graph *graph, graphi_value lengths, int64_t steps)
{
    graphi_attribute a = {"steps", GRAPHI_INT, steps, 0, NULL, 0};
    return graphi_op(graph, "sequence_offsets", 1, &lengths, 1, &a);
}

/* --- sequences on the host --- */

/* order[i]: which of `count` sequences comes i-th, longest first; equal lengths stay in their order. INVALID: a
 * negative length, naming it. Any thread. */
GRAPHI_API graphi_status graphi_sequence_sort(int64_t count, const int32_t *lengths, int64_t *order);

/* Rows of `bytes` each from a padded array [count, steps] to step order, by `order`; rows: the sum of lengths, as many
 * are written. unpack: back, rows beyond a sequence's length become zero bytes. INVALID: a length beyond the steps; an
 * order that is not one of graphi_sequence_sort. Any thread. */
GRAPHI_API graphi_status graphi_sequence_pack(int64_t count, int64_t steps, size_t bytes, const int32_t *lengths,
                                              const int64_t *order, const void *padded, void *rows);
GRAPHI_API graphi_status graphi_sequence_unpack(int64_t count, int64_t steps, size_t bytes, const int32_t *lengths,
                                                const int64_t *order, const void *rows, void *padded);

/* --- weights of others --- */

/* Whose order and shapes of gates and biases. */
typedef enum graphi_weights_from { GRAPHI_FROM_PYTORCH, GRAPHI_FROM_ONNX, GRAPHI_FROM_KERAS } graphi_weights_from;

/* Arrays of one layer and direction as others have them. ONNX: w [gates units, features], r [gates units, units], b [2
 * gates units] (NULL: zeros), gates i, o, f, c or z, r, h. Keras: w [features, gates units], r [units, gates units], b
 * [gates units] or, of a GRU with reset_after, [2, gates units]; gates i, f, c, o or z, r, h. PyTorch: w, r, b =
 * bias_ih followed by bias_hh. */
typedef struct graphi_recurrent_weights {
    const float *w, *r, *b;
} graphi_recurrent_weights;

/* To what graphi_recurrent's parameters hold: w_ih [gates units, features], w_hh [gates units, units], b_ih, b_hh
 * [gates units]. INVALID: NULL where an array is needed. Any thread. */
GRAPHI_API graphi_status graphi_recurrent_convert(graphi_cell cell, graphi_weights_from from, bool reset_before,
                                                  int64_t features, int64_t units,
                                                  const graphi_recurrent_weights *weights, float *w_ih, float *w_hh,
                                                  float *b_ih, float *b_hh);

#ifdef __cplusplus
}
#endif
#endif
