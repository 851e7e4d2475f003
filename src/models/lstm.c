/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM (Hochreiter and Schmidhuber 1997) from primitive operations: c = f c + i g, h = o tanh(c). Sizes: graphi.txt
 * Table 1. */
#include "models/recurrent.h"

static struct recurrent_state step(graphi_graph *graph, const struct recurrent_layer *layer, graphi_value x,
                                   graphi_value time, struct recurrent_state state)
{
    (void)time;
    graphi_value gate[GATES];
    recurrent_gates(graph, layer, x, state.h, gate);
    graphi_value i = graphi_sigmoid(graph, gate[0]), f = graphi_sigmoid(graph, gate[1]);
    graphi_value g = graphi_tanh(graph, gate[2]), o = graphi_sigmoid(graph, gate[3]);
    graphi_value c = graphi_add(graph, graphi_mul(graph, f, state.c), graphi_mul(graph, i, g));
    return (struct recurrent_state){.h = graphi_mul(graph, o, graphi_tanh(graph, c)), .c = c};
}

const struct recurrent_cell recurrent_lstm = {.step = step, .whole = "lstm"};

static void build(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options)
{
    recurrent_build(graph, sizes, options, &recurrent_lstm);
}

const struct model model_lstm = {
    .info = {.name = "lstm",
             .summary = "4-layer LSTM; real: language model",
             .feed = GRAPHI_MODEL_VECTORS,
             .batch = 64,
             .layers = 4,
             .vocabulary = 10000,
             .classes = 0,
             .metric = "perplexity",
             .rate = 0.002,
             .schedule = "constant",
             .epochs = 3},
    .size = {{.steps = 20, .units = 128}, {.steps = 30, .units = 512}, {.steps = 40, .units = 1024}},
    .switches = MODEL_MERGED | MODEL_STEPS | MODEL_LAYERS,
    .optimizer = GRAPHI_ADAM,
    .build = build,
};
