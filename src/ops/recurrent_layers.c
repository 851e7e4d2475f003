/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers over sequences as graphs (graphi/recurrent.h): parameters with PyTorch's names, one loop operation a
 * layer and direction, or the unrolled forms that deepcpu.txt compares with. Built with the public builders. */
#include "graphi/recurrent.h"

#include "base/status.h"
#include "graph/graph.h"
#include "graphi/ops.h"
#include "ops/recurrence_unroll.h"

#include <math.h>
#include <stdio.h>

static const char *const lowering_names[GRAPHI_LOWERINGS] = {"auto",  "streamlined", "across",      "fused",
                                                             "eight", "unrolled",    "partitioned", "chunked"};

const char *graphi_lowering_name(graphi_lowering lowering)
{
    return (unsigned)lowering < GRAPHI_LOWERINGS ? lowering_names[lowering] : "?";
}

static int gates_of(graphi_cell cell)
{
    return cell == GRAPHI_LSTM ? 4 : cell == GRAPHI_GRU ? 3 : 1;
}

/* What one operation stands for, which a plan may partition or cut. */
static bool is_loop(graphi_lowering lowering)
{
    return lowering <= GRAPHI_LOWERING_STREAMLINED || lowering >= GRAPHI_LOWERING_PARTITIONED;
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

static graphi_value unrolled(const struct layer *l, graphi_value x, graphi_value *h, graphi_value *c)
{
    const struct unrolled of = {.graph = l->graph,
                                .cell = l->cell,
                                .lowering = l->options->lowering,
                                .units = l->options->units,
                                .steps = l->options->steps,
                                .batch = l->options->batch,
                                .reverse = l->reverse,
                                .relu = l->options->relu,
                                .w_rows = true,
                                .u_rows = true,
                                .x = x,
                                .w = l->w,
                                .xw = GRAPHI_NONE,
                                .u = l->u,
                                .b = l->b,
                                .inner = l->inner};
    return recurrence_unroll(&of, h, c).y;
}

/* --- stacks --- */

static graphi_status check(graphi_graph *graph, graphi_cell cell, graphi_value x, const graphi_value *h0,
                           graphi_value offsets, const graphi_recurrent_options *o, int64_t *features)
{
    const int states = (o->layers ? o->layers : 1) * (o->bidirectional ? 2 : 1);
    const bool loop = is_loop(o->lowering);
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
    if (!loop && (offsets != GRAPHI_NONE || o->steps < 1 || o->steps > UNROLLED_MOST || o->batch < 1))
        return fail(GRAPHI_INVALID, "recurrent",
                    "found %lld steps of batch %lld%s, expected 1 to %d steps of one length "
                    "to unroll",
                    (long long)o->steps, (long long)o->batch, offsets != GRAPHI_NONE ? " with lengths" : "",
                    UNROLLED_MOST);
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
        y[d] = is_loop(o->lowering) ? streamlined(l, x, h, c) : unrolled(l, x, h, c);
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
