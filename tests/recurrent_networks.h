/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent networks for tests: layers over x with a loss and gradients, run under a width, an instruction set and a
 * way to run recurrences; their results by name. */
#ifndef TESTS_RECURRENT_NETWORKS_H
#define TESTS_RECURRENT_NETWORKS_H

#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FEATURES = 11, STEPS = 5, BATCH = 3 };

/* A network: layers over x, loss = sum of y times fixed numbers and of the last states; gradients of all parameters. */
struct network {
    graphi_cell cell;
    graphi_recurrent_options options;
    int64_t batch, steps;
    bool lengths; /* an input tells */
    bool gradients;
};

static inline float number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / (1 << 24) * 2 - 1);
}

/* Outputs by name, so that all forms of a network can be compared. */
static inline graphi_graph *build(const struct network *n)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const graphi_recurrent_options *o = &n->options;
    const int states = (o->layers ? o->layers : 1) * (o->bidirectional ? 2 : 1),
              wide = (int)o->units * (o->bidirectional ? 2 : 1);
    const int64_t rows = n->batch * n->steps;
    graphi_value x, offsets = GRAPHI_NONE, h0[8], c0[8];
    if (n->lengths) {
        x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_symbol(g, "rows", rows), FEATURES});
        offsets =
            graphi_sequence_offsets(g, graphi_input(g, "lengths", GRAPHI_I32, 1, (int64_t[]){n->batch}), n->steps);
    } else {
        x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){rows, FEATURES});
    }
    for (int i = 0; i < states; i++) {
        char name[8];
        snprintf(name, sizeof name, "h%d", i);
        h0[i] = graphi_input(g, name, GRAPHI_F32, 2, (int64_t[]){n->batch, o->units});
        name[0] = 'c';
        c0[i] = n->cell == GRAPHI_LSTM ? graphi_input(g, name, GRAPHI_F32, 2, (int64_t[]){n->batch, o->units})
                                       : GRAPHI_NONE;
    }
    graphi_recurrent_result r;
    graphi_value y = graphi_recurrent(g, n->cell, x, h0, c0, offsets, o, &r);
    graphi_output(g, "y", y);
    float weight[512];
    uint64_t seed = 7;
    for (int i = 0; i < wide; i++)
        weight[i] = number(&seed);
    graphi_value factor = graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){1, wide}, weight);
    graphi_value loss = graphi_reduce_sum(g, graphi_mul(g, y, factor), NULL, 0, 0);
    for (int i = 0; i < states; i++) {
        char name[16];
        snprintf(name, sizeof name, "last_h%d", i);
        graphi_output(g, name, r.h[i]);
        loss = graphi_add(g, loss, graphi_reduce_sum(g, graphi_mul(g, r.h[i], r.h[i]), NULL, 0, 0));
        if (n->cell != GRAPHI_LSTM)
            continue;
        snprintf(name, sizeof name, "last_c%d", i);
        graphi_output(g, name, r.c[i]);
        loss = graphi_add(g, loss, graphi_reduce_sum(g, graphi_mul(g, r.c[i], r.c[i]), NULL, 0, 0));
    }
    graphi_output(g, "loss", loss);
    graphi_port port;
    for (int i = 0; n->gradients && graphi_graph_at(g, GRAPHI_PORT_PARAMETER, i, &port); i++) {
        graphi_value wrt = graphi_find(g, port.name), gradient;
        char name[80];
        graphi_gradients(g, loss, 1, &wrt, &gradient);
        snprintf(name, sizeof name, "d %s", port.name);
        graphi_output(g, name, gradient);
    }
    for (int i = 0; n->gradients && i < states; i++) {
        char name[16];
        graphi_value gradient;
        graphi_gradients(g, loss, 1, &h0[i], &gradient);
        snprintf(name, sizeof name, "d h%d", i);
        graphi_output(g, name, gradient);
        if (n->cell != GRAPHI_LSTM)
            continue;
        graphi_gradients(g, loss, 1, &c0[i], &gradient);
        snprintf(name, sizeof name, "d c%d", i);
        graphi_output(g, name, gradient);
    }
    check_ok(graphi_graph_status(g));
    return g;
}

/* A network under way. */
struct session {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
};

/* How plans of the networks below run their recurrences. */
static const char *sequences;
static bool rounding;
static graphi_dtype plan_weights;

static inline struct session open_graph(graphi_graph *graph, int width, const char *isa)
{
    struct session s = {.graph = graph};
    graphi_plan_options options = {.isa = isa,
                                   .setting = {.executors = 1, .width = width},
                                   .sequences = sequences,
                                   .allow_rounding = rounding,
                                   .weights = plan_weights};
    check_ok(graphi_plan_create(s.graph, machine, &options, &s.plan));
    check_ok(graphi_state_create(s.graph, 5, &s.state));
    check_ok(graphi_run_create(s.plan, s.state, &s.run));
    return s;
}

static inline struct session open_session(const struct network *n, int width, const char *isa)
{
    return open_graph(build(n), width, isa);
}

static inline void close_session(struct session *s)
{
    graphi_run_destroy(s->run);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

struct results {
    int count;
    char name[64][64];
    int64_t size[64];
    float *data[64];
};

static inline void free_results(struct results *r)
{
    for (int i = 0; i < r->count; i++)
        free(r->data[i]);
}

static inline const float *result(const struct results *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->name[i], name) == 0)
            return r->data[i];
    fail_msg("no output '%s'", name);
    return NULL;
}

/* Numbers of an input by its name, the same in every form of a network. */
static inline void fill_input(const char *name, float *data, int64_t count)
{
    uint64_t seed = 1;
    for (const char *c = name; *c; c++)
        seed = seed * 31 + (unsigned char)*c;
    for (int64_t i = 0; i < count; i++)
        data[i] = number(&seed);
}

static inline void execute(struct session *s, const int32_t *lengths, int64_t batch)
{
    int64_t rows = 0;
    for (int64_t i = 0; lengths && i < batch; i++)
        rows += lengths[i];
    if (lengths) {
        check_ok(graphi_run_set_symbol(s->run, "rows", rows));
        check_ok(graphi_run_set(s->run, "lengths", GRAPHI_I32, lengths, (size_t)batch * sizeof *lengths));
    }
    graphi_port port;
    for (int i = 0; graphi_graph_at(s->graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        if (port.dtype != GRAPHI_F32)
            continue;
        int64_t count = (int64_t)(port.bytes / sizeof(float));
        float *data = malloc(port.bytes);
        fill_input(port.name, data, count);
        if (lengths && strcmp(port.name, "x") == 0)
            count = rows * FEATURES;
        check_ok(graphi_run_set(s->run, port.name, GRAPHI_F32, data, (size_t)count * sizeof(float)));
        free(data);
    }
    check_ok(graphi_run_execute(s->run));
}

static inline struct results collect(const struct session *s, int64_t rows_of_y)
{
    struct results r = {0};
    graphi_port port;
    for (int i = 0; graphi_graph_at(s->graph, GRAPHI_PORT_OUTPUT, i, &port); i++, r.count++) {
        snprintf(r.name[i], sizeof r.name[i], "%s", port.name);
        r.size[i] = (int64_t)(port.bytes / sizeof(float));
        if (strcmp(port.name, "y") == 0 && rows_of_y >= 0)
            r.size[i] = rows_of_y * port.dims[1];
        r.data[i] = malloc((size_t)r.size[i] * sizeof(float) + 1);
        check_ok(graphi_run_get(s->run, port.name, GRAPHI_F32, r.data[i], (size_t)r.size[i] * sizeof(float)));
    }
    return r;
}

static inline struct results run_network(const struct network *n, int width, const char *isa, const int32_t *lengths)
{
    struct session s = open_session(n, width, isa);
    int64_t rows = lengths ? 0 : -1;
    for (int64_t i = 0; lengths && i < n->batch; i++)
        rows += lengths[i];
    execute(&s, lengths, n->batch);
    struct results r = collect(&s, rows);
    close_session(&s);
    return r;
}

static inline void same_bits(const struct results *a, const struct results *b, const char *what)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        if (memcmp(a->data[i], b->data[i], (size_t)a->size[i] * sizeof(float)))
            for (int64_t k = 0; k < a->size[i]; k++)
                if (memcmp(&a->data[i][k], &b->data[i][k], sizeof(float)))
                    fail_msg("%s: %s[%lld] is %.9g, not %.9g", what, a->name[i], (long long)k, a->data[i][k],
                             b->data[i][k]);
}

/* Relative to the largest number of each output. */
static inline void close_numbers(const struct results *a, const struct results *b, double bound, const char *what)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        double largest = 1e-6, worst = 0;
        for (int64_t k = 0; k < a->size[i]; k++) {
            largest = fmax(largest, fabs((double)b->data[i][k]));
            worst = fmax(worst, fabs((double)a->data[i][k] - (double)b->data[i][k]));
        }
        if (!(worst <= bound * largest))
            fail_msg("%s: %s is off by %g of %g", what, a->name[i], worst, largest);
    }
}

/* Cells, forms and directions that every test goes through. */
static const struct form {
    const char *name;
    graphi_cell cell;
    graphi_recurrent_options options;
} forms[] = {
    {"lstm", GRAPHI_LSTM, {.units = 20}},
    {"lstm of many units", GRAPHI_LSTM, {.units = 140}},
    {"lstm in both directions", GRAPHI_LSTM, {.units = 16, .bidirectional = true}},
    {"two layers of lstm", GRAPHI_LSTM, {.units = 33, .layers = 2, .bidirectional = true}},
    {"gru", GRAPHI_GRU, {.units = 19}},
    {"gru of many units", GRAPHI_GRU, {.units = 144, .bidirectional = true}},
    {"gru, reset before", GRAPHI_GRU, {.units = 20, .reset_before = true}},
    {"gru, reset before, both", GRAPHI_GRU, {.units = 130, .reset_before = true, .bidirectional = true}},
    {"rnn", GRAPHI_RNN, {.units = 70}},
    {"rnn with relu", GRAPHI_RNN, {.units = 5, .relu = true, .layers = 2}},
};
enum { FORMS = sizeof forms / sizeof *forms };

static inline struct network network_of(const struct form *form, int64_t batch, int64_t steps, bool lengths,
                                        bool gradients)
{
    struct network n = {form->cell, form->options, batch, steps, lengths, gradients};
    n.options.batch = batch;
    n.options.steps = steps;
    return n;
}

static const int64_t batches[] = {1, 3, 8};

#endif
