/* SPDX-License-Identifier: Apache-2.0 */
/* The language model of Zaremba et al. (2014) for the Penn Treebank, in the three settings of TensorFlow's tutorial:
 * two LSTM layers, plain SGD from rate 1 with a decay each epoch after some, clipping by the global norm, state carried
 * from window to window, forget bias 0. The gates of a cell are one product, as there. Published test perplexities:
 * 115.9 (small, 13 epochs), 82.1 (medium, 39), 78.3 (large, 55). */
#include "models/recurrent.h"

static void build(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options)
{
    static const struct form {
        double range, keep, clip;
    } forms[] = {{0.1, 1, 5}, {0.05, 0.5, 5}, {0.04, 0.35, 10}};
    const struct form *form = &forms[model_size_index(options)];
    const struct recurrent_language how = {.range = form->range,
                                           .keep = form->keep,
                                           .merged = true,
                                           .sum_over_time = true,
                                           .optimizer = {.kind = GRAPHI_SGD, .clip_norm = form->clip}};
    recurrent_language_model(graph, sizes, options, &recurrent_lstm, &how);
}

const struct model model_ptb = {
    .info = {.name = "ptb",
             .summary = "2-layer LSTM language model for the Penn Treebank",
             .feed = GRAPHI_MODEL_TEXT,
             .batch = 20,
             .layers = 2,
             .vocabulary = 10000,
             .metric = "perplexity",
             .rate = 1,
             .schedule = "step:0.5:1e:4e",
             .epochs = 13},
    .size = {{.steps = 20, .units = 200},
             {.steps = 35, .units = 650, .schedule = "step:0.8:1e:6e", .epochs = 39},
             {.steps = 35, .units = 1500, .schedule = "step:0.869565217:1e:14e", .epochs = 55}},
    .switches = MODEL_STEPS | MODEL_LAYERS,
    .optimizer = GRAPHI_SGD,
    .build = build,
};
