/* SPDX-License-Identifier: Apache-2.0 */
/* The networks against an independent framework: tests/data/reference.json (or the file that is given:
 * reference_workloads.json) holds what tools/reference.py (reference_workloads.py) computed
 * with PyTorch in float64 (losses, and a few statistics of every gradient or parameter's change). Both sides fill
 * parameters and inputs from their names (fill.h). Everything here goes through the public API.
 *
 * Tolerances. Parameters are compared by their change since the start, so that an update left out is an error of 1 and
 * not of the learning rate. Where rounding can be told from a mistake differs by network: a ReLU or a maximum that
 * falls the other way, and Adam where gradients vanish, make much of it. So the file says how far PyTorch's own float32
 * is off from its float64, per case for losses and per parameter for statistics. Ten times that is allowed, and at
 * least 1e-5 for losses (float32 sums of some thousand products) and 5e-3 for statistics, unless the case says more. */
#include "graphi/graphi.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fixture.h"

#include "fill.h"

enum { MAX_STEPS = 10 };
static const double loss_tolerance = 1e-5, rounding_factor = 10;
static double statistic_tolerance, looseness; /* of the case */
/* Fast convolutions may err four times as much as direct ones, and a maximum or a ReLU that flips is a jump in all it
 * feeds (seen: 15). */
static const double fast_looseness = 30, loosest = 0.5;

static const char *path = "tests/data/reference.json";
static json_t *root;
static int mismatches;
static char first_mismatch[240];

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != GRAPHI_OK)                                                                                       \
            fail_msg("%s: %s", #call, graphi_message());                                                               \
    } while (0)

/* How a case is run. */
struct way {
    const char *name;
    graphi_setting setting;
    bool merged;
    bool no_passes;
    bool direct; /* convolutions by the direct algorithm alone */
};

/* What a run of a case gave. */
struct outcome {
    double loss[MAX_STEPS];
    double evaluation;
    char sha256[65];
};

/* One case's graph with what is needed to run it. */
struct network {
    const json_t *expected;
    graphi_model_options options;
    graphi_model_info info;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_run *run;
};

/* --- set-up --- */

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static graphi_model_options options_of(const json_t *test, const struct way *way)
{
    const json_t *o = json_object_get(test, "options");
    return (graphi_model_options){
        .task = json_string_value(json_object_get(o, "task")),
        .role = json_string_value(json_object_get(o, "role")),
        .bottleneck = json_is_true(json_object_get(o, "bottleneck")),
        .merged = way->merged,
        .batch = integer(o, "batch"),
        .image = integer(o, "image"),
        .classes = integer(o, "classes"),
        .vocabulary = integer(o, "vocabulary"),
        .steps = integer(o, "steps"),
        .units = integer(o, "units"),
        .batch_norm = json_is_true(json_object_get(o, "batch_norm")),
        .lrn = json_is_true(json_object_get(o, "lrn")),
        .auxiliary = json_is_true(json_object_get(o, "auxiliary")),
    };
}

static bool is_recurrent(const json_t *test)
{
    return strstr(json_string_value(json_object_get(test, "network")), "lstm") != NULL;
}

static void network_open(const json_t *test, const struct way *way, bool evaluation, struct network *n)
{
    const char *name = json_string_value(json_object_get(test, "network"));
    *n = (struct network){.expected = test, .options = options_of(test, way)};
    n->options.evaluation = evaluation;
    OK(graphi_model_get_info(name, &n->options, &n->info));
    OK(graphi_model_create(name, &n->options, &n->graph));
    graphi_plan_options options = {.setting = way->setting, .conv_error = way->direct ? 1 : 0};
    if (way->no_passes)
        options.disable = "all";
    OK(graphi_plan_create(n->graph, machine, &options, &n->plan));
}

static void network_close(struct network *n)
{
    graphi_run_destroy(n->run);
    graphi_plan_destroy(n->plan);
    graphi_graph_destroy(n->graph);
}

static int64_t count_of(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    return count;
}

/* A merged parameter "layer0/w" has the columns of "layer0/w_i", "layer0/w_f" and so on side by side. */
static void fill_merged(const char *name, int rank, const int64_t *dims, double gain, float *data)
{
    int64_t rows = rank == 2 ? dims[0] : 1, cols = dims[rank - 1] / 4, part_dims[] = {rows, cols};
    float *part = malloc(sizeof *part * (size_t)(rows * cols));
    for (int g = 0; g < 4; g++) {
        char gate[96];
        double range[2] = {0};
        snprintf(gate, sizeof gate, "%s_%c", name, "ifgo"[g]);
        fill_range(gate, rank, rank == 2 ? part_dims : part_dims + 1, gain, range);
        fill_uniform(gate, range[0], range[1], rows * cols, part);
        for (int64_t r = 0; r < rows; r++)
            memcpy(data + r * 4 * cols + g * cols, part + r * cols, sizeof *part * (size_t)cols);
    }
    free(part);
}

static void fill_parameters(const struct network *n, graphi_state *state)
{
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    double gain = json_number_value(json_object_get(n->expected, "gain"));
    for (int i = 0; graphi_state_at(state, i, &name, &dtype, &rank, dims); i++) {
        double range[2];
        if (!fill_range(name, rank, dims, gain, range))
            continue;
        int64_t count = count_of(rank, dims);
        float *data = malloc(sizeof *data * (size_t)count);
        const char *last = strrchr(name, '/') + 1;
        if (n->options.merged && strncmp(name, "layer", 5) == 0 && strlen(last) == 1)
            fill_merged(name, rank, dims, gain, data);
        else
            fill_uniform(name, range[0], range[1], count, data);
        OK(graphi_state_set(state, name, data, sizeof *data * (size_t)count));
        free(data);
    }
}

/* Feeds all inputs; step < 0: the case has one step, whose inputs have no number. */
static void feed(struct network *n, int step)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(n->graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        const char *name = port.name;
        int64_t count = count_of(port.rank, port.dims);
        char numbered[96];
        snprintf(numbered, sizeof numbered, step < 0 ? "%s" : "%s#%d", name, step);
        union {
            float f;
            int32_t i;
        } *data = malloc(sizeof *data * (size_t)count);
        if (strcmp(name, "learning_rate") == 0)
            data->f = (float)json_number_value(json_object_get(n->expected, "rate"));
        else if (port.dtype == GRAPHI_I32)
            fill_integers(numbered, strcmp(name, "labels") ? n->info.vocabulary : n->info.classes, count, &data->i);
        else if (strcmp(name, "time") == 0)
            fill_uniform(numbered, 0, 20, count, &data->f);
        else
            fill_uniform(numbered, -1, 1, count, &data->f);
        OK(graphi_run_set(n->run, name, port.dtype, data, sizeof *data * (size_t)count));
        free(data);
    }
}

static double run_once(struct network *n, int step)
{
    float loss;
    feed(n, step);
    OK(graphi_run_execute(n->run));
    OK(graphi_run_get(n->run, "loss", GRAPHI_F32, &loss, sizeof loss));
    return (double)loss;
}

/* --- comparing --- */

static void compare(const char *what, double found, double expected, double scale, double tolerance)
{
    double error = found == expected ? 0 : fabs(found - expected) / fmax(scale, fabs(expected));
    if (error <= tolerance)
        return;
    if (mismatches++ == 0)
        snprintf(first_mismatch, sizeof first_mismatch,
                 "%s: found %.9g, expected %.9g: off by %.2g, at most %.2g allowed", what, found, expected, error,
                 tolerance);
}

/* `expected`: sum, sum of magnitudes, the first four elements, what float32 is off. Scales: a sum can cancel, so it is
 * held against the sum of magnitudes; an element against the mean magnitude. */
static void compare_statistics(const char *name, const float *data, int64_t count, const json_t *expected)
{
    double sum = 0, magnitude = 0;
    char what[160];
    for (int64_t i = 0; i < count; i++) {
        sum += (double)data[i];
        magnitude += fabs((double)data[i]);
    }
    double wanted = json_number_value(json_array_get(expected, 1));
    size_t last = json_array_size(expected) - 1;
    double rounding = json_number_value(json_array_get(expected, last));
    double tolerance = fmax(statistic_tolerance, rounding_factor * rounding);
    tolerance = fmin(looseness * tolerance, fmax(tolerance, loosest));
    snprintf(what, sizeof what, "%s: sum", name);
    compare(what, sum, json_number_value(json_array_get(expected, 0)), wanted, tolerance);
    snprintf(what, sizeof what, "%s: sum of magnitudes", name);
    compare(what, magnitude, wanted, 0, tolerance);
    for (size_t i = 2; i < last; i++) {
        snprintf(what, sizeof what, "%s[%d]", name, (int)i - 2);
        compare(what, (double)data[i - 2], json_number_value(json_array_get(expected, i)), wanted / (double)count,
                tolerance);
    }
}

/* Changes from `start`, a state of the same parameters, to `state`. */
static void compare_changes(const json_t *test, const graphi_state *start, const graphi_state *state)
{
    const json_t *all = json_object_get(test, "changes");
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    size_t seen = 0;
    for (int i = 0; graphi_state_at(state, i, &name, &dtype, &rank, dims); i++) {
        const json_t *expected = json_object_get(all, name);
        if (!expected)
            continue; /* optimizer slots */
        int64_t count = count_of(rank, dims);
        float *data = malloc(2 * sizeof *data * (size_t)count), *old = data + count;
        OK(graphi_state_get(state, name, data, sizeof *data * (size_t)count));
        OK(graphi_state_get(start, name, old, sizeof *data * (size_t)count));
        for (int64_t k = 0; k < count; k++)
            data[k] -= old[k];
        compare_statistics(name, data, count, expected);
        free(data);
        seen++;
    }
    assert_int_equal(seen, json_object_size(all));
}

static void compare_gradients(struct network *n)
{
    const char *name;
    json_t *expected;
    json_object_foreach(json_object_get(n->expected, "gradients"), name, expected)
    {
        char output[96];
        snprintf(output, sizeof output, "gradient/%s", name);
        graphi_dtype dtype;
        int rank;
        int64_t dims[GRAPHI_MAX_RANK];
        OK(graphi_value_type(n->graph, graphi_find(n->graph, name), &dtype, &rank, dims));
        int64_t count = count_of(rank, dims);
        float *data = malloc(sizeof *data * (size_t)count);
        OK(graphi_run_get(n->run, output, GRAPHI_F32, data, sizeof *data * (size_t)count));
        compare_statistics(output, data, count, expected);
        free(data);
    }
}

static void compare_losses(const json_t *test, const struct outcome *found)
{
    const json_t *losses = json_object_get(test, "loss"), *evaluation = json_object_get(test, "evaluation");
    double tolerance =
        looseness * fmax(loss_tolerance, rounding_factor * json_number_value(json_object_get(test, "rounding")));
    for (size_t i = 0; i < json_array_size(losses); i++) {
        char what[32];
        snprintf(what, sizeof what, "loss %d", (int)i);
        compare(what, found->loss[i], json_number_value(json_array_get(losses, i)), 0, tolerance);
    }
    if (evaluation)
        compare("evaluation", found->evaluation, json_number_value(evaluation), 0, tolerance);
}

/* The graph of evaluation over the state that training left: forward only, running statistics, fresh carried states. */
static double evaluate(const json_t *test, const struct way *way, graphi_state *state, int step)
{
    struct network n;
    network_open(test, way, true, &n);
    OK(graphi_state_extend(state, n.graph));
    OK(graphi_run_create(n.plan, state, &n.run));
    double loss = run_once(&n, step);
    network_close(&n);
    return loss;
}

/* Runs a case one way and compares all that is known: counts mismatches. */
static void compare_case(const json_t *test, const struct way *way, struct outcome *outcome)
{
    struct network n;
    graphi_state *state, *start;
    bool bench = json_object_get(test, "gradients");
    int steps = (int)json_array_size(json_object_get(test, "loss"));
    *outcome = (struct outcome){0};
    mismatches = 0;
    const json_t *tolerance = json_object_get(test, "tolerance");
    statistic_tolerance = tolerance ? json_number_value(tolerance) : 5e-3;
    looseness = way->direct || is_recurrent(test) ? 1 : fast_looseness;
    network_open(test, way, false, &n);
    OK(graphi_state_create(n.graph, 1, &state));
    OK(graphi_state_create(n.graph, 1, &start));
    fill_parameters(&n, state);
    fill_parameters(&n, start);
    OK(graphi_run_create(n.plan, state, &n.run));
    for (int i = 0; i < steps; i++)
        outcome->loss[i] = run_once(&n, bench ? -1 : i);
    graphi_state_sha256(state, outcome->sha256);
    if (!way->merged && bench)
        compare_gradients(&n);
    if (!way->merged && !bench)
        compare_changes(test, start, state);
    if (!bench)
        outcome->evaluation = evaluate(test, way, state, steps);
    network_close(&n);
    graphi_state_destroy(state);
    graphi_state_destroy(start);
    compare_losses(test, outcome);
}

static void run_case(const json_t *test, const struct way *way, struct outcome *outcome)
{
    compare_case(test, way, outcome);
    if (mismatches)
        fail_msg("%s, %s: %d mismatches, the first: %s", json_string_value(json_object_get(test, "network")), way->name,
                 mismatches, first_mismatch);
}

enum { MAX_CASES = 16 };
static struct outcome of_sequential[MAX_CASES]; /* filled by the first test */

/* --- tests --- */

#define SEQUENTIAL                                                                                                     \
    {                                                                                                                  \
        .policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1                                                 \
    }
static const struct way sequential = {.name = "sequential", .setting = SEQUENTIAL};
static const struct way no_passes = {.name = "no passes", .setting = SEQUENTIAL, .no_passes = true};
static const struct way direct = {.name = "direct convolutions", .setting = SEQUENTIAL, .direct = true};
static const struct way merged = {.name = "merged", .setting = SEQUENTIAL, .merged = true};
static const struct way parallel[] = {
    {.name = "2x1", .setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = 2, .width = 1}},
    {.name = "1x2", .setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = 1, .width = 2}},
};

/* A network, its gradients or its optimizer compute something else than its definition says; passes change the numbers
 * by more than rounding. */
static void networks_match_framework(void **state)
{
    (void)state;
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(root, "cases"), i, test)
    {
        struct outcome outcome;
        assert_true(i < MAX_CASES);
        run_case(test, &sequential, &of_sequential[i]);
        run_case(test, &no_passes, &outcome);
        if (!is_recurrent(test))
            run_case(test, &direct, &outcome);
    }
}

/* The merged form of a cell computes something else than the form per gate: columns in another order. */
static void merged_gates_match_framework(void **state)
{
    (void)state;
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(root, "cases"), i, test)
    {
        struct outcome outcome;
        if (is_recurrent(test))
            run_case(test, &merged, &outcome);
    }
}

/* Bits depend on the number of executors or threads: a race, or an order of summing that follows the width. */
static void layouts_give_the_same_bits(void **state)
{
    (void)state;
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    if (info.cores < 2)
        skip();
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(root, "cases"), i, test)
    {
        struct outcome one = of_sequential[i], two;
        for (size_t k = 0; k < sizeof parallel / sizeof *parallel; k++) {
            run_case(test, &parallel[k], &two);
            assert_string_equal(one.sha256, two.sha256);
            assert_memory_equal(one.loss, two.loss, sizeof one.loss);
            assert_memory_equal(&one.evaluation, &two.evaluation, sizeof one.evaluation);
        }
    }
}

/* The comparison lets mistakes pass: here the learning rate is off by two per cent. */
static void wrong_rate_is_noticed(void **state)
{
    (void)state;
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(root, "cases"), i, test)
    {
        struct outcome outcome;
        json_t *rate = json_object_get(test, "rate");
        if (!rate || json_object_get(json_object_get(test, "options"), "batch_norm")) /* slow, and no other code */
            continue;
        json_t *wrong = json_deep_copy(test);
        json_object_set_new(wrong, "rate", json_real(json_number_value(rate) * 1.02));
        compare_case(wrong, &direct, &outcome);
        json_decref(wrong);
        assert_true(mismatches > 0);
    }
}

static int open_all(void **state)
{
    (void)state;
    json_error_t error;
    root = json_load_file(path, 0, &error);
    if (!root)
        print_error("%s: %s\n", error.source, error.text);
    return root ? open_machine(state) : -1;
}

static int close_all(void **state)
{
    (void)state;
    json_decref(root);
    return close_machines(state);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_match_framework),
        cmocka_unit_test(merged_gates_match_framework),
        cmocka_unit_test(wrong_rate_is_noticed),
        cmocka_unit_test(layouts_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
