/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, maxima over time, highway layers and perceptrons as graphs (graphi/attention.h). Built with the public
 * builders. */
#include "graphi/attention.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graphi/ops.h"

#include <stdio.h>

/* What masked scores are: far below any other, and no infinity, whose differences would be no numbers. */
static const float masked = -1e30f;

static graphi_value number(graphi_graph *graph, float value)
{
    return graphi_constant(graph, GRAPHI_F32, 0, NULL, &value);
}

/* behind: what comes after the name, "_l0"; "": nothing. */
static graphi_value parameter(graphi_graph *graph, const char *scope, const char *name, const char *behind, int rank,
                              const int64_t *dims, double value)
{
    char text[200];
    const graphi_initializer init = {.kind = rank > 1     ? GRAPHI_INIT_GLOROT_UNIFORM
                                             : value != 0 ? GRAPHI_INIT_CONSTANT
                                                          : GRAPHI_INIT_ZERO,
                                     .a = value};
    snprintf(text, sizeof text, "%s%s%s", scope ? scope : "", name, behind);
    return graphi_parameter(graph, text, GRAPHI_F32, rank, dims, &init);
}

/* float32 of a rank; its sizes. */
static graphi_status expect_floats(graphi_graph *graph, const char *where, graphi_value x, int rank, int64_t *dims)
{
    graphi_dtype dtype;
    int found;
    int64_t all[GRAPHI_MAX_RANK];
    TRY(graphi_value_type(graph, x, &dtype, &found, all));
    if (found != rank || dtype != GRAPHI_F32)
        return fail(GRAPHI_INVALID, where, "found %s of rank %d, expected float32 of rank %d", graphi_dtype_name(dtype),
                    found, rank);
    for (int i = 0; i < rank; i++)
        dims[i] = all[i];
    return GRAPHI_OK;
}

static graphi_status expect_lengths(graphi_graph *graph, const char *where, graphi_value lengths, int64_t batch)
{
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    if (lengths == GRAPHI_NONE)
        return GRAPHI_OK;
    TRY(graphi_value_type(graph, lengths, &dtype, &rank, dims));
    if (rank == 1 && dtype == GRAPHI_I32 && dims[0] == batch)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found lengths of rank %d, %lld of them, expected int32 [%lld]", rank,
                rank ? (long long)dims[0] : 0LL, (long long)batch);
}

/* 1 within the length and 0 beyond: [batch, steps]. */
static graphi_value within(graphi_graph *graph, graphi_value lengths, int64_t batch, int64_t steps)
{
    float *place = mem_zalloc_array((size_t)steps, sizeof *place);
    if (!place)
        return graph_broken(graph, fail_memory("attention", (size_t)steps * sizeof *place));
    for (int64_t i = 0; i < steps; i++)
        place[i] = (float)i;
    graphi_value at = graphi_constant(graph, GRAPHI_F32, 2, (int64_t[]){1, steps}, place);
    mem_free(place);
    graphi_value limit = graphi_reshape(graph, graphi_cast(graph, lengths, GRAPHI_F32), (int64_t[]){batch, 1}, 2);
    return graphi_less(graph, at, limit);
}

/* --- attention --- */

struct attention {
    graphi_graph *graph;
    const graphi_attention_options *options;
    graphi_value query, memory;
    int64_t batch, steps, wide[2]; /* columns of query and memory */
};

static graphi_value own(const struct attention *a, const char *name, int rank, int64_t rows, int64_t columns)
{
    return parameter(a->graph, a->options->scope, name, "", rank, (int64_t[]){rows, columns}, 0);
}

/* A row for each sequence of the batch beside all of its steps. */
static graphi_value beside(const struct attention *a, graphi_value rows, int64_t columns)
{
    return graphi_reshape(a->graph, rows, (int64_t[]){a->batch, 1, columns}, 3);
}

static graphi_value sum_columns(const struct attention *a, graphi_value x, int axis)
{
    return graphi_reduce_sum(a->graph, x, (int64_t[]){axis}, 1, 0);
}

static graphi_value dot(const struct attention *a, graphi_value query)
{
    return sum_columns(a, graphi_mul(a->graph, a->memory, beside(a, query, a->wide[1])), 2);
}

static graphi_value bilinear(const struct attention *a)
{
    return dot(a, graphi_matmul(a->graph, a->query, own(a, "weight", 2, a->wide[0], a->wide[1]), 0, 0));
}

static graphi_value additive(const struct attention *a)
{
    graphi_graph *g = a->graph;
    const int64_t units = a->options->units > 0 ? a->options->units : a->wide[0];
    graphi_value q = graphi_matmul(g, a->query, own(a, "weight_query", 2, a->wide[0], units), 0, 0);
    graphi_value flat = graphi_reshape(g, a->memory, (int64_t[]){a->batch * a->steps, a->wide[1]}, 2);
    graphi_value m = graphi_matmul(g, flat, own(a, "weight_memory", 2, a->wide[1], units), 0, 0);
    q = graphi_add(g, q, own(a, "bias", 1, units, 0));
    m = graphi_reshape(g, m, (int64_t[]){a->batch, a->steps, units}, 3);
    graphi_value vector = parameter(g, a->options->scope, "vector", "", 2, (int64_t[]){1, units}, 0);
    vector = graphi_reshape(g, vector, &units, 1);
    return sum_columns(a, graphi_mul(g, graphi_tanh(g, graphi_add(g, m, beside(a, q, units))), vector), 2);
}

static graphi_value row_weights(const struct attention *a, const char *name, int64_t columns)
{
    graphi_value w = parameter(a->graph, a->options->scope, name, "", 2, (int64_t[]){1, columns}, 0);
    return graphi_reshape(a->graph, w, &columns, 1);
}

static graphi_value trilinear(const struct attention *a)
{
    graphi_graph *g = a->graph;
    graphi_value m = sum_columns(a, graphi_mul(g, a->memory, row_weights(a, "weight_memory", a->wide[1])), 2);
    graphi_value q = sum_columns(a, graphi_mul(g, a->query, row_weights(a, "weight_query", a->wide[0])), 1);
    graphi_value both = dot(a, graphi_mul(g, a->query, row_weights(a, "weight_product", a->wide[1])));
    q = graphi_reshape(g, q, (int64_t[]){a->batch, 1}, 2);
    return graphi_add(g, graphi_add(g, m, q), both);
}

static graphi_value scores_of(const struct attention *a)
{
    switch (a->options->kind) {
    case GRAPHI_ATTENTION_BILINEAR:
        return bilinear(a);
    case GRAPHI_ATTENTION_ADDITIVE:
        return additive(a);
    case GRAPHI_ATTENTION_TRILINEAR:
        return trilinear(a);
    default:
        return dot(a, a->query);
    }
}

static graphi_status open_attention(struct attention *a, graphi_value lengths)
{
    int64_t query[2] = {0}, memory[3] = {0};
    TRY(expect_floats(a->graph, "attention: query", a->query, 2, query));
    TRY(expect_floats(a->graph, "attention: memory", a->memory, 3, memory));
    const bool same = a->options->kind == GRAPHI_ATTENTION_DOT || a->options->kind == GRAPHI_ATTENTION_TRILINEAR;
    if ((unsigned)a->options->kind >= GRAPHI_ATTENTION_KINDS || query[0] != memory[0] || a->options->units < 0 ||
        (same && query[1] != memory[2]))
        return fail(GRAPHI_INVALID, "attention",
                    "found kind %d of a query [%lld, %lld] and a memory [%lld, %lld, %lld], expected one batch%s",
                    (int)a->options->kind, (long long)query[0], (long long)query[1], (long long)memory[0],
                    (long long)memory[1], (long long)memory[2], same ? " and equal columns" : " and a known kind");
    a->batch = memory[0];
    a->steps = memory[1];
    a->wide[0] = query[1];
    a->wide[1] = memory[2];
    return expect_lengths(a->graph, "attention", lengths, a->batch);
}

graphi_value graphi_attend(graphi_graph *graph, graphi_value query, graphi_value memory, graphi_value lengths,
                           const graphi_attention_options *options, graphi_attention_result *result)
{
    static const graphi_attention_options none = {0};
    struct attention a = {.graph = graph, .options = options ? options : &none, .query = query, .memory = memory};
    if (!graph_open(graph))
        return GRAPHI_NONE;
    const graphi_status status = open_attention(&a, lengths);
    if (status)
        return graph_broken(graph, status);
    graphi_attention_result r = {.scores = scores_of(&a)};
    if (a.options->scale != 0)
        r.scores = graphi_mul(graph, r.scores, number(graph, (float)a.options->scale));
    graphi_value mask = lengths == GRAPHI_NONE ? GRAPHI_NONE : within(graph, lengths, a.batch, a.steps);
    if (mask != GRAPHI_NONE)
        r.scores = graphi_select(graph, mask, r.scores, number(graph, masked));
    r.weights = graphi_softmax(graph, r.scores);
    if (mask != GRAPHI_NONE) /* all steps are masked alike where there are none */
        r.weights = graphi_mul(graph, r.weights, mask);
    graphi_value each = graphi_reshape(graph, r.weights, (int64_t[]){a.batch, a.steps, 1}, 3);
    r.context = sum_columns(&a, graphi_mul(graph, memory, each), 1);
    if (result)
        *result = r;
    return r.context;
}

/* --- what else stands around --- */

graphi_value graphi_max_over_time(graphi_graph *graph, graphi_value x, graphi_value lengths)
{
    int64_t dims[3] = {0};
    if (!graph_open(graph))
        return GRAPHI_NONE;
    graphi_status status = expect_floats(graph, "max_over_time", x, 3, dims);
    if (!status)
        status = expect_lengths(graph, "max_over_time", lengths, dims[0]);
    if (status)
        return graph_broken(graph, status);
    if (lengths != GRAPHI_NONE) {
        graphi_value mask =
            graphi_reshape(graph, within(graph, lengths, dims[0], dims[1]), (int64_t[]){dims[0], dims[1], 1}, 3);
        x = graphi_select(graph, mask, x, number(graph, masked));
    }
    return graphi_reduce_max(graph, x, (int64_t[]){1}, 1, 0);
}

graphi_value graphi_batch_major(graphi_graph *graph, graphi_value rows, int64_t batch)
{
    int64_t dims[2] = {0};
    if (!graph_open(graph))
        return GRAPHI_NONE;
    const graphi_status status = expect_floats(graph, "batch_major", rows, 2, dims);
    if (status)
        return graph_broken(graph, status);
    if (batch < 1 || dims[0] % batch)
        return graph_broken(graph, fail(GRAPHI_INVALID, "batch_major",
                                        "found %lld rows of a batch of %lld, expected whole steps", (long long)dims[0],
                                        (long long)batch));
    graphi_value steps = graphi_reshape(graph, rows, (int64_t[]){dims[0] / batch, batch, dims[1]}, 3);
    return graphi_transpose(graph, steps, (int64_t[]){1, 0, 2}, 3);
}

/* x W + b with the parameters of layer i. */
static graphi_value affine(graphi_graph *graph, graphi_value x, const char *scope, const char *gate, int i, int64_t in,
                           int64_t out, double bias)
{
    char weight[40], offset[40], behind[16];
    snprintf(weight, sizeof weight, "%sweight", gate);
    snprintf(offset, sizeof offset, "%sbias", gate);
    snprintf(behind, sizeof behind, "_l%d", i);
    graphi_value w = parameter(graph, scope, weight, behind, 2, (int64_t[]){in, out}, 0);
    return graphi_add(graph, graphi_matmul(graph, x, w, 0, 0), parameter(graph, scope, offset, behind, 1, &out, bias));
}

static graphi_status expect_layers(const char *where, int layers)
{
    return layers >= 1 && layers <= 64 ? GRAPHI_OK
                                       : fail(GRAPHI_INVALID, where, "found %d layers, expected 1 to 64", layers);
}

graphi_value graphi_highway(graphi_graph *graph, graphi_value x, int layers, const char *scope)
{
    int64_t dims[2] = {0};
    if (!graph_open(graph))
        return GRAPHI_NONE;
    graphi_status status = expect_floats(graph, "highway", x, 2, dims);
    if (!status)
        status = expect_layers("highway", layers);
    if (status)
        return graph_broken(graph, status);
    for (int i = 0; i < layers; i++) {
        graphi_value y = graphi_relu(graph, affine(graph, x, scope, "", i, dims[1], dims[1], 0));
        graphi_value t = graphi_sigmoid(graph, affine(graph, x, scope, "gate_", i, dims[1], dims[1], -1));
        graphi_value rest = graphi_mul(graph, graphi_sub(graph, number(graph, 1), t), x);
        x = graphi_add(graph, graphi_mul(graph, t, y), rest);
    }
    return x;
}

graphi_value graphi_perceptron(graphi_graph *graph, graphi_value x, int layers, const int64_t *units, const char *scope)
{
    int64_t dims[2] = {0};
    if (!graph_open(graph))
        return GRAPHI_NONE;
    graphi_status status = expect_floats(graph, "perceptron", x, 2, dims);
    if (!status)
        status = expect_layers("perceptron", layers);
    if (!status && !units)
        status = fail(GRAPHI_INVALID, "perceptron", "found no units, expected those of each layer");
    if (status)
        return graph_broken(graph, status);
    for (int i = 0; i < layers; i++) {
        x = affine(graph, i ? graphi_relu(graph, x) : x, scope, "", i, i ? units[i - 1] : dims[1], units[i], 0);
    }
    return x;
}
