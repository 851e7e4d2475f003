/* SPDX-License-Identifier: Apache-2.0 */
/* Every exported function called with NULL for each of its pointers: a status says so, and nothing crashes. Functions
 * that tell things give nothing, those that destroy do nothing. tests/test_structure.py checks that none is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* The call is refused, and the message says that NULL was found, or what a name, path or set of NULL stands for. */
#define refused(call)                                                                                                  \
    do {                                                                                                               \
        if ((call) != GRAPHI_INVALID)                                                                                  \
            fail_msg("%s: not INVALID", #call);                                                                        \
        if (!strstr(graphi_message(), "found") || !strstr(graphi_message(), "expected"))                               \
            fail_msg("%s: %s", #call, graphi_message());                                                               \
    } while (0)

/* What there is when all is well: so that the first NULL of a call is the only one. */
static struct {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
} all;

static int open_all(void **state)
{
    check_ok(graphi_machine_create(0, &machine));
    check_ok(graphi_graph_create(&all.graph));
    graphi_value x = graphi_input(all.graph, "x", GRAPHI_F32, 1, (int64_t[]){4});
    graphi_output(all.graph, "y", graphi_tanh(all.graph, x));
    check_ok(graphi_plan_create(all.graph, machine, NULL, &all.plan));
    check_ok(graphi_state_create(all.graph, 1, &all.state));
    check_ok(graphi_run_create(all.plan, all.state, &all.run));
    return 0;
}

static int close_all(void **state)
{
    graphi_run_destroy(all.run);
    graphi_state_destroy(all.state);
    graphi_plan_destroy(all.plan);
    graphi_graph_destroy(all.graph);
    graphi_machine_destroy(machine);
    return 0;
}

static void dynamic_networks(void **state)
{
    static const int32_t zero[] = {0, 0};
    const graphi_input_graphs graphs = {.samples = 1, .vertices = 1, .sample = zero, .child_begin = zero};
    const graphi_frontier_options bounds = {.vertices = 4};
    const graphi_dynamic_options options = {.graphs = {.vertices = 4}, .state = {2}};
    graphi_frontier *f;
    graphi_frontier_lists lists;
    graphi_input_graphs part;
    refused(graphi_frontier_create(NULL, &f));
    refused(graphi_frontier_create(&bounds, NULL));
    check_ok(graphi_frontier_create(&bounds, &f));
    refused(graphi_frontier_set(NULL, &graphs));
    refused(graphi_frontier_set(f, NULL));
    refused(graphi_frontier_set(f, &(graphi_input_graphs){.samples = 1, .vertices = 1}));
    assert_int_equal(graphi_frontier_fits(NULL, &graphs, 0), 0);
    assert_int_equal(graphi_frontier_fits(f, NULL, 0), 0);
    assert_int_equal(graphi_frontier_fits(f, &(graphi_input_graphs){.samples = 1}, 0), 0);
    refused(graphi_frontier_part(NULL, &graphs, 0, 1, &part));
    refused(graphi_frontier_part(f, NULL, 0, 1, &part));
    refused(graphi_frontier_part(f, &graphs, 0, 1, NULL));
    assert_false(graphi_frontier_get(NULL, &lists));
    assert_false(graphi_frontier_get(f, NULL));
    refused(graphi_frontier_feed(NULL, &graphs, NULL, all.run));
    refused(graphi_frontier_feed(f, NULL, NULL, all.run));
    refused(graphi_frontier_feed(f, &graphs, NULL, NULL));
    refused(graphi_frontier_feed(f, &graphs, NULL, all.run)); /* no dynamic part */
    graphi_frontier_destroy(f);
    graphi_frontier_destroy(NULL);
    graphi_graph *graph;
    check_ok(graphi_graph_create(&graph));
    assert_null(graphi_dynamic_begin(NULL, &options));
    assert_null(graphi_dynamic_begin(graph, NULL));
    refused(graphi_graph_status(graph));
    graphi_graph_destroy(graph);
    assert_int_equal(graphi_vertex_rows(NULL), 0);
    assert_null(graphi_vertex_function(NULL));
    assert_int_equal(graphi_pull(NULL, 0), GRAPHI_NONE);
    assert_int_equal(graphi_gather(NULL, 0, 0), GRAPHI_NONE);
    assert_int_equal(graphi_gather_sum(NULL, 0), GRAPHI_NONE);
    assert_int_equal(graphi_gather_each(NULL, 0), GRAPHI_NONE);
    assert_int_equal(graphi_spread(NULL, 0), GRAPHI_NONE);
    assert_int_equal(graphi_combine(NULL, 0), GRAPHI_NONE);
    graphi_scatter(NULL, 0, 0);
    graphi_push(NULL, 0, 0);
    graphi_value pushed;
    refused(graphi_dynamic_end(NULL, 1, &pushed));
    check_ok(graphi_graph_create(&graph));
    refused(graphi_dynamic_end(graphi_dynamic_begin(graph, &options), 1, NULL));
    graphi_graph_destroy(graph);
}

static void events(void **state)
{
    graphi_event *event = NULL;
    bool taken;
    refused(graphi_event_create(NULL, NULL, &event));
    refused(graphi_event_create("e", NULL, NULL));
    check_ok(graphi_event_create("e", NULL, &event));
    refused(graphi_event_send(NULL));
    refused(graphi_event_take(NULL, &taken));
    refused(graphi_event_take(event, NULL));
    graphi_event_cancel(NULL);
    graphi_event_reset(NULL);
    refused(graphi_run_receive(NULL, 0, event));
    refused(graphi_run_send(NULL, 0, event));
    refused(graphi_run_set_patience(NULL, 1));
    graphi_event_destroy(event);
    graphi_event_destroy(NULL);
}

static void places(void **state)
{
    graphi_machine *part = NULL;
    graphi_memory_node node;
    graphi_page_count count;
    refused(graphi_machine_part(NULL, 0, 1, NULL, &part));
    refused(graphi_machine_part(machine, 0, 1, NULL, NULL));
    assert_null(part);
    assert_false(graphi_machine_node_at(NULL, 0, &node));
    assert_false(graphi_machine_node_at(machine, 0, NULL));
    refused(graphi_pages(NULL, GRAPHI_PAGES_ARENA, &count));
    refused(graphi_pages(all.run, GRAPHI_PAGES_ARENA, NULL));
}

static void leases(void **state)
{
    graphi_lease *lease = NULL, *none = NULL;
    graphi_lease_info info = {.threads = 7};
    refused(graphi_lease_take(NULL, NULL, &none));
    refused(graphi_lease_take(machine, NULL, NULL));
    assert_null(none);
    check_ok(graphi_lease_take(machine, NULL, &lease));
    refused(graphi_run_execute_on(NULL, lease));
    refused(graphi_run_execute_on(all.run, NULL));
    refused(graphi_lease_enter(NULL));
    refused(graphi_lease_leave(NULL));
    graphi_lease_get_info(lease, NULL);
    graphi_lease_get_info(NULL, &info);
    assert_int_equal(info.threads, 0);
    check_ok(graphi_lease_release(NULL));
    check_ok(graphi_lease_release(lease));
}

static void texts(void **state)
{
    graphi_vocabulary *v = NULL;
    int32_t token = 0, *tokens = NULL;
    int64_t count = 0, made;
    size_t length;
    refused(graphi_vocabulary_open(NULL, false, &v));
    refused(graphi_vocabulary_open("[\"a\", \"<unk>\"]", false, NULL));
    check_ok(graphi_vocabulary_open("[\"a\", \"<unk>\"]", false, &v));
    assert_int_equal(graphi_vocabulary_count(NULL), 0);
    assert_null(graphi_vocabulary_text(NULL, 0, &length));
    assert_string_equal(graphi_vocabulary_text(v, 0, NULL), "a");
    refused(graphi_vocabulary_encode(NULL, "a", 1, &tokens, &count));
    refused(graphi_vocabulary_encode(v, NULL, 1, &tokens, &count));
    refused(graphi_vocabulary_encode(v, "a", 1, NULL, &count));
    refused(graphi_vocabulary_encode(v, "a", 1, &tokens, NULL));
    refused(graphi_generate(NULL, NULL, &token, 1, &token, 1, &made));
    refused(graphi_generate(all.run, NULL, NULL, 1, &token, 1, &made));
    refused(graphi_generate(all.run, NULL, &token, 1, NULL, 1, &made));
    refused(graphi_generate(all.run, NULL, &token, 1, &token, 1, NULL));
    refused(graphi_generate(all.run, NULL, &token, 1, &token, 1, &made)); /* no language model */
    graphi_vocabulary_close(v);
    graphi_vocabulary_close(NULL);
}

/* Layers on a graph: a graph that is NULL has no errors to keep, what is missing breaks it. */
static void recurrent_layers(void **state)
{
    static const int32_t lengths[] = {2, 1};
    static const int64_t order[] = {0, 1};
    int64_t sorted[2];
    char rows[4], padded[4] = {0};
    float w[4] = {0};
    const graphi_recurrent_weights weights = {w, w, w}, none = {0};
    graphi_graph *graph;
    assert_string_equal(graphi_lowering_name((graphi_lowering)99), "?");
    assert_true(graphi_recurrent(NULL, GRAPHI_RNN, 0, NULL, NULL, GRAPHI_NONE, NULL, NULL) == GRAPHI_NONE);
    assert_true(graphi_attend(NULL, 0, 0, GRAPHI_NONE, NULL, NULL) == GRAPHI_NONE);
    assert_true(graphi_max_over_time(NULL, 0, GRAPHI_NONE) == GRAPHI_NONE);
    assert_true(graphi_batch_major(NULL, 0, 1) == GRAPHI_NONE);
    assert_true(graphi_highway(NULL, 0, 1, NULL) == GRAPHI_NONE);
    assert_true(graphi_perceptron(NULL, 0, 1, NULL, NULL) == GRAPHI_NONE);
    check_ok(graphi_graph_create(&graph));
    graphi_value x = graphi_input(graph, "x", GRAPHI_F32, 2, (int64_t[]){4, 1});
    assert_true(graphi_recurrent(graph, GRAPHI_RNN, x, NULL, NULL, GRAPHI_NONE, NULL, NULL) == GRAPHI_NONE);
    refused(graphi_graph_status(graph));
    graphi_graph_destroy(graph);
    refused(graphi_sequence_sort(2, NULL, sorted));
    refused(graphi_sequence_sort(2, lengths, NULL));
    refused(graphi_sequence_pack(2, 2, 1, NULL, order, padded, rows));
    refused(graphi_sequence_pack(2, 2, 1, lengths, NULL, padded, rows));
    refused(graphi_sequence_pack(2, 2, 1, lengths, order, NULL, rows));
    refused(graphi_sequence_pack(2, 2, 1, lengths, order, padded, NULL));
    refused(graphi_sequence_unpack(2, 2, 1, NULL, order, rows, padded));
    refused(graphi_sequence_unpack(2, 2, 1, lengths, NULL, rows, padded));
    refused(graphi_sequence_unpack(2, 2, 1, lengths, order, NULL, padded));
    refused(graphi_sequence_unpack(2, 2, 1, lengths, order, rows, NULL));
    refused(graphi_recurrent_convert(GRAPHI_RNN, GRAPHI_FROM_ONNX, false, 1, 1, NULL, w, w, w, w));
    refused(graphi_recurrent_convert(GRAPHI_RNN, GRAPHI_FROM_ONNX, false, 1, 1, &none, w, w, w, w));
    refused(graphi_recurrent_convert(GRAPHI_RNN, GRAPHI_FROM_ONNX, false, 1, 1, &weights, NULL, w, w, w));
    refused(graphi_recurrent_convert(GRAPHI_RNN, GRAPHI_FROM_ONNX, false, 1, 1, &weights, w, NULL, w, w));
    refused(graphi_recurrent_convert(GRAPHI_RNN, GRAPHI_FROM_ONNX, false, 1, 1, &weights, w, w, NULL, w));
    refused(graphi_recurrent_convert(GRAPHI_RNN, GRAPHI_FROM_ONNX, false, 1, 1, &weights, w, w, w, NULL));
}

static void arrays_and_data(void **state)
{
    float number;
    const int64_t one = 1;
    graphi_data *data = NULL;
    refused(graphi_array_load(NULL, GRAPHI_F32, 1, &one, &number));
    refused(graphi_array_load("none.npy", GRAPHI_F32, 1, NULL, &number));
    refused(graphi_array_load("none.npy", GRAPHI_F32, 1, &one, NULL));
    refused(graphi_array_save(NULL, GRAPHI_F32, 1, &one, &number));
    refused(graphi_array_save("none.npy", GRAPHI_F32, 1, NULL, &number));
    refused(graphi_array_save("none.npy", GRAPHI_F32, 1, &one, NULL));
    refused(graphi_data_open(NULL, NULL, &data));
    refused(graphi_data_open("none", NULL, NULL));
    refused(graphi_data_augment(NULL, NULL));
    refused(graphi_data_open_split(NULL, GRAPHI_TRAIN, 1, &data));
    refused(graphi_data_next(NULL, NULL, 0, NULL, 0, NULL));
    refused(graphi_data_set_position(NULL, (graphi_data_position){0}));
    graphi_data_info info;
    memset(&info, 1, sizeof info);
    graphi_data_get_info(NULL, &info);
    assert_int_equal(info.samples, 0);
    assert_int_equal(graphi_data_get_position(NULL).index, 0);
    assert_null(graphi_data_word(NULL, 0, NULL));
    graphi_data_close(NULL);
    graphi_trees *trees = NULL;
    graphi_trees_batch batch;
    refused(graphi_trees_open(NULL, NULL, &trees));
    refused(graphi_trees_open("none", NULL, NULL));
    refused(graphi_trees_open_split(NULL, GRAPHI_TRAIN, 1, &trees));
    refused(graphi_trees_next(NULL, &batch));
    refused(graphi_trees_set_position(NULL, (graphi_data_position){0}));
    graphi_feed feed;
    refused(graphi_trees_feed(NULL, NULL, &feed));
    refused(graphi_trees_feed(NULL, NULL, NULL));
    graphi_trees_info graphs_info;
    memset(&graphs_info, 1, sizeof graphs_info);
    graphi_trees_get_info(NULL, &graphs_info);
    assert_int_equal(graphs_info.samples, 0);
    assert_int_equal(graphi_trees_get_position(NULL).index, 0);
    assert_null(graphi_trees_word(NULL, 0, NULL));
    assert_null(graphi_trees_label(NULL, 0, NULL));
    assert_null(graphi_trees_skipped(NULL, 0));
    graphi_trees_close(NULL);
    graphi_schedule schedule;
    refused(graphi_schedule_parse(NULL, 1, 1, &schedule));
    assert_true(graphi_schedule_rate(NULL, 0) == 0);
}

static void graphs(void **state)
{
    char *text = NULL;
    graphi_graph *graph = all.graph;
    graphi_port port;
    const graphi_value x = graphi_find(graph, "x");
    refused(graphi_graph_create(NULL));
    refused(graphi_graph_status(NULL));
    refused(graphi_graph_print(NULL, GRAPHI_PRINT_TEXT, &text));
    refused(graphi_graph_print(graph, GRAPHI_PRINT_TEXT, NULL));
    refused(graphi_value_type(NULL, 0, NULL, NULL, NULL));
    refused(graphi_value_type(graph, x, NULL, NULL, NULL));
    refused(graphi_gradients(NULL, 0, 0, NULL, NULL));
    refused(graphi_minimize(NULL, 0, NULL));
    assert_false(graphi_graph_at(NULL, GRAPHI_PORT_INPUT, 0, &port));
    assert_false(graphi_graph_at(graph, GRAPHI_PORT_INPUT, 0, NULL));
    assert_int_equal(graphi_symbol(NULL, "n", 4), GRAPHI_NONE);
    assert_int_equal(graphi_input(NULL, "x", GRAPHI_F32, 0, NULL), GRAPHI_NONE);
    assert_int_equal(graphi_parameter(NULL, "w", GRAPHI_F32, 0, NULL, NULL), GRAPHI_NONE);
    assert_int_equal(graphi_constant(NULL, GRAPHI_F32, 0, NULL, &(float){1}), GRAPHI_NONE);
    assert_int_equal(graphi_op(NULL, "tanh", 0, NULL, 0, NULL), GRAPHI_NONE);
    assert_int_equal(graphi_region(NULL, NULL, 0, NULL), GRAPHI_NONE);
    assert_int_equal(graphi_assign(NULL, 0, 0), GRAPHI_NONE);
    assert_int_equal(graphi_find(NULL, "x"), GRAPHI_NONE);
    assert_int_equal(graphi_find(graph, NULL), GRAPHI_NONE);
    graphi_scope(NULL, "layer");
    graphi_output(NULL, "y", 0);
    graphi_freeze(NULL, 0);
    graphi_multiply(NULL, 0, 1, 1);
    graphi_graph_info info;
    graphi_graph_get_info(NULL, &info);
    assert_int_equal(info.nodes, 0);
    graphi_graph_get_info(graph, NULL);
    graphi_graph_destroy(NULL);
    check_ok(graphi_graph_status(graph));
}

/* Names, arrays and optimizers of NULL make the graph's first mistake, each in one of its own. */
static void mistakes(void **state)
{
    for (int i = 0; i < 9; i++) {
        graphi_graph *graph;
        check_ok(graphi_graph_create(&graph));
        graphi_value x = graphi_input(graph, "x", GRAPHI_F32, 0, NULL);
        switch (i) {
        case 0: graphi_input(graph, NULL, GRAPHI_F32, 0, NULL); break;
        case 1: graphi_input(graph, "a", GRAPHI_F32, 1, NULL); break;
        case 2: graphi_parameter(graph, NULL, GRAPHI_F32, 0, NULL, NULL); break;
        case 3: graphi_constant(graph, GRAPHI_F32, 0, NULL, NULL); break;
        case 4: graphi_op(graph, NULL, 0, NULL, 0, NULL); break;
        case 5: graphi_op(graph, "tanh", 1, NULL, 0, NULL); break;
        case 6: graphi_output(graph, NULL, x); break;
        case 7: graphi_minimize(graph, x, NULL); break;
        case 8: graphi_region(graph, NULL, 0, NULL); break;
        }
        refused(graphi_graph_status(graph));
        graphi_graph_destroy(graph);
    }
}

static void machines_and_models(void **state)
{
    graphi_machine *other = NULL;
    graphi_graph *graph = NULL;
    char *text = NULL;
    graphi_model_info model;
    refused(graphi_machine_create(0, NULL));
    refused(graphi_machine_load(NULL, 0, &other));
    refused(graphi_machine_load("machines/xeon-phi-7250.json", 0, NULL));
    refused(graphi_machine_save(NULL, "none"));
    refused(graphi_machine_save(machine, NULL));
    refused(graphi_machine_measure(NULL, 0));
    refused(graphi_machine_print(NULL, &text));
    refused(graphi_machine_print(machine, NULL));
    graphi_machine_info info;
    memset(&info, 1, sizeof info);
    graphi_machine_get_info(NULL, &info);
    assert_int_equal(info.cores, 0);
    graphi_machine_get_info(machine, NULL);
    graphi_machine_destroy(NULL);
    graphi_free(NULL);
    refused(graphi_model_create(NULL, NULL, &graph));
    refused(graphi_model_create("lstm", NULL, NULL));
    refused(graphi_model_get_info(NULL, NULL, &model));
    refused(graphi_model_get_info("lstm", NULL, NULL));
    assert_null(graphi_model_at(-1));
    assert_non_null(graphi_version());
}

static void plans(void **state)
{
    graphi_plan *plan = NULL;
    char *text = NULL;
    graphi_trial trial;
    graphi_plan_info info;
    graphi_pass pass;
    refused(graphi_plan_create(NULL, machine, NULL, &plan));
    refused(graphi_plan_create(all.graph, NULL, NULL, &plan));
    refused(graphi_plan_create(all.graph, machine, NULL, NULL));
    refused(graphi_plan_load(NULL, machine, NULL, "none", &plan));
    refused(graphi_plan_load(all.graph, NULL, NULL, "none", &plan));
    refused(graphi_plan_load(all.graph, machine, NULL, NULL, &plan));
    refused(graphi_plan_load(all.graph, machine, NULL, "none", NULL));
    refused(graphi_plan_with(NULL, NULL, &plan));
    refused(graphi_plan_with(all.plan, NULL, NULL));
    refused(graphi_plan_tune(NULL, all.state, NULL, &plan));
    refused(graphi_plan_tune(all.plan, NULL, NULL, &plan));
    refused(graphi_plan_tune(all.plan, all.state, NULL, NULL));
    refused(graphi_plan_save(NULL, "none"));
    refused(graphi_plan_save(all.plan, NULL));
    refused(graphi_plan_explain(NULL, false, &text));
    refused(graphi_plan_explain(all.plan, false, NULL));
    assert_false(graphi_plan_trial_at(NULL, 0, &trial));
    assert_false(graphi_plan_trial_at(all.plan, 0, NULL));
    memset(&info, 1, sizeof info);
    graphi_plan_get_info(NULL, &info);
    assert_int_equal(info.nodes, 0);
    graphi_plan_get_info(all.plan, NULL);
    graphi_port_kind kind;
    graphi_port port;
    refused(graphi_plan_port(NULL, "x", &(int){0}));
    refused(graphi_plan_port(all.plan, NULL, &(int){0}));
    refused(graphi_plan_port(all.plan, "x", NULL));
    assert_false(graphi_plan_port_at(NULL, 0, &kind, &port));
    assert_false(graphi_plan_port_at(all.plan, 0, NULL, &port));
    assert_false(graphi_plan_port_at(all.plan, 0, &kind, NULL));
    graphi_plan_destroy(NULL);
    assert_false(graphi_pass_at(-1, &pass));
    assert_false(graphi_pass_at(0, NULL));
    check_ok(graphi_pass_check(NULL));
    assert_int_equal(graphi_split_next(0, 0), 0);
    assert_false(graphi_policy_get_info(GRAPHI_POLICY_FIFO, NULL));
    assert_false(graphi_policy_parameter_at(GRAPHI_POLICIES, 0, NULL));
    assert_null(plan);
}

static void profiles_and_simulations(void **state)
{
    graphi_plan *plan = NULL;
    graphi_curves *curves = NULL;
    graphi_class found;
    graphi_climb climb = {0};
    graphi_simulation simulation;
    graphi_simulator *simulator = NULL;
    double number;
    assert_false(graphi_plan_class_at(NULL, 0, &found));
    assert_false(graphi_plan_class_at(all.plan, 0, NULL));
    assert_true(graphi_plan_class_ns(NULL, 0, NULL, 1, false, NULL) < 0);
    graphi_climb_search(2, 2, 0, false, NULL, NULL, &climb);
    graphi_climb_search(2, 2, 0, false, NULL, NULL, NULL);
    refused(graphi_plan_profile(NULL, all.state, NULL, &plan));
    refused(graphi_plan_profile(all.plan, NULL, NULL, &plan));
    refused(graphi_plan_profile(all.plan, all.state, NULL, NULL));
    refused(graphi_plan_count(NULL, all.state, 0, &number));
    refused(graphi_plan_count(all.plan, NULL, 0, &number));
    refused(graphi_plan_count(all.plan, all.state, 1, NULL));
    refused(graphi_curves_open(NULL, NULL, &curves));
    refused(graphi_curves_open(machine, NULL, NULL));
    refused(graphi_curves_renew(NULL, "none", &curves));
    refused(graphi_curves_renew(machine, NULL, &curves));
    refused(graphi_curves_renew(machine, "none", NULL));
    refused(graphi_curves_add(NULL, 1, "model", &climb));
    check_ok(graphi_curves_open(machine, NULL, &curves));
    refused(graphi_curves_add(curves, 1, NULL, &climb));
    refused(graphi_curves_add(curves, 1, "model", NULL));
    refused(graphi_curves_save(NULL));
    graphi_curves_close(curves);
    graphi_curves_close(NULL);
    refused(graphi_plan_simulate(NULL, NULL, &simulation));
    refused(graphi_plan_simulate(all.plan, NULL, NULL));
    refused(graphi_simulator_create(NULL, NULL, &simulator));
    refused(graphi_simulator_create(all.plan, NULL, NULL));
    check_ok(graphi_simulator_create(all.plan, NULL, &simulator));
    refused(graphi_simulator_run(NULL, &(int){1}, &number, 0, &number));
    refused(graphi_simulator_run(simulator, NULL, &number, 0, &number));
    refused(graphi_simulator_run(simulator, &(int){1}, NULL, 0, &number));
    refused(graphi_simulator_run(simulator, &(int){1}, &number, 0, NULL));
    graphi_simulator_destroy(simulator);
    graphi_simulator_destroy(NULL);
}

static void states(void **state)
{
    graphi_state *values = NULL;
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    char hex[65] = "?";
    refused(graphi_state_create(NULL, 1, &values));
    refused(graphi_state_create(all.graph, 1, NULL));
    refused(graphi_state_extend(NULL, all.graph));
    refused(graphi_state_extend(all.state, NULL));
    refused(graphi_state_get(NULL, "w", hex, 4));
    refused(graphi_state_get(all.state, NULL, hex, 4));
    refused(graphi_state_set(NULL, "w", hex, 4));
    refused(graphi_state_set(all.state, NULL, hex, 4));
    refused(graphi_state_adopt(NULL, "w", hex, 4));
    refused(graphi_state_adopt(all.state, NULL, hex, 4));
    refused(graphi_state_adopt(all.state, "w", NULL, 4));
    assert_false(graphi_state_at(NULL, 0, &name, &dtype, &rank, dims));
    graphi_state_sha256(NULL, hex);
    assert_string_equal(hex, "");
    graphi_state_sha256(all.state, NULL);
    assert_int_equal(graphi_state_step(NULL), 0);
    graphi_state_set_step(NULL, 1);
    refused(graphi_state_save(NULL, "none", 0, NULL, NULL));
    refused(graphi_state_save(all.state, NULL, 0, NULL, NULL));
    refused(graphi_state_save(all.state, "none", 1, NULL, NULL));
    refused(graphi_state_load(NULL, NULL, NULL, NULL));
    refused(graphi_state_load(all.state, NULL, NULL, NULL));
    graphi_state_destroy(NULL);
    assert_null(values);
}

static void runs(void **state)
{
    graphi_run *run = NULL;
    char *text = NULL;
    float numbers[4] = {0};
    graphi_trace_summary summary;
    graphi_trace_operation operation;
    refused(graphi_run_create(NULL, all.state, &run));
    refused(graphi_run_create(all.plan, NULL, &run));
    refused(graphi_run_create(all.plan, all.state, NULL));
    refused(graphi_run_beside(NULL, all.plan, &run));
    refused(graphi_run_beside(all.run, NULL, &run));
    refused(graphi_run_beside(all.run, all.plan, NULL));
    refused(graphi_run_set(NULL, "x", GRAPHI_F32, numbers, sizeof numbers));
    refused(graphi_run_set(all.run, NULL, GRAPHI_F32, numbers, sizeof numbers));
    refused(graphi_run_set(all.run, "x", GRAPHI_F32, NULL, sizeof numbers));
    refused(graphi_run_set_symbol(NULL, "n", 1));
    refused(graphi_run_set_symbol(all.run, NULL, 1));
    refused(graphi_run_bind(NULL, 0, GRAPHI_F32, numbers, sizeof numbers));
    refused(graphi_run_bind(all.run, 0, GRAPHI_F32, NULL, sizeof numbers));
    graphi_run_set_first_sample(NULL, 1);
    refused(graphi_run_execute(NULL));
    check_ok(graphi_run_set(all.run, "x", GRAPHI_F32, numbers, sizeof numbers));
    check_ok(graphi_run_execute(all.run));
    refused(graphi_run_get(NULL, "y", GRAPHI_F32, numbers, sizeof numbers));
    refused(graphi_run_get(all.run, NULL, GRAPHI_F32, numbers, sizeof numbers));
    refused(graphi_run_get(all.run, "y", GRAPHI_F32, NULL, sizeof numbers));
    graphi_run_info info;
    memset(&info, 1, sizeof info);
    graphi_run_get_info(NULL, &info);
    assert_int_equal(info.executions, 0);
    graphi_run_get_info(all.run, NULL);
    refused(graphi_run_explain(NULL, &text));
    refused(graphi_run_explain(all.run, NULL));
    refused(graphi_run_trace(NULL, true));
    refused(graphi_run_trace_summary(NULL, &summary));
    refused(graphi_run_trace_operation(NULL, 0, &operation));
    refused(graphi_run_write_timeline(NULL, "none"));
    check_ok(graphi_run_trace(all.run, true));
    check_ok(graphi_run_execute(all.run));
    refused(graphi_run_trace_summary(all.run, NULL));
    refused(graphi_run_trace_operation(all.run, 0, NULL));
    refused(graphi_run_write_timeline(all.run, NULL));
    graphi_run_destroy(NULL);
    assert_null(run);
}

static void trainings(void **state)
{
    graphi_trainer *trainer = NULL;
    graphi_trainer_info info;
    graphi_score score;
    refused(graphi_run_score(NULL, &(graphi_feed){0}, NULL, &score));
    refused(graphi_run_score(all.run, NULL, NULL, &score));
    refused(graphi_run_score(all.run, &(graphi_feed){0}, NULL, NULL));
    refused(graphi_trainer_create(NULL, &trainer));
    refused(graphi_trainer_create(&(graphi_trainer_options){0}, NULL));
    refused(graphi_trainer_create(&(graphi_trainer_options){0}, &trainer));
    refused(graphi_trainer_use(NULL, 0, all.run));
    graphi_trainer_owe(NULL, true);
    refused(graphi_trainer_run(NULL));
    refused(graphi_trainer_step(NULL));
    refused(graphi_trainer_save(NULL, "none"));
    graphi_trainer_get_info(NULL, &info);
    assert_int_equal(info.step, 0);
    graphi_trainer_get_info(NULL, NULL);
    assert_null(graphi_trainer_state(NULL));
    graphi_trainer_destroy(NULL);
    assert_null(trainer);
}

static void groups(void **state)
{
    graphi_group *group = NULL;
    graphi_group_info info;
    graphi_solver_info solver;
    float loss[GRAPHI_TRAINER_LOSSES];
    graphi_ranks *ranks = NULL;
    graphi_ranks_info place;
    refused(graphi_ranks_open(NULL, 0, &ranks));
    refused(graphi_ranks_open("none", 0, NULL));
    assert_false(graphi_ranks_get_info(NULL, &place));
    graphi_ranks_close(NULL);
    assert_null(ranks);
    refused(graphi_group_create(NULL, &group));
    refused(graphi_group_create(&(graphi_group_options){0}, NULL));
    refused(graphi_group_create(&(graphi_group_options){0}, &group));
    refused(graphi_group_step(NULL, &(graphi_step_batch){0}, loss));
    assert_null(graphi_group_graph(NULL));
    assert_null(graphi_group_state(NULL));
    assert_null(graphi_group_stepper(NULL));
    graphi_group_get_info(NULL, &info);
    assert_int_equal(info.solvers, 0);
    graphi_group_get_info(NULL, NULL);
    assert_false(graphi_group_at(NULL, 0, &solver));
    graphi_group_destroy(NULL);
    assert_null(group);
}

static void checkpoints(void **state)
{
    graphi_checkpoint *file = NULL;
    graphi_checkpoint_info info;
    refused(graphi_checkpoint_open(NULL, &file));
    refused(graphi_checkpoint_open("none", NULL));
    graphi_checkpoint_get_info(NULL, &info);
    assert_string_equal(info.words, "");
    graphi_checkpoint_get_info(NULL, NULL);
    assert_null(graphi_checkpoint_text(NULL, "network"));
    refused(graphi_checkpoint_complete(NULL, "lstm", &(graphi_form){0}));
    refused(graphi_checkpoint_load(NULL, all.state, NULL, NULL, NULL));
    graphi_checkpoint_close(NULL);
    refused(graphi_state_zero(NULL, "state/"));
    refused(graphi_state_zero(all.state, NULL));
    assert_null(file);
}

/* y = -x, an ONNX model in bytes. */
static const char small_model[] =
    "\010\010\072\037\012\013\012\001\170\022\001\171\042\003\116\145\147\132\007\012\001\170\022\002"
    "\012\000\142\007\012\001\171\022\002\012\000\102\002\020\015";

static void sessions(void **state)
{
    graphi_tensor *tensor = NULL, *result = NULL;
    graphi_session *session = NULL;
    const int64_t one = 1;
    const float number = 1;
    refused(graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, 1, NULL, &number, &tensor));
    refused(graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, 1, &one, NULL, &tensor));
    refused(graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, 1, &one, &number, NULL));
    refused(graphi_tensor_create_sequence(1, NULL, &tensor));
    refused(graphi_tensor_create_sequence(1, (const graphi_tensor *[]){NULL}, &tensor));
    refused(graphi_tensor_create_sequence(0, NULL, NULL));
    refused(graphi_tensor_create_sequence(-1, NULL, &tensor));
    refused(graphi_tensor_load(NULL, NULL, NULL, &tensor));
    refused(graphi_tensor_load("none.npy", NULL, NULL, NULL));
    refused(graphi_tensor_load("none.npz", NULL, NULL, &tensor));
    assert_null(tensor);
    check_ok(graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, 1, &one, &number, &tensor));
    refused(graphi_tensor_save(NULL, "none.npy"));
    refused(graphi_tensor_save(tensor, NULL));
    refused(graphi_tensor_compare(NULL, tensor, 0, 0));
    refused(graphi_tensor_compare(tensor, NULL, 0, 0));
    graphi_tensor_info info;
    graphi_tensor_get_info(NULL, &info);
    assert_int_equal(info.count, 0);
    graphi_tensor_get_info(tensor, NULL);
    assert_null(graphi_tensor_item(NULL, 0));
    assert_string_equal(graphi_element_name(0), "no element type");
    refused(graphi_session_open(NULL, NULL, 0, NULL, &session));
    refused(graphi_session_open(NULL, small_model, sizeof small_model - 1, NULL, NULL));
    refused(graphi_session_inspect(NULL, &session));
    refused(graphi_session_inspect("none.onnx", NULL));
    check_ok(graphi_session_open(NULL, small_model, sizeof small_model - 1, NULL, &session));
    graphi_session_port port;
    graphi_session_operator op;
    graphi_session_info about;
    assert_false(graphi_session_port_at(NULL, GRAPHI_SESSION_INPUT, 0, &port));
    assert_false(graphi_session_port_at(session, GRAPHI_SESSION_INPUT, 0, NULL));
    assert_false(graphi_session_operator_at(NULL, 0, &op));
    assert_false(graphi_session_operator_at(session, 0, NULL));
    graphi_session_get_info(NULL, &about);
    assert_int_equal(about.nodes, 0);
    graphi_session_get_info(session, NULL);
    refused(graphi_session_inspect_plan(NULL, NULL, NULL, 0, &(graphi_session_plan){0}, NULL));
    refused(graphi_session_inspect_plan(session, NULL, NULL, 0, NULL, NULL));
    refused(graphi_session_inspect_plan(session, NULL, NULL, 1, &(graphi_session_plan){0}, NULL));
    refused(graphi_session_write_timeline(NULL, "timeline"));
    refused(graphi_session_write_timeline(session, NULL));
    const char *name = "x", *none = NULL;
    const graphi_tensor *given = tensor, *no_tensor = NULL;
    refused(graphi_session_run(NULL, &name, &given, 1, NULL, 1, &result));
    refused(graphi_session_run(session, NULL, &given, 1, NULL, 1, &result));
    refused(graphi_session_run(session, &name, NULL, 1, NULL, 1, &result));
    refused(graphi_session_run(session, &none, &given, 1, NULL, 1, &result));
    refused(graphi_session_run(session, &name, &no_tensor, 1, NULL, 1, &result));
    refused(graphi_session_run(session, &name, &given, 1, &none, 1, &result));
    refused(graphi_session_run(session, &name, &given, 1, NULL, 1, NULL));
    assert_null(result);
    check_ok(graphi_session_run(session, &name, &given, 1, NULL, 1, &result));
    graphi_tensor_destroy(result);
    graphi_tensor_destroy(tensor);
    graphi_tensor_destroy(NULL);
    graphi_session_close(session);
    graphi_session_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent_layers), cmocka_unit_test(events),
        cmocka_unit_test(leases),          cmocka_unit_test(places),
        cmocka_unit_test(texts),
        cmocka_unit_test(arrays_and_data), cmocka_unit_test(graphs),
        cmocka_unit_test(mistakes),        cmocka_unit_test(machines_and_models),
        cmocka_unit_test(plans),           cmocka_unit_test(profiles_and_simulations),
        cmocka_unit_test(states),          cmocka_unit_test(runs),
        cmocka_unit_test(trainings),       cmocka_unit_test(checkpoints),
        cmocka_unit_test(sessions),        cmocka_unit_test(dynamic_networks),
        cmocka_unit_test(groups),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
