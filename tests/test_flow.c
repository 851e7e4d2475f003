/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models as plans and nodes on the host between them: what stays there, branches, loops, sizes that follow from
 * contents, sessions of many threads. */
#include "flow_model.h"

#include "flow/weights.h"

#include <pthread.h>

/* A branch of which the sizes, or a number that is given, tell whether it is taken. */
static void branches(void **state)
{
    static struct proto yes, no;
    for (int64_t equal = 6; equal <= 7; equal++) {
        begin(DIMS(2, 3));
        graph_port(&graph, 11, "rate", I64, 0, NULL);
        graph_constant(&graph, "seven", I64, 0, NULL, &equal, 8);
        op("Equal", "rate seven", "is");
        memset(&yes, 0, sizeof yes);
        memset(&no, 0, sizeof no);
        graph_node(&yes, "Neg", "x", "a");
        graph_port(&yes, 12, "a", F32, -1, NULL);
        graph_node(&no, "Relu", "x", "b");
        graph_port(&no, 12, "b", F32, -1, NULL);
        struct proto node = node_of("If", "is", "y");
        node_graph(&node, "then_branch", &yes);
        node_graph(&node, "else_branch", &no);
        add(&node);
        agree(17, EITHER);
    }
    begin(DIMS(1)); /* a condition that is computed */
    struct proto cast = node_of("Cast", "x", "is"), node = node_of("If", "is", "y");
    node_int(&cast, "to", 9);
    add(&cast);
    node_graph(&node, "then_branch", &yes);
    node_graph(&node, "else_branch", &no);
    add(&node);
    agree(17, EITHER);
}

/* More numbers than are told apart: the interpreter takes over, and results stay right. */
static void many_numbers(void **state)
{
    graphi_session *session = NULL;
    begin(DIMS(2, 3));
    graph_port(&graph, 11, "n", I64, 1, (int64_t[]){1});
    struct proto cast = node_of("Cast", "n", "f");
    node_int(&cast, "to", F32);
    add(&cast);
    op("Add", "x f", "y");
    const struct proto model = model_of(&graph, 17);
    check(graphi_session_open(NULL, model.data, model.size, &(graphi_session_options){.threads = 1}, &session));
    graphi_tensor *x = random_tensor(DIMS(2, 3), 3);
    graphi_tensor_info given, found;
    graphi_tensor_get_info(x, &given);
    for (int64_t n = 0; n < 80; n++) {
        graphi_tensor *number = NULL, *y = NULL;
        check(graphi_tensor_create(GRAPHI_ELEMENT_INT64, 1, (int64_t[]){1}, &n, &number));
        check(graphi_session_run(session, (const char *const[]){"x", "n"}, (const graphi_tensor *const[]){x, number}, 2,
                                 NULL, 1, &y));
        graphi_tensor_get_info(y, &found);
        for (int i = 0; i < 6; i++)
            assert_true(((const float *)found.data)[i] == ((const float *)given.data)[i] + (float)n);
        graphi_tensor_destroy(number);
        graphi_tensor_destroy(y);
    }
    graphi_tensor_destroy(x);
    graphi_session_close(session);
}

/* Operators without a lowering, other types and values of no elements stay on the host, between plans. */
static void stays(void **state)
{
    begin(DIMS(2, 3));
    op("Sin", "x", "y");
    agree(17, ON_HOST);
    begin(DIMS(2, 3)); /* plans before, between and behind */
    op("Relu", "x", "a");
    op("Sin", "a", "b");
    op("Neg", "b", "c");
    op("Cos", "c", "d");
    op("Add", "d a", "y");
    agree(17, ON_HOST);
    begin(DIMS(0, 3)); /* no elements */
    op("Relu", "x", "y");
    agree(17, ON_HOST);
}

/* Sizes that follow from contents: another path where they differ, and the host's where there are too many. */
static void contents(void **state)
{
    begin(DIMS(12));
    op("Relu", "x", "a");
    op("NonZero", "a", "places");
    op("Transpose", "places", "columns");
    op("GatherND", "a columns", "b");
    op("Neg", "b", "c");
    op("Shape", "c", "size");
    op("Exp", "c", "e");
    op("Reshape", "e size", "y");
    const struct proto bytes = model_of(&graph, 17);
    struct onnx_model *model;
    check(onnx_model_load("test", bytes.data, bytes.size, NULL, false, &model));
    check_where(model, ON_HOST);
    compare_runs(model, 60); /* another input every second time */
    onnx_model_free(model);
}

/* A condition that a plan computes: the branch is part of the next stage. */
static void computed_condition(void **state)
{
    static struct proto yes, no;
    begin(DIMS(2, 3));
    memset(&yes, 0, sizeof yes);
    memset(&no, 0, sizeof no);
    op("ReduceSum", "x", "all");
    scalar("zero", 0);
    struct proto node = node_of("Squeeze", "all", "sum");
    add(&node);
    op("Less", "zero sum", "is");
    graph_node(&yes, "Exp", "x", "a");
    graph_port(&yes, 12, "a", F32, -1, NULL);
    graph_node(&no, "Neg", "x", "b");
    graph_node(&no, "Sin", "b", "c");
    graph_node(&no, "Relu", "c", "d");
    graph_port(&no, 12, "d", F32, -1, NULL);
    node = node_of("If", "is", "z");
    node_graph(&node, "then_branch", &yes);
    node_graph(&node, "else_branch", &no);
    add(&node);
    op("Tanh", "z", "y");
    const struct proto bytes = model_of(&graph, 17);
    struct onnx_model *model;
    check(onnx_model_load("test", bytes.data, bytes.size, NULL, false, &model));
    compare_runs(model, 12);
    onnx_model_free(model);
}

/* Bodies are blocks of their own, which read what is around them. */
static void loops(void **state)
{
    static struct proto body;
    for (int grows = 0; grows < 2; grows++) {
        begin(DIMS(2, 3));
        memset(&body, 0, sizeof body);
        weights("w", DIMS(3, 3));
        numbers("trips", 1, (int64_t[]){5});
        op("Relu", "x", "h0");
        graph_port(&body, 11, "i", I64, 0, NULL);
        graph_port(&body, 11, "go", 9, 0, NULL);
        graph_port(&body, 11, "h", F32, -1, NULL);
        graph_node(&body, "Identity", "go", "on");
        graph_node(&body, "MatMul", "h w", "m");
        graph_node(&body, "Tanh", "m", "t");
        struct proto node = node_of("Concat", "t h0", "next");
        node_int(&node, "axis", 0);
        if (grows)
            proto_add(&body, 1, &node);
        graph_port(&body, 12, "on", 9, -1, NULL);
        graph_port(&body, 12, grows ? "next" : "t", F32, -1, NULL);
        if (!grows)
            graph_port(&body, 12, "m", F32, -1, NULL);
        node = node_of("Loop", "trips - h0", grows ? "last" : "last all");
        node_graph(&node, "body", &body);
        add(&node);
        op("Neg", "last", "y");
        if (!grows)
            graph_port(&graph, 12, "all", F32, -1, NULL);
        agree(17, ON_HOST);
    }
}

/* A constant that two graphs read in one order is one parameter of the state; in another order it is another one. */
static void weights_once(void **state)
{
    static const int64_t perm[] = {1, 0};
    const float numbers_of[] = {1, 2, 3, 4, 5, 6}, turned[] = {1, 4, 2, 5, 3, 6};
    struct weights shared = {.state = NULL};
    graphi_tensor *content = NULL;
    int count = 0;
    weights_init(&shared);
    check(graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, 2, (int64_t[]){2, 3}, numbers_of, &content));
    for (int g = 0; g < 3; g++) {
        struct weights_wanted wanted = {{0}};
        graphi_graph *built;
        check(graphi_graph_create(&built));
        const graphi_value value = weights_parameter(&wanted, built, "c7", content, g == 2 ? perm : NULL);
        assert_int_equal(weights_parameter(&wanted, built, "c7", content, g == 2 ? perm : NULL), value);
        check(weights_add(&shared, built, &wanted));
        weights_wanted_free(&wanted);
        graphi_graph_destroy(built);
        const char *name;
        graphi_dtype dtype;
        int rank;
        int64_t dims[GRAPHI_MAX_RANK];
        for (count = 0; graphi_state_at(shared.state, count, &name, &dtype, &rank, dims); count++) {
            float found[6];
            check(graphi_state_get(shared.state, name, found, sizeof found));
            assert_memory_equal(found, count ? turned : numbers_of, sizeof found);
        }
        assert_int_equal(count, g == 2 ? 2 : 1);
    }
    value_drop(content);
    weights_fini(&shared);
}

/* --- sessions --- */

static graphi_session *small_session(bool host)
{
    graphi_session *session = NULL;
    begin(DIMS(-1, 3));
    weights("w", DIMS(3, 4));
    op("MatMul", "x w", "a");
    op("Tanh", "a", "y");
    const struct proto model = model_of(&graph, 17);
    check(graphi_session_open(NULL, model.data, model.size, &(graphi_session_options){.host = host}, &session));
    return session;
}

struct caller {
    const graphi_session *fast, *slow;
    int number, failures;
};

static graphi_tensor *run(const graphi_session *session, const graphi_tensor *x)
{
    graphi_tensor *y = NULL;
    return graphi_session_run(session, (const char *const[]){"x"}, &x, 1, NULL, 1, &y) == GRAPHI_OK ? y : NULL;
}

static void *call_often(void *argument)
{
    struct caller *caller = argument;
    for (int i = 0; i < 40; i++) {
        const int64_t dims[2] = {1 + (i + caller->number) % 12, 3};
        graphi_tensor *x = random_tensor(2, dims, (uint64_t)(i + 1000 * caller->number));
        graphi_tensor *a = run(caller->fast, x), *b = run(caller->slow, x);
        caller->failures += !a || !b || graphi_tensor_compare(a, b, 1e-4, 1e-5) != GRAPHI_OK;
        graphi_tensor_destroy(a);
        graphi_tensor_destroy(b);
        graphi_tensor_destroy(x);
    }
    return NULL;
}

/* More sizes than plans are kept, from threads that would get each other's runs or freed plans. */
static void many_threads(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct caller callers[THREADS];
    graphi_session *fast = small_session(false), *slow = small_session(true);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){fast, slow, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].failures, 0);
    }
    graphi_session_close(fast);
    graphi_session_close(slow);
}

static void reports(void **state)
{
    graphi_session_plan plan;
    char *hosts;
    graphi_session *session = small_session(false);
    check(graphi_session_inspect_plan(session, NULL, NULL, 0, &plan, &hosts));
    assert_int_equal(plan.planned, 2);
    assert_true(plan.flops > 0 && plan.executors > 0 && plan.width > 0);
    assert_string_equal(hosts, "");
    graphi_free(hosts);
    graphi_tensor *x = random_tensor(DIMS(9, 3), 1);
    const double flops = plan.flops;
    check(graphi_session_inspect_plan(session, (const char *const[]){"x"}, (const graphi_tensor *const[]){x}, 1, &plan,
                                      NULL));
    assert_true(plan.flops > 8 * flops);
    graphi_tensor_destroy(x);
    graphi_session_close(session);
    begin(DIMS(2, 3));
    op("Relu", "x", "a");
    op("Sin", "a", "y");
    const struct proto model = model_of(&graph, 17);
    check(graphi_session_open(NULL, model.data, model.size, NULL, &session));
    check(graphi_session_inspect_plan(session, NULL, NULL, 0, &plan, &hosts));
    assert_int_equal(plan.planned, 1);
    assert_int_equal(plan.host, 1);
    assert_non_null(strstr(hosts, "Sin"));
    graphi_free(hosts);
    graphi_session_operator relu, sine;
    assert_true(graphi_session_operator_at(session, 0, &relu) && graphi_session_operator_at(session, 1, &sine));
    assert_true(relu.planned && !sine.planned);
    graphi_session_close(session);
    session = NULL;
    assert_int_equal(
        graphi_session_open(NULL, model.data, model.size, &(graphi_session_options){.threads = -1}, &session),
        GRAPHI_INVALID);
    assert_int_equal(graphi_session_inspect_plan(NULL, NULL, NULL, 0, &plan, NULL), GRAPHI_INVALID);
}

/* Memory that runs out while a plan is made is an error, nothing is lost, and the next call works. */
static void memory(void **state)
{
    graphi_tensor *x = random_tensor(DIMS(2, 3), 3), *y = NULL;
    graphi_session *session = small_session(false);
    for (long n = 0; !y; n++) {
        mem_fail_after(n);
        y = run(session, x);
        mem_fail_after(-1);
        assert_true(n < 100000);
    }
    graphi_tensor_destroy(y);
    graphi_tensor_destroy(x);
    graphi_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays),        cmocka_unit_test(many_threads), cmocka_unit_test(branches),
        cmocka_unit_test(many_numbers), cmocka_unit_test(reports),      cmocka_unit_test(memory),
        cmocka_unit_test(contents),     cmocka_unit_test(loops),        cmocka_unit_test(computed_condition),
        cmocka_unit_test(weights_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
