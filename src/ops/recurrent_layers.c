/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers over sequences as graphs (graphi/recurrent.h): parameters with PyTorch's names, one loop operation a
 * layer and direction, or the unrolled forms that deepcpu.txt compares with. Built with the public builders. */
#include "graphi/recurrent.h"

#include "base/status.h"
#include "graph/graph.h"
#include "graphi/ops.h"
#include "ops/matmul.h"

#include <math.h>
#include <stdio.h>

static const char *const lowering_names[GRAPHI_LOWERINGS] = {"auto", "streamlined", "across", "fused", "eight"};

const char *graphi_lowering_name(graphi_lowering lowering)
{
    return (unsigned)lowering < GRAPHI_LOWERINGS ? lowering_names[lowering] : "?";
}

static int gates_of(graphi_cell cell)
{
    return cell == GRAPHI_LSTM ? 4 : cell == GRAPHI_GRU ? 3 : 1;
}

/* One layer and direction while it is built. */
struct layer {
    graphi_graph *graph;
    graphi_cell cell;
    const graphi_recurrent_options *options;
    bool reverse;
    int64_t features;
    graphi_value w, u, b, inner; /* inner: bias of a GRU's candidate inside its reset gate */
    graphi_value offsets;
};

static graphi_value parameter(const struct layer *l, const char *name, int index, int rank, int64_t rows,
                              int64_t columns)
{
    char text[160];
    const graphi_recurrent_options *o = l->options;
    const double range = o->range > 0 ? o->range : 1 / sqrt((double)o->units);
    snprintf(text, sizeof text, "%s%s_l%d%s", o->scope ? o->scope : "", name, index, l->reverse ? "_reverse" : "");
    return graphi_parameter(l->graph, text, GRAPHI_F32, rank, (int64_t[]){rows, columns},
                            &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -range, .b = range});
}

/* Both biases are one where both are added alike; a GRU keeps the candidate's inner one apart. */
static void make_biases(struct layer *l, int index)
{
    const int64_t units = l->options->units, all = gates_of(l->cell) * units;
    graphi_value ih = parameter(l, "bias_ih", index, 1, all, 0), hh = parameter(l, "bias_hh", index, 1, all, 0);
    l->inner = GRAPHI_NONE;
    l->b = graphi_add(l->graph, ih, hh);
    if (l->cell != GRAPHI_GRU || l->options->reset_before)
        return;
    l->inner = graphi_slice(l->graph, hh, 0, 2 * units, all);
    graphi_value parts[] = {graphi_slice(l->graph, l->b, 0, 0, 2 * units),
                            graphi_slice(l->graph, ih, 0, 2 * units, all)};
    l->b = graphi_concat(l->graph, 2, parts, 0);
}

static void make_parameters(struct layer *l, int index)
{
    const int64_t units = l->options->units, all = gates_of(l->cell) * units;
    l->w = parameter(l, "weight_ih", index, 2, all, l->features);
    l->u = parameter(l, "weight_hh", index, 2, all, units);
    make_biases(l, index);
}

static graphi_value streamlined(const struct layer *l, graphi_value x, graphi_value *h, graphi_value *c)
{
    static const char *const kinds[] = {"lstm", "gru", "rnn"};
    static const int64_t relu[] = {GRAPHI_RELU};
    graphi_value in[8] = {graphi_matmul(l->graph, x, l->w, 0, 1), l->u, l->b, *h};
    int count = 4;
    if (l->cell == GRAPHI_LSTM)
        in[count++] = *c;
    if (l->inner != GRAPHI_NONE)
        in[count++] = l->inner;
    if (l->offsets != GRAPHI_NONE)
        in[count++] = l->offsets;
    const bool other = l->cell == GRAPHI_RNN && l->options->relu;
    graphi_attribute attributes[] = {
        {"units", GRAPHI_INT, l->options->units, 0, NULL, 0},
        {"steps", GRAPHI_INT, l->options->steps, 0, NULL, 0},
        {"reverse", GRAPHI_INT, l->reverse, 0, NULL, 0},
        {"reset_after", GRAPHI_INT, l->inner != GRAPHI_NONE, 0, NULL, 0},
        {"lengths", GRAPHI_INT, l->offsets != GRAPHI_NONE, 0, NULL, 0},
        {"trans", GRAPHI_INT, 1, 0, NULL, 0},
        {"functions", GRAPHI_INTS, 0, 0, relu, 1},
    };
    graphi_value y = graphi_op(l->graph, kinds[l->cell], count, in, other ? 7 : 6, attributes);
    *h = y == GRAPHI_NONE ? y : y + 1;
    if (l->cell == GRAPHI_LSTM)
        *c = y == GRAPHI_NONE ? y : y + 2;
    return y;
}

/* --- unrolled --- */

static graphi_value rows_of(graphi_graph *graph, graphi_value x, int64_t at, int64_t count)
{
    return graphi_slice(graph, x, 0, at * count, (at + 1) * count);
}

/* Of all gates side by side, or of the gate alone. */
static graphi_value gate_of(const struct layer *l, graphi_value all, int gate)
{
    const int64_t units = l->options->units;
    return graphi_slice(l->graph, all, 1, gate * units, (gate + 1) * units);
}

static graphi_value weights_of(const struct layer *l, graphi_value w, int gate)
{
    return rows_of(l->graph, w, gate, l->options->units);
}

/* x W continued by h U: of x and w, or of their product that is there already. */
static graphi_value continued(graphi_graph *g, graphi_value x, graphi_value w, graphi_value xw, graphi_value h,
                              graphi_value u)
{
    if (xw == GRAPHI_NONE)
        return graphi_add(g, graphi_matmul(g, x, w, 0, 1), graphi_matmul(g, h, u, 0, 1));
    graphi_value in[3] = {h, u};
    return product_append(g, &(struct product_operands){in, 1, xw}, false, true);
}

/* The first gates of a step before their biases: one product, or one for each. */
struct sums {
    graphi_value gate[4];
};
static struct sums step_sums(const struct layer *l, graphi_value x, graphi_value xw, graphi_value h, int gates)
{
    graphi_graph *g = l->graph;
    const int64_t units = l->options->units;
    struct sums s;
    if (l->options->lowering == GRAPHI_LOWERING_EIGHT) {
        for (int i = 0; i < gates; i++)
            s.gate[i] = continued(g, x, weights_of(l, l->w, i), GRAPHI_NONE, h, weights_of(l, l->u, i));
        return s;
    }
    const bool some = gates < gates_of(l->cell);
    graphi_value w = some ? graphi_slice(g, l->w, 0, 0, gates * units) : l->w;
    graphi_value u = some ? graphi_slice(g, l->u, 0, 0, gates * units) : l->u;
    if (xw != GRAPHI_NONE && some)
        xw = graphi_slice(g, xw, 1, 0, gates * units);
    graphi_value all = continued(g, x, w, xw, h, u);
    for (int i = 0; i < gates; i++)
        s.gate[i] = gates == 1 ? all : gate_of(l, all, i);
    return s;
}

/* x W of a GRU's candidate. */
static graphi_value candidate_of(const struct layer *l, graphi_value x, graphi_value xw)
{
    return xw != GRAPHI_NONE ? gate_of(l, xw, 2) : graphi_matmul(l->graph, x, weights_of(l, l->w, 2), 0, 1);
}

static graphi_value bias_of(const struct layer *l, int gate)
{
    const int64_t units = l->options->units;
    return graphi_slice(l->graph, l->b, 0, gate * units, (gate + 1) * units);
}

static graphi_value blend(graphi_graph *g, graphi_value z, graphi_value n, graphi_value h)
{
    const float one = 1;
    graphi_value rest = graphi_sub(g, graphi_constant(g, GRAPHI_F32, 0, NULL, &one), z);
    return graphi_add(g, graphi_mul(g, rest, n), graphi_mul(g, z, h));
}

static graphi_value gru_step(const struct layer *l, graphi_value x, graphi_value xw, graphi_value h)
{
    graphi_graph *g = l->graph;
    const struct sums s = step_sums(l, x, xw, h, 2);
    graphi_value r = graphi_sigmoid(g, graphi_add(g, s.gate[0], bias_of(l, 0))), n;
    graphi_value z = graphi_sigmoid(g, graphi_add(g, s.gate[1], bias_of(l, 1)));
    graphi_value u = weights_of(l, l->u, 2);
    if (l->inner == GRAPHI_NONE) {
        graphi_value rh = graphi_mul(g, r, h), w = weights_of(l, l->w, 2);
        graphi_value part = xw == GRAPHI_NONE ? GRAPHI_NONE : gate_of(l, xw, 2);
        n = graphi_add(g, continued(g, x, w, part, rh, u), bias_of(l, 2));
    } else {
        graphi_value inside = graphi_add(g, graphi_matmul(g, h, u, 0, 1), l->inner);
        n = graphi_add(g, graphi_add(g, candidate_of(l, x, xw), bias_of(l, 2)), graphi_mul(g, r, inside));
    }
    return blend(g, z, graphi_tanh(g, n), h);
}

static graphi_value lstm_step(const struct layer *l, graphi_value x, graphi_value xw, graphi_value h, graphi_value *c)
{
    graphi_graph *g = l->graph;
    const struct sums s = step_sums(l, x, xw, h, 4);
    graphi_value i = graphi_sigmoid(g, graphi_add(g, s.gate[0], bias_of(l, 0)));
    graphi_value f = graphi_sigmoid(g, graphi_add(g, s.gate[1], bias_of(l, 1)));
    graphi_value n = graphi_tanh(g, graphi_add(g, s.gate[2], bias_of(l, 2)));
    graphi_value o = graphi_sigmoid(g, graphi_add(g, s.gate[3], bias_of(l, 3)));
    *c = graphi_add(g, graphi_mul(g, f, *c), graphi_mul(g, i, n));
    return graphi_mul(g, o, graphi_tanh(g, *c));
}

static graphi_value step(const struct layer *l, graphi_value x, graphi_value xw, graphi_value h, graphi_value *c)
{
    if (l->cell == GRAPHI_LSTM)
        return lstm_step(l, x, xw, h, c);
    if (l->cell == GRAPHI_GRU)
        return gru_step(l, x, xw, h);
    graphi_value sum = graphi_add(l->graph, step_sums(l, x, xw, h, 1).gate[0], bias_of(l, 0));
    return l->options->relu ? graphi_relu(l->graph, sum) : graphi_tanh(l->graph, sum);
}

enum { MOST_UNROLLED = 1024 };

static graphi_value unrolled(const struct layer *l, graphi_value x, graphi_value *h, graphi_value *c)
{
    graphi_graph *g = l->graph;
    const int64_t steps = l->options->steps, batch = l->options->batch;
    graphi_value tops[MOST_UNROLLED], all = GRAPHI_NONE;
    if (l->options->lowering == GRAPHI_LOWERING_ACROSS)
        all = graphi_matmul(g, x, l->w, 0, 1);
    for (int64_t i = 0; i < steps; i++) {
        const int64_t t = l->reverse ? steps - 1 - i : i;
        graphi_value xt = rows_of(g, x, t, batch), xw = GRAPHI_NONE;
        if (l->options->lowering == GRAPHI_LOWERING_ACROSS)
            xw = rows_of(g, all, t, batch);
        tops[t] = *h = step(l, xt, xw, *h, c);
    }
    return graphi_concat(g, (int)steps, tops, 0);
}

/* --- stacks --- */

static graphi_status check(graphi_graph *graph, graphi_cell cell, graphi_value x, const graphi_value *h0,
                           graphi_value offsets, const graphi_recurrent_options *o, int64_t *features)
{
    const int states = (o->layers ? o->layers : 1) * (o->bidirectional ? 2 : 1);
    const bool loop = o->lowering <= GRAPHI_LOWERING_STREAMLINED;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    TRY(graphi_value_type(graph, x, &dtype, &rank, dims));
    if ((unsigned)cell > GRAPHI_RNN || (unsigned)o->lowering >= GRAPHI_LOWERINGS || o->units < 1 || o->layers < 0 ||
        states > GRAPHI_MOST_STATES)
        return fail(GRAPHI_INVALID, "recurrent",
                    "found cell %d, lowering %d, units %lld, %d layers times directions, "
                    "expected those of graphi/recurrent.h, at least 1 unit, at most %d",
                    (int)cell, (int)o->lowering, (long long)o->units, states, GRAPHI_MOST_STATES);
    if (rank != 2 || dtype != GRAPHI_F32)
        return fail(GRAPHI_INVALID, "recurrent",
                    "found x of rank %d, expected float32 rows [rows, features] in step "
                    "order",
                    rank);
    if (!h0 && o->batch < 1)
        return fail(GRAPHI_INVALID, "recurrent", "found batch %lld, expected it where there are no initial states",
                    (long long)o->batch);
    if (!loop && (offsets != GRAPHI_NONE || o->steps < 1 || o->steps > MOST_UNROLLED || o->batch < 1))
        return fail(GRAPHI_INVALID, "recurrent",
                    "found %lld steps of batch %lld%s, expected 1 to %d steps of one length "
                    "to unroll",
                    (long long)o->steps, (long long)o->batch, offsets != GRAPHI_NONE ? " with lengths" : "",
                    MOST_UNROLLED);
    *features = dims[1];
    return GRAPHI_OK;
}

static graphi_value zeros(graphi_graph *graph, int64_t rows, int64_t columns)
{
    static const float zero = 0;
    const int64_t dims[] = {rows, columns};
    return graphi_expand(graph, graphi_constant(graph, GRAPHI_F32, 0, NULL, &zero), dims, 2, NULL, 0);
}

/* One layer: both directions side by side. */
static graphi_value add_layer(struct layer *l, int index, graphi_value x, graphi_recurrent_result *r)
{
    const graphi_recurrent_options *o = l->options;
    const int directions = o->bidirectional ? 2 : 1;
    graphi_value y[2];
    for (int d = 0; d < directions; d++) {
        graphi_value *h = &r->h[index * directions + d], *c = &r->c[index * directions + d];
        l->reverse = d == 1;
        make_parameters(l, index);
        y[d] = o->lowering <= GRAPHI_LOWERING_STREAMLINED ? streamlined(l, x, h, c) : unrolled(l, x, h, c);
    }
    return directions == 1 ? y[0] : graphi_concat(l->graph, 2, y, 1);
}

graphi_value graphi_recurrent(graphi_graph *graph, graphi_cell cell, graphi_value x, const graphi_value *h0,
                              const graphi_value *c0, graphi_value offsets, const graphi_recurrent_options *options,
                              graphi_recurrent_result *result)
{
    static const graphi_recurrent_options none = {0};
    graphi_recurrent_result ignored, *r = result ? result : &ignored;
    struct layer l = {.graph = graph, .cell = cell, .options = options ? options : &none, .offsets = offsets};
    if (!graph_open(graph))
        return GRAPHI_NONE;
    graphi_status status = check(graph, cell, x, h0, offsets, l.options, &l.features);
    if (status)
        return graph_broken(graph, status);
    const int layers = l.options->layers ? l.options->layers : 1;
    r->states = layers * (l.options->bidirectional ? 2 : 1);
    for (int i = 0; i < r->states; i++) {
        r->h[i] = h0 ? h0[i] : zeros(graph, l.options->batch, l.options->units);
        r->c[i] = cell != GRAPHI_LSTM ? GRAPHI_NONE : c0 ? c0[i] : zeros(graph, l.options->batch, l.options->units);
    }
    for (int i = 0; i < layers; i++) {
        if (i && l.options->keep > 0 && l.options->keep < 1)
            x = graphi_dropout(graph, x, l.options->keep);
        x = add_layer(&l, i, x, r);
        l.features = l.options->units * (l.options->bidirectional ? 2 : 1);
    }
    return r->y = x;
}
