/* SPDX-License-Identifier: Apache-2.0 */
/* Stacked recurrent networks, unrolled: the bench form of graphi.txt Table 1 (4 layers, batch 64, gradients of all
 * parameters for the sum of the top layer's outputs and all final states) and a language model with embedding, carried
 * state, softmax. */
#include "models/recurrent.h"

#include <stdio.h>

enum { MAX_LAYERS = MODEL_MOST_LAYERS, MOST_NAMES = 16 * MAX_LAYERS };

struct names {
    int count;
    graphi_value value[MOST_NAMES];
    char text[MOST_NAMES][64];
};

/* Uniform within +-range, or Glorot's range. */
static graphi_value weight(graphi_graph *graph, const char *scope, const char *name, int64_t rows, int64_t cols,
                           double range)
{
    const int64_t dims[] = {rows, cols};
    graphi_init_kind kind = range > 0 ? GRAPHI_INIT_UNIFORM : GRAPHI_INIT_GLOROT_UNIFORM;
    return model_weight(graph, scope, name, 2, dims, kind, -range, range);
}

static void keep(struct names *names, const char *scope, const char *name, graphi_value value)
{
    snprintf(names->text[names->count], sizeof names->text[0], "%s/%s", scope, name);
    names->value[names->count++] = value;
}

static void make_layer(graphi_graph *graph, int index, int64_t in, int64_t units, bool merged, double range,
                       const struct recurrent_cell *cell, struct recurrent_layer *layer, struct names *names)
{
    static const char gate_name[] = "ifgo";
    char scope[32];
    snprintf(scope, sizeof scope, "layer%d", index);
    *layer = (struct recurrent_layer){.units = units, .merged = merged, .turns = GRAPHI_NONE};
    for (int g = 0; g < (merged ? 1 : GATES); g++) {
        int64_t cols = merged ? GATES * units : units;
        char w[8], u[8], b[8];
        snprintf(w, sizeof w, merged ? "w" : "w_%c", gate_name[g]);
        snprintf(u, sizeof u, merged ? "u" : "u_%c", gate_name[g]);
        snprintf(b, sizeof b, merged ? "b" : "b_%c", gate_name[g]);
        layer->w[g] = weight(graph, scope, w, in, cols, range);
        layer->u[g] = weight(graph, scope, u, units, cols, range);
        layer->b[g] = model_bias(graph, scope, b, cols);
        keep(names, scope, w, layer->w[g]);
        keep(names, scope, u, layer->u[g]);
        keep(names, scope, b, layer->b[g]);
    }
    if (cell->parameters) {
        cell->parameters(graph, scope, layer);
        keep(names, scope, "period", layer->period);
        keep(names, scope, "shift", layer->shift);
        keep(names, scope, "ratio", layer->ratio);
    }
}

static graphi_value affine(graphi_graph *graph, graphi_value x, graphi_value w, graphi_value h, graphi_value u,
                           graphi_value b)
{
    graphi_value sum = graphi_add(graph, graphi_matmul(graph, x, w, 0, 0), graphi_matmul(graph, h, u, 0, 0));
    return graphi_add(graph, sum, b);
}

void recurrent_gates(graphi_graph *graph, const struct recurrent_layer *layer, graphi_value x, graphi_value h,
                     graphi_value gate[GATES])
{
    if (!layer->merged) {
        for (int g = 0; g < GATES; g++)
            gate[g] = affine(graph, x, layer->w[g], h, layer->u[g], layer->b[g]);
        return;
    }
    graphi_value all = affine(graph, x, layer->w[0], h, layer->u[0], layer->b[0]);
    for (int g = 0; g < GATES; g++)
        gate[g] = graphi_slice(graph, all, 1, g * layer->units, (g + 1) * layer->units);
}

static graphi_value drop(graphi_graph *graph, graphi_value x, double kept)
{
    return kept > 0 && kept < 1 ? graphi_dropout(graph, x, kept) : x;
}

/* One column of cells: all layers at time t. Scopes name the coordinates: the wavefront is read off them. What goes up
 * is thinned to `kept`, what goes on in time is not. */
static graphi_value column(graphi_graph *graph, int64_t t, int64_t layers, const struct recurrent_layer *layer,
                           const struct recurrent_cell *cell, graphi_value x, graphi_value time, double kept,
                           struct recurrent_state *state)
{
    for (int64_t l = 0; l < layers; l++) {
        char scope[40];
        snprintf(scope, sizeof scope, "layer%d/t%d", (int)l, (int)t);
        graphi_scope(graph, scope);
        state[l] = cell->step(graph, &layer[l], x, time, state[l]);
        x = drop(graph, state[l].h, kept);
    }
    return x;
}

static graphi_value total(graphi_graph *graph, graphi_value sum, graphi_value x)
{
    graphi_value part = graphi_reduce_sum(graph, x, NULL, 0, 0);
    return sum == GRAPHI_NONE ? part : graphi_add(graph, sum, part);
}

static void bench(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options,
                  const struct recurrent_cell *cell, const struct recurrent_layer *layer, const struct names *names)
{
    const int64_t rows = s->steps * s->batch, state_dims[] = {s->batch, s->units};
    graphi_value x = graphi_input(graph, "x", GRAPHI_F32, 2, (int64_t[]){rows, s->units});
    graphi_value times = cell->timed ? graphi_input(graph, "time", GRAPHI_F32, 2, (int64_t[]){rows, 1}) : GRAPHI_NONE;
    struct recurrent_state state[MAX_LAYERS];
    for (int64_t l = 0; l < s->layers; l++) {
        char name[24];
        snprintf(name, sizeof name, "h0/%d", (int)l);
        state[l].h = graphi_input(graph, name, GRAPHI_F32, 2, state_dims);
        snprintf(name, sizeof name, "c0/%d", (int)l);
        state[l].c = graphi_input(graph, name, GRAPHI_F32, 2, state_dims);
    }
    graphi_value loss = GRAPHI_NONE;
    for (int64_t t = 0; t < s->steps; t++) {
        graphi_value xt = graphi_slice(graph, x, 0, t * s->batch, (t + 1) * s->batch);
        graphi_value time = cell->timed ? graphi_slice(graph, times, 0, t * s->batch, (t + 1) * s->batch) : GRAPHI_NONE;
        loss = total(graph, loss, column(graph, t, s->layers, layer, cell, xt, time, 1, state));
    }
    graphi_scope(graph, "loss");
    for (int64_t l = 0; l < s->layers; l++)
        loss = total(graph, total(graph, loss, state[l].h), state[l].c);
    graphi_output(graph, "loss", loss);
    if (!options->forward && !options->evaluation) {
        const char *list[MOST_NAMES];
        for (int i = 0; i < names->count; i++)
            list[i] = names->text[i];
        model_output_gradients(graph, loss, names->count, names->value, list);
    }
}

/* A state that outlives the step: truncated back-propagation through time carries it from batch to batch. */
static graphi_value carried(graphi_graph *graph, const char *prefix, const char *kind, int64_t layer, int rank,
                            const int64_t *dims)
{
    char name[48];
    snprintf(name, sizeof name, "%sstate/%s%d", prefix, kind, (int)layer);
    graphi_value value = graphi_parameter(graph, name, GRAPHI_F32, rank, dims, &(graphi_initializer){0});
    graphi_freeze(graph, value);
    return value;
}

static graphi_value output_layer(graphi_graph *graph, graphi_value x, int64_t in, int64_t out, double range)
{
    if (range <= 0)
        return model_dense(graph, "output", x, in, out);
    graphi_value w = weight(graph, "output", "weight", in, out, range);
    graphi_value b = model_weight(graph, "output", "bias", 1, &out, GRAPHI_INIT_UNIFORM, -range, range);
    return graphi_add(graph, graphi_matmul(graph, x, w, 0, 0), b);
}

/* The parts of a layer's parameters side by side. */
static graphi_value together(graphi_graph *graph, const struct recurrent_layer *layer, const graphi_value *part,
                             int axis)
{
    return layer->merged ? part[0] : graphi_concat(graph, GATES, part, axis);
}

/* All steps of a layer as one operation, whose rows are in the order of time (deepcpu.txt 5.2.4). */
static graphi_value whole(graphi_graph *graph, const struct recurrent_layer *layer, const char *operation,
                          int64_t steps, graphi_value x, struct recurrent_state *state)
{
    const graphi_value w = together(graph, layer, layer->w, 1);
    const graphi_value in[] = {graphi_matmul(graph, x, w, 0, 0), together(graph, layer, layer->u, 1),
                               together(graph, layer, layer->b, 0), state->h, state->c};
    const graphi_attribute attributes[] = {{"units", GRAPHI_INT, layer->units, 0, NULL, 0},
                                           {"steps", GRAPHI_INT, steps, 0, NULL, 0}};
    const graphi_value y = graphi_op(graph, operation, 5, in, 2, attributes);
    if (y != GRAPHI_NONE)
        *state = (struct recurrent_state){.h = y + 1, .c = y + 2};
    return y;
}

/* The top layer's results of all steps, a layer after the other. */
static graphi_value layer_by_layer(graphi_graph *graph, const graphi_model_info *s, const struct recurrent_cell *cell,
                                   const struct recurrent_layer *layer, graphi_value table, graphi_value tokens,
                                   double kept, struct recurrent_state *state)
{
    graphi_scope(graph, "embedding");
    graphi_value id =
        graphi_reshape(graph, graphi_transpose(graph, tokens, GRAPHI_LIST(1, 0)), GRAPHI_LIST(s->steps * s->batch));
    graphi_value x = drop(graph, graphi_embedding(graph, table, id), kept);
    for (int64_t l = 0; l < s->layers; l++) {
        char scope[40];
        snprintf(scope, sizeof scope, "layer%d", (int)l);
        graphi_scope(graph, scope);
        x = drop(graph, whole(graph, &layer[l], cell->whole, s->steps, x, &state[l]), kept);
    }
    return x;
}

/* The same, a step after the other. */
static graphi_value step_by_step(graphi_graph *graph, const graphi_model_info *s, const struct recurrent_cell *cell,
                                 const struct recurrent_layer *layer, graphi_value table, graphi_value tokens,
                                 double kept, struct recurrent_state *state)
{
    graphi_value tops[MODEL_MAX_STEPS];
    for (int64_t t = 0; t < s->steps; t++) {
        graphi_scope(graph, "embedding");
        graphi_value id = graphi_reshape(graph, graphi_slice(graph, tokens, 1, t, t + 1), GRAPHI_LIST(s->batch));
        graphi_value x = graphi_embedding(graph, table, id);
        graphi_value time = GRAPHI_NONE;
        if (cell->timed) { /* within the window: the turns before it are carried, as the states are */
            float now = (float)t;
            time = graphi_constant(graph, GRAPHI_F32, 2, (int64_t[]){1, 1}, &now);
        }
        tops[t] = column(graph, t, s->layers, layer, cell, drop(graph, x, kept), time, kept, state);
    }
    graphi_scope(graph, "output");
    return graphi_concat(graph, (int)s->steps, tops, 0);
}

static void language_model(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options,
                           const struct recurrent_cell *cell, struct recurrent_layer *layer,
                           const struct recurrent_language *how)
{
    const int64_t ids[] = {s->batch, s->steps}, dims[] = {s->batch, s->units}, table_dims[] = {s->vocabulary, s->units};
    const char *prefix = options->evaluation ? "eval/" : "";
    const double kept = options->evaluation ? 1 : options->dropout > 0 ? 1 - options->dropout : how->keep;
    const double range = how->range > 0 ? how->range : 0.1;
    graphi_value tokens = graphi_input(graph, "tokens", GRAPHI_I32, 2, ids);
    graphi_value targets = graphi_input(graph, "targets", GRAPHI_I32, 2, ids);
    graphi_value table = model_weight(graph, "embedding", "table", 2, table_dims, GRAPHI_INIT_UNIFORM, -range, range);
    struct recurrent_state state[MAX_LAYERS], first[MAX_LAYERS];
    for (int64_t l = 0; l < s->layers; l++) {
        state[l].h = carried(graph, prefix, "h", l, 2, dims);
        state[l].c = carried(graph, prefix, "c", l, 2, dims);
        first[l] = state[l];
        if (cell->turned)
            layer[l].turns = carried(graph, prefix, "turns", l, 1, &s->units);
    }
    graphi_value (*const build)(graphi_graph *, const graphi_model_info *, const struct recurrent_cell *,
                                const struct recurrent_layer *, graphi_value, graphi_value, double,
                                struct recurrent_state *) = cell->whole ? layer_by_layer : step_by_step;
    graphi_value top = build(graph, s, cell, layer, table, tokens, kept, state);
    graphi_scope(graph, "output");
    graphi_value logits = output_layer(graph, top, s->units, s->vocabulary, how->range);
    graphi_value labels = graphi_reshape(graph, graphi_transpose(graph, targets, GRAPHI_LIST(1, 0)),
                                         GRAPHI_LIST(s->steps * s->batch)); /* time-major, as the rows of `top` */
    graphi_value loss = graphi_softmax_cross_entropy(graph, logits, labels);
    graphi_output(graph, "loss", loss);
    if (options->evaluation)
        graphi_output(graph, "logits", logits);
    if (how->sum_over_time)
        loss = graphi_mul(graph, loss, model_scalar(graph, (float)s->steps));
    graphi_optimizer optimizer = how->optimizer;
    if (options->optimizer && model_optimizer(options->optimizer, &optimizer.kind))
        optimizer.momentum = optimizer.kind == GRAPHI_MOMENTUM ? 0.9 : optimizer.momentum;
    model_train(graph, loss, options, &optimizer);
    for (int64_t l = 0; l < s->layers; l++) {
        graphi_assign(graph, first[l].h, state[l].h);
        graphi_assign(graph, first[l].c, state[l].c);
        if (cell->turned)
            graphi_assign(graph, layer[l].turns, cell->turned(graph, &layer[l], s->steps));
    }
}

void recurrent_build(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options,
                     const struct recurrent_cell *cell)
{
    if (model_is_real(options)) {
        const struct recurrent_language how = {.keep = 1, .optimizer = {.kind = GRAPHI_ADAM, .clip_norm = 5}};
        recurrent_language_model(graph, sizes, options, cell, &how);
        return;
    }
    struct recurrent_layer layer[MAX_LAYERS];
    struct names names = {0};
    for (int64_t l = 0; l < sizes->layers; l++)
        make_layer(graph, (int)l, sizes->units, sizes->units, options->merged, 0.01, cell, &layer[l], &names);
    bench(graph, sizes, options, cell, layer, &names);
}

void recurrent_language_model(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options,
                              const struct recurrent_cell *cell, const struct recurrent_language *how)
{
    struct recurrent_layer layer[MAX_LAYERS];
    struct names names = {0};
    for (int64_t l = 0; l < sizes->layers; l++) {
        make_layer(graph, (int)l, sizes->units, sizes->units, options->merged || how->merged, how->range, cell,
                   &layer[l], &names);
        if (cell->bound)
            cell->bound(graph, &layer[l]);
    }
    language_model(graph, sizes, options, cell, layer, how);
}
