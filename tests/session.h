/* SPDX-License-Identifier: Apache-2.0 */
/* A small network in training, for tests of what lives longer than a step: convolution, batch normalization with a
 * running mean, dropout, a dense layer; Adam with decay and clipping. Include after cmocka.h. */
#ifndef TESTS_SESSION_H
#define TESTS_SESSION_H

#include "base/random.h"
#include "fixture.h"

#include <stdint.h>

enum { BATCH = 8, SIDE = 6, CHANNELS = 3, CLASSES = 5 };
enum { PIXELS = BATCH * SIDE * SIDE * CHANNELS };

static inline graphi_graph *session_network(void)
{
    static const graphi_initializer he = {.kind = GRAPHI_INIT_HE_NORMAL}, one = {.kind = GRAPHI_INIT_CONSTANT, .a = 1};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){BATCH, SIDE, SIDE, CHANNELS});
    graphi_value labels = graphi_input(g, "labels", GRAPHI_I32, 1, (int64_t[]){BATCH});
    graphi_value rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
    graphi_value w = graphi_parameter(g, "conv/w", GRAPHI_F32, 4, (int64_t[]){3, 3, CHANNELS, 8}, &he);
    graphi_value scale = graphi_parameter(g, "norm/scale", GRAPHI_F32, 1, (int64_t[]){8}, &one);
    graphi_value offset = graphi_parameter(g, "norm/offset", GRAPHI_F32, 1, (int64_t[]){8}, NULL);
    graphi_value mean = graphi_parameter(g, "norm/mean", GRAPHI_F32, 1, (int64_t[]){8}, NULL);
    graphi_freeze(g, mean);
    graphi_value y = graphi_conv2d(g, x, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), GRAPHI_LIST(1, 1), 1);
    graphi_value now = graphi_reduce_mean(g, y, GRAPHI_LIST(0, 1, 2), 0);
    graphi_assign(g, mean, graphi_add(g, graphi_mul(g, mean, graphi_fill(g, GRAPHI_LIST(8), 0.9, GRAPHI_F32)),
                                      graphi_mul(g, now, graphi_fill(g, GRAPHI_LIST(8), 0.1, GRAPHI_F32))));
    y = graphi_relu(g, graphi_batch_norm(g, y, scale, offset, 1e-3));
    y = graphi_dropout(g, graphi_global_avg_pool(g, y), 0.7);
    graphi_value dense = graphi_parameter(g, "dense/w", GRAPHI_F32, 2, (int64_t[]){8, CLASSES}, &he);
    graphi_value loss = graphi_reduce_mean(
        g, graphi_softmax_cross_entropy(g, graphi_matmul(g, y, dense, 0, 0), labels), NULL, 0, 0);
    graphi_output(g, "loss", loss);
    check_ok(graphi_minimize(
        g, loss,
        &(graphi_optimizer){.kind = GRAPHI_ADAM, .learning_rate = rate, .weight_decay = 1e-3, .clip_norm = 1}));
    check_ok(graphi_graph_status(g));
    return g;
}

struct session {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
};

static inline void session_open(struct session *s, graphi_setting setting, uint64_t seed)
{
    s->graph = session_network();
    check_ok(graphi_plan_create(s->graph, machine, &(graphi_plan_options){.setting = setting}, &s->plan));
    check_ok(graphi_state_create(s->graph, seed, &s->state));
    check_ok(graphi_run_create(s->plan, s->state, &s->run));
}

static inline void session_close(struct session *s)
{
    graphi_run_destroy(s->run);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

/* What step t is fed and what it loses; the step comes from the state alone. */
static inline float session_step(struct session *s)
{
    static float x[PIXELS];
    int32_t labels[BATCH];
    uint64_t step = graphi_state_step(s->state);
    float rate = 0.01f, loss;
    for (int i = 0; i < PIXELS; i++)
        x[i] = 2 * random_unit(random_philox(4, step, (uint64_t)i).v[0]) - 1;
    for (int i = 0; i < BATCH; i++)
        labels[i] = (int32_t)(random_philox(5, step, (uint64_t)i).v[0] % CLASSES);
    graphi_run_set_first_sample(s->run, step * BATCH);
    check_ok(graphi_run_set(s->run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_set(s->run, "labels", GRAPHI_I32, labels, sizeof labels));
    check_ok(graphi_run_set(s->run, "rate", GRAPHI_F32, &rate, sizeof rate));
    check_ok(graphi_run_execute(s->run));
    check_ok(graphi_run_get(s->run, "loss", GRAPHI_F32, &loss, sizeof loss));
    return loss;
}

#endif
