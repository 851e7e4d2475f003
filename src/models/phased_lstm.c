/* SPDX-License-Identifier: Apache-2.0 */
/* PhasedLSTM (Neil et al. 2016): an LSTM whose units open in a rhythm of their own. With phase phi = ((t - s) mod tau)
 * / tau (floored) the gate k is 2 phi / r while opening, 2 - 2 phi / r while closing, alpha phi when closed; both
 * states are k new + (1 - k) old. tau, s and r are learned, one a unit; s is kept as a part of tau, so that phi is the
 * fraction of t / tau - s: what is divided and the modulo's multiple are values a unit, not an element, and no digits
 * of t - s are lost to a long tau. */
#include "models/recurrent.h"

static const float leak = 0.001f;

static void parameters(graphi_graph *graph, const char *scope, struct recurrent_layer *layer)
{
    const int64_t dims[] = {layer->units};
    layer->period = model_weight(graph, scope, "period", 1, dims, GRAPHI_INIT_LOG_UNIFORM, 1, 1000);
    layer->shift = model_weight(graph, scope, "shift", 1, dims, GRAPHI_INIT_UNIFORM, 0, 1);
    layer->ratio = model_weight(graph, scope, "ratio", 1, dims, GRAPHI_INIT_CONSTANT, 0.1, 0);
}

/* Descent may take a period or a ratio to zero and beyond, where k is infinite: a unit whose rhythm is faster than the
 * text, or that is open for less than a step of the longest period, has come to the end. */
static void bound(graphi_graph *graph, struct recurrent_layer *layer)
{
    layer->period = graphi_max(graph, layer->period, model_scalar(graph, 1));
    layer->ratio = graphi_max(graph, layer->ratio, model_scalar(graph, 0.001f));
}

static graphi_value turns_at(graphi_graph *graph, const struct recurrent_layer *layer, graphi_value time)
{
    graphi_value turns = graphi_mul(graph, time, graphi_reciprocal(graph, layer->period));
    return layer->turns == GRAPHI_NONE ? turns : graphi_add(graph, turns, layer->turns);
}

/* Time goes on from window to window, or a rhythm longer than a window would never open. What is carried is how far
 * each unit has turned, below 1: all digits of it stay, and another period turns on from there, where a time of
 * thousands of steps divided by it would be any phase. */
static graphi_value turned(graphi_graph *graph, const struct recurrent_layer *layer, int64_t steps)
{
    graphi_value turns = turns_at(graph, layer, model_scalar(graph, (float)steps));
    return graphi_sub(graph, turns, graphi_floor(graph, turns));
}

static graphi_value openness(graphi_graph *graph, const struct recurrent_layer *layer, graphi_value time)
{
    graphi_value two = model_scalar(graph, 2);
    graphi_value turns = graphi_sub(graph, turns_at(graph, layer, time), layer->shift);
    graphi_value phase = graphi_sub(graph, turns, graphi_floor(graph, turns));
    graphi_value opening = graphi_mul(graph, phase, graphi_div(graph, two, layer->ratio));
    graphi_value open = graphi_min(graph, opening, graphi_sub(graph, two, opening)); /* they meet halfway, at 1 */
    graphi_value closed = graphi_mul(graph, model_scalar(graph, leak), phase);
    return graphi_select(graph, graphi_less(graph, opening, two), open, closed);
}

static graphi_value blend(graphi_graph *graph, graphi_value k, graphi_value fresh, graphi_value old)
{
    return graphi_add(graph, graphi_mul(graph, k, graphi_sub(graph, fresh, old)), old);
}

static struct recurrent_state step(graphi_graph *graph, const struct recurrent_layer *layer, graphi_value x,
                                   graphi_value time, struct recurrent_state state)
{
    graphi_value gate[GATES];
    recurrent_gates(graph, layer, x, state.h, gate);
    graphi_value i = graphi_sigmoid(graph, gate[0]), f = graphi_sigmoid(graph, gate[1]);
    graphi_value g = graphi_tanh(graph, gate[2]), o = graphi_sigmoid(graph, gate[3]);
    graphi_value c = graphi_add(graph, graphi_mul(graph, f, state.c), graphi_mul(graph, i, g));
    graphi_value h = graphi_mul(graph, o, graphi_tanh(graph, c));
    graphi_value k = openness(graph, layer, time);
    return (struct recurrent_state){.h = blend(graph, k, h, state.h), .c = blend(graph, k, c, state.c)};
}

static void build(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options)
{
    static const struct recurrent_cell cell = {
        .parameters = parameters, .bound = bound, .turned = turned, .step = step, .timed = true};
    recurrent_build(graph, sizes, options, &cell);
}

const struct model model_phased_lstm = {
    .info = {.name = "phased-lstm",
             .summary = "4-layer PhasedLSTM; real: language model",
             .feed = GRAPHI_MODEL_VECTORS,
             .batch = 64,
             .layers = 4,
             .vocabulary = 10000,
             .metric = "perplexity",
             .rate = 0.002,
             .schedule = "constant",
             .epochs = 3},
    .size = {{.steps = 20, .units = 128}, {.steps = 30, .units = 512}, {.steps = 40, .units = 1024}},
    .switches = MODEL_MERGED | MODEL_STEPS | MODEL_LAYERS,
    .optimizer = GRAPHI_ADAM,
    .build = build,
};
