/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of concurrency-control.txt: sizes, one step of each, learning, the two alternating plans of the GAN.
 * Through the public API alone; small images and widths, so that all of it takes seconds. */
#include "graphi/graphi.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fixture.h"
#include <zlib.h>

#include "folder.h"

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != GRAPHI_OK)                                                                                       \
            fail_msg("%s: %s", #call, graphi_message());                                                               \
    } while (0)

/* One graph, its plan and a run over a state that may be another's. */
struct network {
    graphi_model_info info;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state, *own;
    graphi_run *run;
};

static void network_open(const char *name, const graphi_model_options *options, graphi_state *shared, struct network *n)
{
    *n = (struct network){.state = shared};
    OK(graphi_model_get_info(name, options, &n->info));
    OK(graphi_model_create(name, options, &n->graph));
    OK(graphi_plan_create(n->graph, machine, NULL, &n->plan));
    if (shared)
        OK(graphi_state_extend(shared, n->graph));
    else
        OK(graphi_state_create(n->graph, 7, &n->own));
    n->state = shared ? shared : n->own;
    OK(graphi_run_create(n->plan, n->state, &n->run));
}

static void network_close(struct network *n)
{
    graphi_run_destroy(n->run);
    graphi_state_destroy(n->own);
    graphi_plan_destroy(n->plan);
    graphi_graph_destroy(n->graph);
}

static uint32_t next_random(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u;
}

/* Every input: floats in [-1, 1), integers below `limit`, the learning rate as given. */
static void feed(struct network *n, uint32_t seed, int64_t limit, float rate)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(n->graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        int32_t *cells = malloc(port.bytes);
        for (size_t k = 0; k < port.bytes / 4; k++) {
            uint32_t random = next_random(&seed) >> 8;
            float number = port.rank ? (float)random * 0x1p-23f - 1 : rate;
            if (port.dtype == GRAPHI_F32)
                memcpy(&cells[k], &number, 4);
            else
                cells[k] = (int32_t)(random % (uint32_t)limit);
        }
        OK(graphi_run_set(n->run, port.name, port.dtype, cells, port.bytes));
        free(cells);
    }
}

static float execute(struct network *n)
{
    float loss;
    OK(graphi_run_execute(n->run));
    OK(graphi_run_get(n->run, "loss", GRAPHI_F32, &loss, sizeof loss));
    return loss;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Elements that are learned: of the bare network, without slots, running statistics and carried states. */
static int64_t learned(const char *name, graphi_model_options options)
{
    struct network n = {0};
    const char *parameter;
    int64_t total = 0, dims[GRAPHI_MAX_RANK];
    graphi_dtype dtype;
    int rank;
    options.forward = true;
    OK(graphi_model_create(name, &options, &n.graph));
    OK(graphi_state_create(n.graph, 1, &n.own));
    for (int i = 0; graphi_state_at(n.own, i, &parameter, &dtype, &rank, dims); i++) {
        int64_t count = 1;
        for (int d = 0; d < rank; d++)
            count *= dims[d];
        bool kept =
            ends_with(parameter, "/mean") || ends_with(parameter, "/variance") || strncmp(parameter, "state/", 6) == 0;
        total += kept ? 0 : count;
    }
    network_close(&n);
    return total;
}

/* A wrong width, a missing projection or branch, a bias too many. The numbers are those of other implementations:
 * GoogLeNet as in Caffe, its side classifiers (of 224x224 images) by their published layers, Inception-v3 as in
 * torchvision, the tutorial's PTB models; ResNet-20 and 50 by He's formula with projections and
 * their normalizations. */
static void parameter_counts(void **state)
{
    (void)state;
    assert_int_equal(learned("resnet20", (graphi_model_options){0}), 272538);
    assert_int_equal(learned("inception-v3", (graphi_model_options){0}), 23834568);
    assert_int_equal(learned("inception-v3", (graphi_model_options){.auxiliary = true}), 27161264);
    assert_int_equal(learned("ptb", (graphi_model_options){0}), 4651600);
    assert_int_equal(learned("ptb", (graphi_model_options){.size = "medium"}), 19775200);
    const int64_t googlenet = 6998552, reduced = (512 + 1 + 528 + 1) * 128,
                  side = (2048 + 1) * 1024 + (1024 + 1) * 1000;
    assert_int_equal(learned("googlenet", (graphi_model_options){0}), googlenet);
    assert_int_equal(learned("googlenet", (graphi_model_options){.image = 224, .auxiliary = true}),
                     googlenet + reduced + 2 * side);
    int64_t resnet50 = learned("resnet50", (graphi_model_options){0});
    assert_in_range(resnet50, 755000, 765000);
    int64_t bottleneck = learned("resnet50", (graphi_model_options){.bottleneck = true});
    assert_in_range(bottleneck, 23400000, 23600000);
}

/* A size is another one than the papers': graphi.txt Table 1, Zaremba's three settings, concurrency-control.txt's
 * networks, each of which has one size. A study of other sizes would bear the same names. */
static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *size;
        int batch, layers, image, steps, units, epochs;
        const char *schedule;
    } cases[] = {
        {"lstm", "small", 64, 4, 0, 20, 128, 3, "constant"},
        {"lstm", "medium", 64, 4, 0, 30, 512, 3, "constant"},
        {"lstm", "large", 64, 4, 0, 40, 1024, 3, "constant"},
        {"phased-lstm", "small", 64, 4, 0, 20, 128, 3, "constant"},
        {"phased-lstm", "medium", 64, 4, 0, 30, 512, 3, "constant"},
        {"phased-lstm", "large", 64, 4, 0, 40, 1024, 3, "constant"},
        {"pathnet", "small", 64, 0, 32, 0, 16, 1, "constant"},
        {"pathnet", "medium", 64, 0, 48, 0, 32, 1, "constant"},
        {"pathnet", "large", 64, 0, 64, 0, 48, 1, "constant"},
        {"googlenet", "small", 32, 0, 128, 0, 1, 1, "constant"},
        {"googlenet", "medium", 32, 0, 192, 0, 2, 1, "constant"},
        {"googlenet", "large", 32, 0, 256, 0, 4, 1, "constant"},
        {"ptb", "small", 20, 2, 0, 20, 200, 13, "step:0.5:1e:4e"},
        {"ptb", "medium", 20, 2, 0, 35, 650, 39, "step:0.8:1e:6e"},
        {"ptb", "large", 20, 2, 0, 35, 1500, 55, "step:0.869565217:1e:14e"},
        {"resnet20", "large", 64, 20, 32, 0, 16, 182, "multi-step:0.1:91e:136e:182e"},
        {"resnet50", "large", 64, 50, 32, 0, 16, 182, "multi-step:0.1:91e:136e:182e"},
        {"dcgan", "large", 64, 0, 28, 0, 64, 25, "constant"},
        {"inception-v3", "large", 16, 0, 299, 0, 1, 100, "exponential:0.94:2e"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_model_info info;
        OK(graphi_model_get_info(cases[i].name, &(graphi_model_options){.size = cases[i].size}, &info));
        const int64_t is[] = {info.batch, info.layers, info.image, info.steps, info.units, info.epochs};
        const int64_t want[] = {cases[i].batch, cases[i].layers, cases[i].image,
                                cases[i].steps, cases[i].units,  cases[i].epochs};
        for (size_t k = 0; k < sizeof is / sizeof *is; k++)
            if (is[k] != want[k])
                fail_msg("%s %s: number %zu is %lld", cases[i].name, cases[i].size, k, (long long)is[k]);
        assert_string_equal(info.schedule, cases[i].schedule);
    }
}

/* A parameter that lies within the bounds, but not within nine tenths of them. */
static void check_range(const graphi_state *state, const char *name, size_t count, double low, double high)
{
    float *value = malloc(count * sizeof *value);
    double least = high, most = low;
    OK(graphi_state_get(state, name, value, count * sizeof *value));
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, (double)value[i]);
        most = fmax(most, (double)value[i]);
    }
    free(value);
    const double slack = 1e-6 * (high - low), reach = 0.05 * (high - low);
    if (least < low - slack || most > high + slack || least > low + reach || most < high - reach)
        fail_msg("%s lies in [%g, %g], expected in [%g, %g] and near its ends", name, least, most, low, high);
}

/* Weights so wide that gates saturate, gates of a PhasedLSTM that never open or always, or periods alike. */
static void initial_values(void **state)
{
    (void)state;
    enum { UNITS = 256 };
    static const char *const weights[] = {"layer0/w_i", "layer3/u_o", "layer2/b_f"};
    struct network n = {0};
    float period[UNITS], ratio[UNITS];
    double sum = 0;
    OK(graphi_model_create("phased-lstm", &(graphi_model_options){.units = UNITS, .steps = 1}, &n.graph));
    OK(graphi_state_create(n.graph, 5, &n.own));
    for (int i = 0; i < 3; i++)
        check_range(n.own, weights[i], i < 2 ? UNITS * UNITS : UNITS, i < 2 ? -0.01 : 0, i < 2 ? 0.01 : 0);
    check_range(n.own, "layer1/shift", UNITS, 0, 1);
    OK(graphi_state_get(n.own, "layer1/period", period, sizeof period));
    OK(graphi_state_get(n.own, "layer1/ratio", ratio, sizeof ratio));
    for (int i = 0; i < UNITS; i++) {
        assert_true(period[i] >= 1 && period[i] <= 1000 && ratio[i] == 0.1f);
        sum += log((double)period[i]);
    }
    assert_true(fabs(sum / UNITS - log(1000) / 2) < 0.5); /* uniform ones: 5.9 */
    network_close(&n);
    OK(graphi_model_create("lstm", &(graphi_model_options){.units = UNITS, .steps = 1}, &n.graph));
    OK(graphi_state_create(n.graph, 5, &n.own));
    check_range(n.own, "layer0/w_i", UNITS * UNITS, -0.01, 0.01);
    network_close(&n);
}

/* A setting of Zaremba's with another one's range, dropout or clipping. */
static void settings_of_ptb(void **state)
{
    (void)state;
    static const struct {
        const char *size, *kept, *clip;
        double range;
    } cases[] = {{"small", NULL, " = 5\n", 0.1},
                 {"medium", ") '", " = 5\n", 0.05}, /* a half, the default, is not printed */
                 {"large", ") {keep=0.35} '", " = 10\n", 0.04}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct network n = {0};
        char *text;
        const graphi_model_options options = {.size = cases[i].size, .steps = 2, .units = 32, .vocabulary = 100};
        OK(graphi_model_create("ptb", &options, &n.graph));
        OK(graphi_state_create(n.graph, 5, &n.own));
        OK(graphi_graph_print(n.graph, GRAPHI_PRINT_TEXT, &text));
        const char *dropout = strstr(text, " = dropout(");
        assert_true(!dropout == !cases[i].kept);
        if (dropout)
            assert_ptr_equal(strstr(dropout, cases[i].kept), strchr(dropout, ')'));
        assert_non_null(strstr(text, cases[i].clip));
        graphi_free(text);
        check_range(n.own, "layer1/u", 32 * 128, -cases[i].range, cases[i].range);
        check_range(n.own, "embedding/table", 32 * 100, -cases[i].range, cases[i].range);
        check_range(n.own, "output/weight", 32 * 100, -cases[i].range, cases[i].range);
        network_close(&n);
    }
}

/* A classifier that keeps what it should drop, a decay of weights that nobody set; evaluation that drops at random. */
static void terms_of_training(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        graphi_model_options options;
        const char *has[2];
    } cases[] = {
        {"googlenet", {.batch = 2, .image = 8, .classes = 5, .auxiliary = true}, {"{keep=0.6}", "{keep=0.3}"}},
        {"inception-v3", {.batch = 2, .image = 75, .classes = 5}, {"{keep=0.8}", " = 3.9999999e-05\n"}},
        {"resnet20", {.batch = 2, .image = 8}, {" = 0.000199999995\n", "/momentum"}},
        {"ptb", {.batch = 2, .steps = 2, .units = 8, .size = "large"}, {"{keep=0.35}", " = 10\n"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            graphi_model_options options = cases[i].options;
            graphi_graph *graph;
            char *text;
            options.task = "real";
            options.evaluation = evaluation;
            OK(graphi_model_create(cases[i].name, &options, &graph));
            OK(graphi_graph_print(graph, GRAPHI_PRINT_TEXT, &text));
            for (int k = 0; k < 2; k++)
                if ((strstr(text, cases[i].has[k]) != NULL) == (evaluation == 1))
                    fail_msg("%s: found%s '%s' in %s", cases[i].name, evaluation ? "" : " no", cases[i].has[k],
                             evaluation ? "evaluation" : "training");
            if (evaluation)
                assert_null(strstr(text, " = dropout("));
            graphi_free(text);
            graphi_graph_destroy(graph);
        }
}

/* Dropout thins what goes up, not what goes on in time: a state that is carried with zeros forgets at every step. */
static void states_are_carried_whole(void **state)
{
    (void)state;
    enum { BATCH = 2, UNITS = 32 };
    const graphi_model_options options = {
        .batch = BATCH, .steps = 3, .units = UNITS, .vocabulary = 50, .size = "large"};
    static const char *const names[] = {"state/h0", "state/c0", "state/h1", "state/c1"};
    struct network n;
    network_open("ptb", &options, NULL, &n);
    feed(&n, 3, 50, 0.1f);
    execute(&n);
    for (int i = 0; i < 4; i++) {
        float carried[BATCH * UNITS];
        OK(graphi_state_get(n.state, names[i], carried, sizeof carried));
        for (int k = 0; k < BATCH * UNITS; k++)
            assert_true(carried[k] != 0);
    }
    network_close(&n);
}

/* Defaults that do not follow the batch, and options that a network does not have. */
static void settings(void **state)
{
    (void)state;
    graphi_model_info info;
    OK(graphi_model_get_info("resnet50", &(graphi_model_options){.batch = 128, .size = "large"}, &info));
    assert_true(fabs(info.rate - 0.1) < 1e-12);
    assert_int_equal(graphi_model_get_info("resnet20", &(graphi_model_options){.role = "sample"}, &info), GRAPHI_USAGE);
    assert_string_equal(graphi_message(), "USAGE: role: found it for resnet20, expected one of dcgan");
    assert_int_equal(graphi_model_get_info("lstm", &(graphi_model_options){.units = -1}, &info), GRAPHI_INVALID);
    assert_int_equal(graphi_model_get_info("dcgan", &(graphi_model_options){.role = "critic"}, &info), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "discriminator, generator or sample"));
    assert_int_equal(graphi_model_get_info("ptb", &(graphi_model_options){.steps = 1000}, &info), GRAPHI_INVALID);
}

/* A network that does not compile, or whose step gives NaN, in training or evaluation form, bench or real task. */
static void every_network_runs_a_step(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        graphi_model_options options;
    } cases[] = {
        {"resnet20", {.batch = 2, .image = 8, .units = 4}},
        {"resnet20", {.batch = 2, .image = 8, .units = 4, .bottleneck = true}},
        {"resnet50", {.batch = 2, .image = 8, .units = 4}},
        {"resnet50", {.batch = 2, .image = 8, .units = 2, .bottleneck = true}},
        {"inception-v3", {.batch = 1, .image = 75, .classes = 5}},
        {"inception-v3", {.batch = 2, .image = 80, .classes = 5, .auxiliary = true, .task = "real"}},
        {"googlenet", {.batch = 2, .image = 8, .classes = 5, .auxiliary = true, .task = "real"}},
        {"dcgan", {.batch = 3, .units = 4}},
        {"dcgan", {.batch = 3, .units = 4, .role = "generator"}},
        {"ptb", {.batch = 2, .steps = 3, .units = 8, .vocabulary = 30}},
        {"ptb", {.batch = 2, .steps = 3, .units = 8, .vocabulary = 30, .size = "medium", .task = "real"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct network n;
            graphi_model_options options = cases[i].options;
            options.evaluation = evaluation;
            network_open(cases[i].name, &options, NULL, &n);
            feed(&n, 3, n.info.classes ? n.info.classes : n.info.vocabulary, 0.01f);
            float loss = execute(&n);
            if (!isfinite(loss))
                fail_msg("%s %zu: loss %g", cases[i].name, i, (double)loss);
            network_close(&n);
        }
}

/* An update with the wrong sign or on the wrong parameter: the loss on a fixed batch of noise must fall to a part. */
static void resnet_learns(void **state)
{
    (void)state;
    struct network n;
    network_open("resnet20", &(graphi_model_options){.batch = 8, .image = 8, .units = 8, .task = "real"}, NULL, &n);
    feed(&n, 11, 10, 0.02f);
    float first = execute(&n), last = first;
    for (int i = 0; i < 20; i++)
        last = execute(&n);
    assert_true(last < 0.5f * first);
    network_close(&n);
}

/* Weights too wide, targets in the wrong order, or the sum over time reported as the loss: an untrained model knows
 * nothing, so its loss is ln(V). Then one batch is learned by heart. */
static void ptb_starts_at_the_logarithm_and_learns(void **state)
{
    (void)state;
    struct network n;
    network_open("ptb", &(graphi_model_options){.batch = 4, .steps = 5, .units = 32, .vocabulary = 100}, NULL, &n);
    feed(&n, 5, 100, 1);
    float first = execute(&n), last = first;
    assert_true(fabs(first - log(100)) < 0.1);
    for (int i = 0; i < 40; i++)
        last = execute(&n);
    assert_true(last < 0.7f * first);
    network_close(&n);
}

static void get(const graphi_state *state, const char *name, float *data, size_t count)
{
    OK(graphi_state_get(state, name, data, count * sizeof *data));
}

/* Time began anew in every window: units whose rhythm is longer than a window never opened, or never closed, although h
 * and c went on. */
static void time_goes_on_over_windows(void **state)
{
    (void)state;
    enum { UNITS = 4, STEPS = 3, WINDOWS = 700 };
    const graphi_model_options options = {
        .task = "real", .batch = 1, .steps = STEPS, .units = UNITS, .vocabulary = 10, .evaluation = true};
    const float zeros[UNITS] = {0};
    struct network n;
    float period[UNITS], turns[UNITS], first[UNITS], c[UNITS];
    network_open("phased-lstm", &options, NULL, &n);
    feed(&n, 1, 10, 0);
    get(n.state, "layer0/period", period, UNITS);
    for (int i = 1; i <= WINDOWS; i++) {
        OK(graphi_state_set(n.state, "eval/state/c0", zeros, sizeof zeros));
        OK(graphi_state_set(n.state, "eval/state/h0", zeros, sizeof zeros));
        execute(&n);
        get(n.state, "eval/state/turns0", turns, UNITS);
        get(n.state, "eval/state/c0", i == 1 ? first : c, UNITS);
        for (int u = 0; u < UNITS; u++) {
            double error = fabs((double)turns[u] - fmod(STEPS * i / (double)period[u], 1));
            assert_true(turns[u] >= 0 && turns[u] < 1 && fmin(error, 1 - error) < 1e-4);
        }
        assert_true(i == 1 || memcmp(c, first, sizeof c) != 0); /* with all else the same */
    }
    network_close(&n);
}

/* Evaluation that nobody asks for logits would hold them twice, or beside what came before them. */
static void logits_of_a_text_take_no_further_memory(void **state)
{
    static const char *const networks[] = {"ptb", "lstm", "phased-lstm"};
    static const graphi_plan_options alone = {.outputs = "loss"};
    for (int i = 0; i < 3; i++) {
        struct network n = {0};
        graphi_plan *plan;
        graphi_plan_info both, loss;
        OK(graphi_model_create(networks[i], &(graphi_model_options){.task = "real", .evaluation = true}, &n.graph));
        assert_true(graphi_find(n.graph, "logits") != GRAPHI_NONE);
        OK(graphi_plan_create(n.graph, machine, NULL, &n.plan));
        OK(graphi_plan_create(n.graph, machine, &alone, &plan));
        graphi_plan_get_info(n.plan, &both);
        graphi_plan_get_info(plan, &loss);
        assert_true(both.arena_bytes <= loss.arena_bytes + loss.arena_bytes / 50);
        graphi_plan_destroy(plan);
        network_close(&n);
    }
}

/* An update that touches the other player's parameters, one optimizer's counter used by both, samples outside [0, 1],
 * running statistics that stand still, or that an evaluation moves. */
static void gan_alternates(void **state)
{
    (void)state;
    enum { UNITS = 4, BATCH = 10, SIDE = 28 };
    graphi_model_options options = {.batch = BATCH, .units = UNITS, .task = "real"};
    struct network d, g, judged, sample;
    network_open("dcgan", &options, NULL, &d);
    options.role = "generator";
    network_open("dcgan", &options, d.state, &g);
    options.evaluation = true;
    network_open("dcgan", &options, d.state, &judged);
    options.evaluation = false;
    options.role = "sample";
    network_open("dcgan", &options, d.state, &sample);
    feed(&d, 1, 10, 2e-4f);
    feed(&g, 2, 10, 2e-4f);
    feed(&judged, 2, 10, 0);
    feed(&sample, 3, 10, 0);
    static float before[2][5 * 5 * 11 * 11], after[2][5 * 5 * 11 * 11];
    const size_t dw = 5 * 5 * 11 * 11, gw = 5 * 5 * (2 * UNITS + 10);
    float mean[2 * UNITS], steps[2];
    for (int i = 0; i < 5; i++) {
        get(d.state, "discriminator/conv1/weight", before[0], dw);
        get(d.state, "generator/conv2/weight", before[1], gw);
        assert_true(isfinite(execute(&d)));
        get(d.state, "discriminator/conv1/weight", after[0], dw);
        get(d.state, "generator/conv2/weight", after[1], gw);
        assert_memory_not_equal(before[0], after[0], dw * sizeof(float));
        assert_memory_equal(before[1], after[1], gw * sizeof(float));
        assert_true(isfinite(execute(&g)));
        assert_true(isfinite(execute(&g)));
        get(d.state, "discriminator/conv1/weight", before[0], dw);
        get(d.state, "generator/conv2/weight", before[1], gw);
        assert_memory_equal(before[0], after[0], dw * sizeof(float));
        assert_memory_not_equal(before[1], after[1], gw * sizeof(float));
    }
    get(d.state, "discriminator/adam/step", &steps[0], 1);
    get(d.state, "generator/adam/step", &steps[1], 1);
    assert_true(steps[0] == 5 && steps[1] == 10);
    get(d.state, "generator/conv1/mean", mean, 2 * UNITS);
    assert_true(mean[0] != 0);
    execute(&judged);
    get(d.state, "generator/conv1/mean", after[0], 2 * UNITS);
    assert_memory_equal(mean, after[0], sizeof mean);
    static float images[BATCH * SIDE * SIDE];
    OK(graphi_run_execute(sample.run));
    OK(graphi_run_get(sample.run, "images", GRAPHI_F32, images, sizeof images));
    for (size_t i = 0; i < BATCH * SIDE * SIDE; i++)
        assert_true(images[i] >= 0 && images[i] <= 1);
    network_close(&sample);
    network_close(&judged);
    network_close(&g);
    network_close(&d);
}

enum { DEEP = 3, WIDE = 2, SMALL = 3, LARGE = 6 };

/* Half the squares of a transposed convolution of x, with its gradients. */
static graphi_graph *transposed(void)
{
    graphi_graph *graph;
    OK(graphi_graph_create(&graph));
    graphi_initializer init = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};
    graphi_value wrt[2], gradient[2];
    wrt[0] = graphi_parameter(graph, "x", GRAPHI_F32, 4, (int64_t[]){2, SMALL, SMALL, DEEP}, &init);
    wrt[1] = graphi_parameter(graph, "w", GRAPHI_F32, 4, (int64_t[]){5, 5, WIDE, DEEP}, &init);
    graphi_value y = graphi_conv2d_backward_data(graph, wrt[0], wrt[1], GRAPHI_LIST(2, 2), GRAPHI_LIST(1, 1, 2, 2),
                                                 GRAPHI_LIST(1, 1), 1, GRAPHI_LIST(LARGE, LARGE));
    float half = 0.5f;
    graphi_value loss = graphi_reduce_sum(graph, graphi_square(graph, y), NULL, 0, 0);
    loss = graphi_mul(graph, loss, graphi_constant(graph, GRAPHI_F32, 0, NULL, &half));
    OK(graphi_gradients(graph, loss, 2, wrt, gradient));
    graphi_output(graph, "loss", loss);
    graphi_output(graph, "x'", gradient[0]);
    graphi_output(graph, "w'", gradient[1]);
    return graph;
}

static void check_gradient(struct network *n, const char *name, const char *gradient, size_t count)
{
    float *values = malloc(count * sizeof *values), *analytic = malloc(count * sizeof *analytic);
    OK(graphi_run_execute(n->run));
    OK(graphi_run_get(n->run, gradient, GRAPHI_F32, analytic, count * sizeof *analytic));
    get(n->state, name, values, count);
    for (size_t i = 0; i < count; i++) {
        const float old = values[i], step = 0.25f; /* the loss is a quadratic: any step is exact */
        float loss[2];
        for (int side = 0; side < 2; side++) {
            values[i] = side ? old + step : old - step;
            OK(graphi_state_set(n->state, name, values, count * sizeof *values));
            loss[side] = execute(n);
        }
        values[i] = old;
        double numeric = (double)(loss[1] - loss[0]) / (2 * (double)step);
        if (fabs(numeric - (double)analytic[i]) > 2e-3 * (1 + fabs(numeric)))
            fail_msg("%s[%zu]: gradient %g, by differences %g", name, i, (double)analytic[i], numeric);
    }
    OK(graphi_state_set(n->state, name, values, count * sizeof *values));
    free(values);
    free(analytic);
}

/* The generator's layer with its uneven padding: wrong gradients for it would train to something, only worse. */
static void gradients_of_transposed_convolution(void **state)
{
    (void)state;
    struct network n = {.graph = transposed()};
    OK(graphi_plan_create(n.graph, machine, NULL, &n.plan));
    OK(graphi_state_create(n.graph, 3, &n.own));
    n.state = n.own;
    OK(graphi_run_create(n.plan, n.state, &n.run));
    check_gradient(&n, "x", "x'", 2 * SMALL * SMALL * DEEP);
    check_gradient(&n, "w", "w'", 5 * 5 * WIDE * DEEP);
    network_close(&n);
}

static uint32_t load32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Checks signature, lengths and sums of a PNG's chunks, and that the pixels are `high` unfiltered rows of `wide`. */
static void check_png(const char *path, uint32_t wide, uint32_t high)
{
    static unsigned char bytes[1 << 16], raw[1 << 16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    size_t at = 8, chunks = 0;
    fclose(file);
    assert_memory_equal(bytes, "\x89PNG\r\n\x1a\n", 8);
    for (; at + 12 <= size; chunks++) {
        const uint32_t length = load32(bytes + at);
        uLongf raw_size = sizeof raw;
        assert_true(at + 12 + length <= size);
        assert_int_equal(load32(bytes + at + 8 + length), crc32(0, bytes + at + 4, length + 4));
        if (memcmp(bytes + at + 4, "IHDR", 4) == 0) {
            assert_int_equal(load32(bytes + at + 8), wide);
            assert_int_equal(load32(bytes + at + 12), high);
        }
        if (memcmp(bytes + at + 4, "IDAT", 4) == 0) {
            assert_int_equal(uncompress(raw, &raw_size, bytes + at + 8, length), Z_OK);
            assert_int_equal(raw_size, (size_t)high * (wide + 1));
            for (uint32_t y = 0; y < high; y++)
                assert_int_equal(raw[y * (wide + 1)], 0);
        }
        at += 12 + length;
    }
    assert_int_equal(at, size);
    assert_int_equal(chunks, 3);
}

/* The command that trains the GAN writes samples that nothing can open, or a resumed training goes another way. */
static void command_trains_a_gan(void **state)
{
    (void)state;
    enum { IMAGES = 40, PIXELS = 28 * 28 };
    static unsigned char images[16 + IMAGES * PIXELS], labels[8 + IMAGES];
    static const unsigned char image_head[] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, 28, 0, 0, 0, 28};
    static const unsigned char label_head[] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    const char *command = getenv("GRAPHI_BIN");
    struct folder folder;
    char line[1200];
    if (!command || access(command, X_OK) != 0)
        skip();
    memcpy(images, image_head, sizeof image_head);
    memcpy(labels, label_head, sizeof label_head);
    for (size_t i = 0; i < IMAGES * PIXELS; i++)
        images[16 + i] = (unsigned char)(i * 7 % 251);
    for (int i = 0; i < IMAGES; i++)
        labels[8 + i] = (unsigned char)(i % 10);
    folder_make(&folder);
    folder_write(&folder, "train-images-idx3-ubyte", images, sizeof images);
    folder_write(&folder, "train-labels-idx1-ubyte", labels, sizeof labels);
    static const char *const runs[] = {"--steps 2 --json '%s/a.json'", "--steps 1 --checkpoint '%s/c'",
                                       "--steps 2 --checkpoint '%s/c' --resume --json '%s/b.json'"};
    for (int i = 0; i < 3; i++) {
        char more[600];
        snprintf(more, sizeof more, runs[i], folder.path, folder.path);
        snprintf(line, sizeof line,
                 "cd '%s' && '%s' train dcgan --data . --batch 10 --tune 0 --quiet --out . %s >/dev/null", folder.path,
                 command, more);
        assert_int_equal(system(line), 0);
    }
    check_png(folder_name(&folder, "samples-000002.png"), 10 * 29 + 1, 29 + 1);
    snprintf(line, sizeof line, "cd '%s' && grep -h state_sha256 a.json b.json | sort -u | wc -l | grep -qx 1",
             folder.path);
    assert_int_equal(system(line), 0);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_counts),
        cmocka_unit_test(sizes),
        cmocka_unit_test(initial_values),
        cmocka_unit_test(settings_of_ptb),
        cmocka_unit_test(terms_of_training),
        cmocka_unit_test(states_are_carried_whole),
        cmocka_unit_test(settings),
        cmocka_unit_test(every_network_runs_a_step),
        cmocka_unit_test(resnet_learns),
        cmocka_unit_test(ptb_starts_at_the_logarithm_and_learns),
        cmocka_unit_test(time_goes_on_over_windows),
        cmocka_unit_test(logits_of_a_text_take_no_further_memory),
        cmocka_unit_test(gan_alternates),
        cmocka_unit_test(gradients_of_transposed_convolution),
        cmocka_unit_test(command_trains_a_gan),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
