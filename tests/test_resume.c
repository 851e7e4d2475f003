/* SPDX-License-Identifier: Apache-2.0 */
/* Training that stops and goes on: a state saved at random steps and loaded into fresh objects continues bit for bit,
 * dropout, Adam's slots and running statistics included, under any setting; and every allocation and every write of
 * saving, loading, tuning and simulating may fail. */
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "graphi/graphi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

enum { BATCH = 8, SIDE = 6, CHANNELS = 3, CLASSES = 5, STEPS = 12, TRIALS = 6 };
enum { PIXELS = BATCH * SIDE * SIDE * CHANNELS };

static char path[64];

/* Convolution, batch normalization with a running mean, dropout, a dense layer; Adam with decay and clipping. */
static graphi_graph *network(void)
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

static void session_open(struct session *s, graphi_setting setting, uint64_t seed)
{
    s->graph = network();
    check_ok(graphi_plan_create(s->graph, machine, &(graphi_plan_options){.setting = setting}, &s->plan));
    check_ok(graphi_state_create(s->graph, seed, &s->state));
    check_ok(graphi_run_create(s->plan, s->state, &s->run));
}

static void session_close(struct session *s)
{
    graphi_run_destroy(s->run);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

/* What step t is fed and what it loses; the step comes from the state alone. */
static float one_step(struct session *s)
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
    check_ok(graphi_run_set(s->run, "x", x, sizeof x));
    check_ok(graphi_run_set(s->run, "labels", labels, sizeof labels));
    check_ok(graphi_run_set(s->run, "rate", &rate, sizeof rate));
    check_ok(graphi_run_execute(s->run));
    check_ok(graphi_run_get(s->run, "loss", &loss, sizeof loss));
    return loss;
}

static void train(struct session *s, uint64_t until, float *losses)
{
    while (graphi_state_step(s->state) < until) {
        uint64_t step = graphi_state_step(s->state);
        losses[step] = one_step(s);
        assert_int_equal(graphi_state_step(s->state), step + 1);
    }
}

static void remember(void *context, const char *key, const char *value)
{
    if (strcmp(key, "position") == 0)
        *(int *)context = atoi(value);
}

/* Without it a training that was interrupted would end elsewhere than one that was not. */
static void resumed_training_gives_the_same_bits(void **state)
{
    static const char *const keys[] = {"position"};
    const char *values[1];
    float expected[STEPS], losses[STEPS];
    char hash[65], other[65], text[16];
    struct session s;
    session_open(&s, (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}, 7);
    train(&s, STEPS, expected);
    graphi_state_sha256(s.state, hash);
    session_close(&s);
    for (int trial = 0; trial < TRIALS; trial++) {
        memset(losses, 0, sizeof losses);
        session_open(&s, (graphi_setting){.policy = (graphi_policy)(2 * trial % GRAPHI_POLICIES)}, 7);
        for (uint64_t at = 0; at < STEPS;) {
            at += 1 + random_philox(6, (uint64_t)trial, at).v[0] % 5;
            at = at < STEPS ? at : STEPS;
            train(&s, at, losses);
            snprintf(text, sizeof text, "%d", (int)at);
            values[0] = text;
            check_ok(graphi_state_save(s.state, path, 1, keys, values));
            session_close(&s); /* the process dies; the next one starts with another seed and setting */
            int position = -1;
            session_open(&s, (graphi_setting){.policy = (graphi_policy)((trial + (int)at) % GRAPHI_POLICIES)}, at + 99);
            check_ok(graphi_state_load(s.state, path, remember, &position));
            assert_int_equal(position, at);
            assert_int_equal(graphi_state_step(s.state), at);
        }
        graphi_state_sha256(s.state, other);
        assert_string_equal(hash, other);
        assert_memory_equal(expected, losses, sizeof losses);
        session_close(&s);
    }
}

/* Without it a checkpoint loaded into a session that has run already would use packed forms of the old weights. */
static void loading_into_a_used_session_continues_the_same(void **state)
{
    float expected[STEPS], losses[STEPS];
    struct session s;
    session_open(&s, (graphi_setting){0}, 7);
    train(&s, 4, expected);
    check_ok(graphi_state_save(s.state, path, 0, NULL, NULL));
    train(&s, STEPS, expected);
    for (int again = 0; again < 2; again++) {
        check_ok(graphi_state_load(s.state, path, NULL, NULL));
        assert_int_equal(graphi_state_step(s.state), 4);
        memcpy(losses, expected, sizeof losses);
        train(&s, STEPS, losses);
        assert_memory_equal(expected, losses, sizeof losses);
    }
    session_close(&s);
}

/* Without it a dropout mask would repeat in every step, or follow the batch's place instead of the sample. */
static void other_keys_give_other_masks(void **state)
{
    float first, second;
    struct session a, b;
    session_open(&a, (graphi_setting){0}, 7);
    session_open(&b, (graphi_setting){0}, 7);
    first = one_step(&a);
    second = one_step(&b);
    assert_true(first == second);
    session_close(&b);
    session_open(&b, (graphi_setting){0}, 7);
    check_ok(graphi_state_save(b.state, path, 0, NULL, NULL));
    graphi_run_set_first_sample(b.run, 0);
    static float x[PIXELS];
    int32_t labels[BATCH] = {0};
    float rate = 0, losses[3];
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i % 7) - 3;
    check_ok(graphi_run_set(b.run, "x", x, sizeof x));
    check_ok(graphi_run_set(b.run, "labels", labels, sizeof labels));
    check_ok(graphi_run_set(b.run, "rate", &rate, sizeof rate));
    const uint64_t steps[] = {0, 1, 0}, samples[] = {0, 0, BATCH};
    for (int i = 0; i < 3; i++) { /* rate 0: the weights stay, but for the decay, which it scales too */
        graphi_state_set_step(b.state, steps[i]);
        graphi_run_set_first_sample(b.run, samples[i]);
        check_ok(graphi_run_execute(b.run));
        check_ok(graphi_run_get(b.run, "loss", &losses[i], sizeof losses[i]));
    }
    assert_true(losses[0] != losses[1]);
    assert_true(losses[0] != losses[2]);
    session_close(&a);
    session_close(&b);
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

struct thing {
    struct session *s;
    graphi_plan *plan;
    graphi_run *run;
    graphi_simulation simulation;
};
typedef graphi_status (*action)(struct thing *t);

static graphi_status save_state(struct thing *t) { return graphi_state_save(t->s->state, path, 0, NULL, NULL); }
static graphi_status load_state(struct thing *t) { return graphi_state_load(t->s->state, path, NULL, NULL); }
static graphi_status save_plan(struct thing *t) { return graphi_plan_save(t->s->plan, path); }
static graphi_status load_plan(struct thing *t) { return graphi_plan_load(t->s->graph, machine, NULL, path, &t->plan); }
static graphi_status simulate(struct thing *t)
{
    return graphi_plan_simulate(t->s->plan, NULL, NULL, path, &t->simulation);
}
static graphi_status tune(struct thing *t)
{
    return graphi_plan_tune(t->s->plan, t->s->state, &(graphi_tune_options){.seconds = 1e-4}, &t->plan);
}
static graphi_status profile(struct thing *t)
{
    return graphi_plan_profile(t->s->plan, t->s->state, NULL, &t->plan);
}
static graphi_status create_run(struct thing *t) { return graphi_run_create(t->s->plan, t->s->state, &t->run); }
static graphi_status trace(struct thing *t)
{
    graphi_status status = graphi_run_trace(t->s->run, true);
    if (!status)
        status = graphi_run_execute(t->s->run);
    if (!status)
        status = graphi_run_write_timeline(t->s->run, path);
    return status;
}

static const struct {
    const char *name;
    action prepare, act;
    int stride; /* of the allocations that fail */
    bool always; /* hashes of the state must not change */
} actions[] = {{"state_save", NULL, save_state, 1, true},        {"state_load", save_state, load_state, 1, true},
               {"plan_save", NULL, save_plan, 1, true},          {"plan_load", save_plan, load_plan, 5, true},
               {"simulate", NULL, simulate, 1, true},            {"tune", NULL, tune, 23, true},
               {"profile", NULL, profile, 7, true},              {"run_create", NULL, create_run, 1, true},
               {"trace", NULL, trace, 1, false}};

/* Without it a machine short of memory would crash, leak, or leave half a result that looks whole. */
static void every_allocation_may_fail(void **state)
{
    struct session s;
    session_open(&s, (graphi_setting){0}, 7);
    (void)one_step(&s);
    for (size_t a = 0; a < sizeof actions / sizeof *actions; a++) {
        graphi_status status = GRAPHI_MEMORY;
        char before[65], after[65];
        if (actions[a].prepare)
            check_ok(actions[a].prepare(&(struct thing){.s = &s}));
        graphi_state_sha256(s.state, before);
        uint64_t step = graphi_state_step(s.state);
        for (long n = 0; status != GRAPHI_OK; n += actions[a].stride) {
            struct thing t = {.s = &s};
            assert_true(n < 200000);
            mem_fail_after(n);
            status = actions[a].act(&t);
            mem_fail_after(-1);
            if (status && status != GRAPHI_MEMORY)
                fail_msg("%s, allocation %ld: %s", actions[a].name, n, graphi_message());
            if (status && (t.plan || t.run))
                fail_msg("%s, allocation %ld: a result in spite of the failure", actions[a].name, n);
            graphi_plan_destroy(t.plan);
            graphi_run_destroy(t.run);
            graphi_state_sha256(s.state, after);
            if (actions[a].always && (strcmp(before, after) != 0 || graphi_state_step(s.state) != step))
                fail_msg("%s, allocation %ld: the state changed", actions[a].name, n);
        }
    }
    session_close(&s);
}

/* Without it a full disk would leave a torn checkpoint or plan. */
static void every_write_may_fail(void **state)
{
    static const action acts[] = {save_state, save_plan};
    struct session s;
    void *before, *after;
    size_t size, again;
    session_open(&s, (graphi_setting){0}, 7);
    for (int a = 0; a < 2; a++) {
        graphi_status status = GRAPHI_IO;
        check_ok(acts[a](&(struct thing){.s = &s}));
        check_ok(file_read(path, 1 << 24, &before, &size));
        (void)one_step(&s);
        for (long n = 0; status != GRAPHI_OK; n++) {
            file_fail_after(n);
            status = acts[a](&(struct thing){.s = &s});
            file_fail_after(-1);
            if (status == GRAPHI_OK)
                break;
            assert_int_equal(status, GRAPHI_IO);
            check_ok(file_read(path, 1 << 24, &after, &again));
            assert_int_equal(size, again);
            assert_memory_equal(before, after, size);
            mem_free(after);
        }
        mem_free(before);
    }
    session_close(&s);
}

/* Without it a damaged step or seed would silently continue another training. */
static void damaged_numbers_are_refused(void **state)
{
    static const char *const edits[][2] = {{"\"graphi.step\":\"1\"", "\"graphi.step\":\"-\""},
                                           {"\"graphi.step\":\"1\"", "\"graphi.step\":\" \""},
                                           {"\"graphi.seed\":\"77\"", "\"graphi.seed\":\"-7\""},
                                           {"\"graphi.seed\":\"77\"", "\"graphi.seed\":\" 7\""},
                                           {"\"graphi.seed\":\"77\"", "\"graphi.seed\":\"7x\""}};
    struct session s;
    char before[65], after[65];
    void *data;
    size_t size;
    session_open(&s, (graphi_setting){0}, 77);
    (void)one_step(&s);
    graphi_state_sha256(s.state, before);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        check_ok(save_state(&(struct thing){.s = &s}));
        check_ok(file_read(path, 1 << 24, &data, &size));
        char *at = memmem(data, size, edits[i][0], strlen(edits[i][0]));
        assert_non_null(at);
        memcpy(at, edits[i][1], strlen(edits[i][1]));
        check_ok(file_replace(path, data, size));
        mem_free(data);
        if (graphi_state_load(s.state, path, NULL, NULL) != GRAPHI_INVALID)
            fail_msg("%s was taken", edits[i][1]);
        graphi_state_sha256(s.state, after);
        assert_string_equal(before, after);
    }
    session_close(&s);
}

static int setup(void **state)
{
    snprintf(path, sizeof path, "/tmp/graphi-test-resume-%d", (int)getpid());
    return open_machine(state);
}

static int teardown(void **state)
{
    char name[80];
    snprintf(name, sizeof name, "%s.json", path);
    unlink(name);
    snprintf(name, sizeof name, "%s.html", path);
    unlink(name);
    unlink(path);
    return close_machines(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_training_gives_the_same_bits),
        cmocka_unit_test(loading_into_a_used_session_continues_the_same),
        cmocka_unit_test(other_keys_give_other_masks),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_write_may_fail),
        cmocka_unit_test(damaged_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
