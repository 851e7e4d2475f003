/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models as plans: the same results as operator by operator, for every lowering; and what stays with the
 * interpreter. Models are written here. */
#include "onnx_writer.h"

#include "base/memory.h"
#include "base/random.h"
#include "flow/flow.h"
#include "onnx/interpret.h"

#include "graphi/graphi.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { F32 = 1, I64 = 7, MOST = 2048, PORTS = 8 };

#define check(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != GRAPHI_OK)                                                                                       \
            fail_msg("%s", graphi_message());                                                                          \
    } while (0)
#define DIMS(...)                                                                                                      \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                                             \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static void fill(float *data, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = 2 * random_unit(random_philox(9, seed, (uint64_t)i).v[0]) - 1;
}

static graphi_tensor *random_tensor(int rank, const int64_t *dims, uint64_t seed)
{
    float data[MOST];
    graphi_tensor *value = NULL;
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    assert_true(count <= MOST);
    fill(data, count, seed);
    check(graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, rank, dims, data, &value));
    return value;
}

/* A graph under construction; constants are random, in the order in which they are added. */
static struct proto graph;
static uint64_t seed;

static void begin(int rank, const int64_t *dims)
{
    memset(&graph, 0, sizeof graph);
    seed = 1;
    graph_port(&graph, 11, "x", F32, rank, dims);
    graph_port(&graph, 12, "y", F32, -1, NULL);
}

static void weights(const char *name, int rank, const int64_t *dims)
{
    float data[MOST];
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    assert_true(count <= MOST);
    fill(data, count, 100 + seed++);
    graph_constant(&graph, name, F32, rank, dims, data, (size_t)count * 4);
}

static void positive(const char *name, int64_t count)
{
    float data[MOST];
    fill(data, count, 100 + seed++);
    for (int64_t i = 0; i < count; i++)
        data[i] = data[i] * data[i] + 0.5f;
    graph_constant(&graph, name, F32, 1, &count, data, (size_t)count * 4);
}

static void numbers(const char *name, int count, const int64_t *list)
{
    graph_constant(&graph, name, I64, 1, (int64_t[]){count}, list, (size_t)count * 8);
}

static void scalar(const char *name, float value)
{
    graph_constant(&graph, name, F32, 0, NULL, &value, 4);
}

static void op(const char *type, const char *in, const char *out)
{
    graph_node(&graph, type, in, out);
}

static void add(const struct proto *node)
{
    proto_add(&graph, 1, node);
}

/* Runs the model both ways and compares all outputs; how many nodes the plan has of it. `planned` false: there must be
 * no plan. */
static void agree(int64_t opset, bool planned)
{
    const struct proto bytes = model_of(&graph, opset);
    struct onnx_model *model;
    struct flow *flow;
    bool done;
    check(onnx_model_load("test", bytes.data, bytes.size, NULL, false, &model));
    const size_t count = model->values.count;
    graphi_tensor **fast = mem_zalloc_array(count + 1, sizeof *fast),
                  **slow = mem_zalloc_array(count + 1, sizeof *slow);
    for (size_t i = 0; i < model->graph->inputs.count; i++) {
        const int number = model->graph->inputs.data[i];
        const struct model_value *port = &model->values.data[number];
        if (port->constant)
            continue;
        if (port->type == GRAPHI_ELEMENT_INT64)
            check(value_number("test", GRAPHI_ELEMENT_INT64, 7, &fast[number]));
        else
            fast[number] = random_tensor(port->rank, port->dims, 50 + i);
        slow[number] = value_keep(fast[number]);
    }
    check(flow_create(model, 1, &flow));
    for (int again = 0; again < 2; again++) {
        check(flow_run(flow, fast, &done));
        if (done != planned) {
            struct flow_report report;
            check(flow_inspect(model, &report));
            fail_msg("found %s plan, expected another: %s", done ? "a" : "no", report.reason);
        }
    }
    check(interpreter_run(&(struct interpreter){.model = model, .loop_limit = 100, .values = slow}));
    for (size_t i = 0; planned && i < model->graph->outputs.count; i++) {
        const int number = model->graph->outputs.data[i];
        const graphi_tensor *expected = slow[number] ? slow[number] : model->values.data[number].constant;
        check(graphi_tensor_compare(fast[number], expected, 1e-4, 1e-5));
    }
    flow_free(flow);
    for (size_t i = 0; i < count; i++) {
        value_drop(fast[i]);
        value_drop(slow[i]);
    }
    mem_free(fast);
    mem_free(slow);
    onnx_model_free(model);
}

static void element_wise(void **state)
{
    static const char *const names[] = {"Abs",     "Neg",         "Floor",     "Exp",        "Tanh",
                                        "Sigmoid", "Relu",        "Softplus",  "Identity",   "LeakyRelu",
                                        "Elu",     "HardSigmoid", "HardSwish", "Reciprocal", "Dropout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin(DIMS(2, 3, 5));
        op(names[i], "x", "y");
        agree(17, true);
    }
    static const char *const positives[] = {"Sqrt", "Log"};
    for (int i = 0; i < 2; i++) {
        begin(DIMS(7));
        op("Exp", "x", "a");
        op(positives[i], "a", "y");
        agree(17, true);
    }
    static const char *const pairs[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        begin(DIMS(2, 3, 4, 5));
        weights("b", DIMS(3, 1, 5));
        op(pairs[i], "x b", "a");
        op(pairs[i], "b a", "y");
        agree(17, true);
    }
    begin(DIMS(4, 3));
    scalar("least", -0.25f);
    scalar("most", 0.5f);
    op("Clip", "x least most", "y");
    agree(17, true);
}

static void conv(const char *in, const char *out, int64_t stride, int64_t dilation, int64_t group)
{
    struct proto node = node_of("Conv", in, out);
    node_ints(&node, "pads", 4, (int64_t[]){1, 0, 1, 2});
    node_ints(&node, "strides", 2, (int64_t[]){stride, 1});
    node_ints(&node, "dilations", 2, (int64_t[]){1, dilation});
    node_int(&node, "group", group);
    add(&node);
}

static void convolutions(void **state)
{
    for (int64_t group = 1; group <= 2; group++)
        for (int64_t step = 1; step <= 2; step++) {
            begin(DIMS(2, 4, 7, 6));
            weights("w", DIMS(6, 4 / group, 3, 2));
            weights("b", DIMS(6));
            conv("x w b", "y", step, step, group);
            agree(17, true);
        }
    begin(DIMS(2, 3, 9)); /* one spatial dimension, padding by a rule */
    weights("w", DIMS(5, 3, 4));
    struct proto node = node_of("Conv", "x w", "y");
    node_text(&node, "auto_pad", "SAME_LOWER");
    add(&node);
    agree(17, true);
    begin(DIMS(2, 2, 250)); /* a window that is long, by blocks of the stride */
    weights("w", DIMS(3, 2, 96));
    node = node_of("Conv", "x w", "y");
    node_ints(&node, "strides", 1, (int64_t[]){32});
    add(&node);
    agree(17, true);
    begin(DIMS(1, 4, 5, 5)); /* depthwise */
    weights("w", DIMS(4, 1, 3, 3));
    node = node_of("Conv", "x w", "y");
    node_int(&node, "group", 4);
    add(&node);
    agree(17, true);
}

static void pool(const char *type, const char *in, const char *out, int64_t up, int64_t counts)
{
    struct proto node = node_of(type, in, out);
    node_ints(&node, "kernel_shape", 2, (int64_t[]){3, 2});
    node_ints(&node, "strides", 2, (int64_t[]){2, 2});
    node_ints(&node, "pads", 4, (int64_t[]){1, 0, 1, 1});
    if (up)
        node_int(&node, "ceil_mode", 1);
    if (counts)
        node_int(&node, "count_include_pad", 1);
    add(&node);
}

static void pools(void **state)
{
    for (int64_t up = 0; up < 2; up++) {
        begin(DIMS(2, 3, 8, 7));
        pool("MaxPool", "x", "y", up, 0);
        agree(17, true);
        begin(DIMS(2, 3, 8, 7));
        pool("AveragePool", "x", "y", up, 0);
        agree(17, true);
    }
    begin(DIMS(2, 3, 8, 7));
    pool("AveragePool", "x", "y", 0, 1);
    agree(17, true);
    static const char *const global[] = {"GlobalAveragePool", "GlobalMaxPool"};
    for (int i = 0; i < 2; i++) {
        begin(DIMS(2, 3, 4, 5));
        op(global[i], "x", "y");
        agree(17, true);
    }
    begin(DIMS(1, 6, 3, 2));
    struct proto node = node_of("LRN", "x", "y");
    node_int(&node, "size", 3);
    add(&node);
    agree(17, true);
}

/* What a residual network has: layouts meet at additions, concatenations, slices and reshapes. */
static void layouts(void **state)
{
    begin(DIMS(2, 4, 6, 5));
    weights("w", DIMS(4, 4, 3, 3));
    weights("v", DIMS(4, 1, 1));
    weights("f", DIMS(8, 5));
    positive("scale", 4);
    positive("shift", 4);
    positive("mean", 4);
    positive("variance", 4);
    numbers("starts", 1, (int64_t[]){1});
    numbers("ends", 1, (int64_t[]){-1});
    numbers("axes", 1, (int64_t[]){2});
    numbers("pads", 8, (int64_t[]){0, 1, 0, 2, 0, 0, 1, 0});
    conv("x w", "a", 1, 1, 1);
    op("BatchNormalization", "a scale shift mean variance", "b");
    op("Relu", "b", "c");
    op("Mul", "c v", "d");
    op("Add", "d x", "e");
    struct proto node = node_of("Concat", "e x", "g");
    node_int(&node, "axis", 1);
    add(&node);
    op("GlobalAveragePool", "g", "h");
    op("Flatten", "h", "i");
    op("MatMul", "i f", "j");
    op("Softmax", "j", "y");
    graph_port(&graph, 12, "s", F32, -1, NULL);
    op("Slice", "e starts ends axes", "k");
    op("Pad", "k pads", "s");
    graph_port(&graph, 12, "t", F32, -1, NULL);
    node = node_of("Transpose", "e", "t");
    node_ints(&node, "perm", 4, (int64_t[]){2, 0, 3, 1});
    add(&node);
    graph_port(&graph, 12, "r", F32, -1, NULL);
    op("Shape", "e", "shape");
    op("Reshape", "i shape2", "r");
    numbers("shape2", 2, (int64_t[]){-1, 2});
    graph_port(&graph, 12, "shape", I64, -1, NULL);
    agree(17, true);
}

static void moves(void **state)
{
    begin(DIMS(2, 3, 4));
    numbers("one", 1, (int64_t[]){1});
    op("Unsqueeze", "x one", "a");
    op("Squeeze", "a one", "z");
    struct proto node = node_of("Cast", "z", "b");
    node_int(&node, "to", F32);
    add(&node);
    node = node_of("Split", "b", "c d");
    node_int(&node, "axis", 2);
    add(&node);
    op("Sub", "c d", "e");
    node = node_of("Gather", "e one", "g");
    node_int(&node, "axis", 1);
    add(&node);
    static const char *const modes[] = {"edge", "reflect"};
    static const char *const outs[] = {"p", "q"};
    for (int i = 0; i < 2; i++) {
        graph_port(&graph, 12, outs[i], F32, -1, NULL);
        node = node_of("Pad", "x pads", outs[i]);
        node_text(&node, "mode", modes[i]);
        add(&node);
    }
    numbers("pads", 6, (int64_t[]){0, 2, 3, 1, 0, 2});
    op("Expand", "g size2", "y");
    numbers("size2", 3, (int64_t[]){2, 5, 2});
    agree(17, true);
}

static void products(void **state)
{
    for (int64_t trans = 0; trans < 2; trans++) {
        begin(2, trans ? (int64_t[]){6, 3} : (int64_t[]){3, 6});
        weights("w", 2, trans ? (int64_t[]){5, 6} : (int64_t[]){6, 5});
        weights("c", DIMS(5));
        struct proto node = node_of("Gemm", "x w c", "y");
        node_int(&node, "transA", trans);
        node_int(&node, "transB", trans);
        add(&node);
        agree(17, true);
    }
    begin(DIMS(2, 3, 4, 6));
    weights("w", DIMS(3, 6, 5));
    op("MatMul", "x w", "y");
    agree(17, true);
    static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceSumSquare"};
    for (int i = 0; i < 4; i++)
        for (int64_t keeps = 0; keeps < 2; keeps++) {
            begin(DIMS(2, 3, 4, 5));
            numbers("axes", 2, (int64_t[]){-1, 2});
            op("GlobalMaxPool", "x", "m");
            op("Sub", "x m", "a");
            struct proto node = node_of(names[i], "a axes", "y");
            node_int(&node, "keepdims", keeps);
            add(&node);
            agree(18, true);
        }
    for (int64_t axis = 0; axis < 3; axis++)
        for (int64_t opset = 11; opset <= 13; opset += 2) {
            begin(DIMS(2, 3, 4));
            struct proto node = node_of(axis == 1 ? "LogSoftmax" : "Softmax", "x", "y");
            node_int(&node, "axis", axis);
            add(&node);
            agree(opset, true);
        }
}

static void recurrent(const char *type, int64_t gates, const char *direction, int64_t after)
{
    const int64_t d = strcmp(direction, "bidirectional") == 0 ? 2 : 1, states = gates == 4;
    begin(DIMS(5, 2, 3));
    weights("w", DIMS(d, gates * 4, 3));
    weights("r", DIMS(d, gates * 4, 4));
    weights("b", DIMS(d, gates * 8));
    weights("h", DIMS(d, 2, 4));
    weights("c", DIMS(d, 2, 4));
    struct proto node = node_of(type, states ? "x w r b - h c" : "x w r b - h", states ? "y z k" : "y z");
    node_int(&node, "hidden_size", 4);
    node_text(&node, "direction", direction);
    if (gates == 3)
        node_int(&node, "linear_before_reset", after);
    add(&node);
    graph_port(&graph, 12, "z", F32, -1, NULL);
    if (states)
        graph_port(&graph, 12, "k", F32, -1, NULL);
    agree(14, true);
}

static void recurrences(void **state)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (int i = 0; i < 3; i++) {
        recurrent("LSTM", 4, directions[i], 0);
        recurrent("GRU", 3, directions[i], 0);
        recurrent("GRU", 3, directions[i], 1);
        recurrent("RNN", 1, directions[i], 0);
    }
}

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
        agree(17, true);
    }
    begin(DIMS(1)); /* a condition that is computed */
    struct proto cast = node_of("Cast", "x", "is"), node = node_of("If", "is", "y");
    node_int(&cast, "to", 9);
    add(&cast);
    node_graph(&node, "then_branch", &yes);
    node_graph(&node, "else_branch", &no);
    add(&node);
    agree(17, false);
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

/* Operators without a lowering, computed indices and other types: the interpreter's. */
static void stays(void **state)
{
    begin(DIMS(2, 3));
    op("Sin", "x", "y");
    agree(17, false);
    begin(DIMS(4));
    struct proto node = node_of("Cast", "x", "i");
    node_int(&node, "to", I64);
    add(&node);
    op("Gather", "x i", "y");
    agree(17, false);
    begin(DIMS(2, 3)); /* a plan could have the first of them */
    op("Relu", "x", "a");
    op("Erf", "a", "y");
    agree(17, false);
    begin(DIMS(0, 3)); /* no elements */
    op("Relu", "x", "y");
    agree(17, false);
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
    graphi_session *session = small_session(false);
    check(graphi_session_inspect_plan(session, &plan));
    assert_int_equal(plan.planned, 2);
    assert_string_equal(plan.reason, "");
    graphi_session_close(session);
    begin(DIMS(2, 3));
    op("Relu", "x", "a");
    op("Erf", "a", "y");
    const struct proto model = model_of(&graph, 17);
    check(graphi_session_open(NULL, model.data, model.size, NULL, &session));
    check(graphi_session_inspect_plan(session, &plan));
    assert_int_equal(plan.planned, 0);
    assert_non_null(strstr(plan.reason, "Erf"));
    graphi_session_operator relu, erf;
    assert_true(graphi_session_operator_at(session, 0, &relu) && graphi_session_operator_at(session, 1, &erf));
    assert_true(relu.planned && !erf.planned);
    graphi_session_close(session);
    session = NULL;
    assert_int_equal(
        graphi_session_open(NULL, model.data, model.size, &(graphi_session_options){.threads = -1}, &session),
        GRAPHI_INVALID);
    assert_int_equal(graphi_session_inspect_plan(NULL, &plan), GRAPHI_INVALID);
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
        cmocka_unit_test(element_wise), cmocka_unit_test(convolutions), cmocka_unit_test(pools),
        cmocka_unit_test(layouts),      cmocka_unit_test(moves),        cmocka_unit_test(products),
        cmocka_unit_test(recurrences),  cmocka_unit_test(stays),        cmocka_unit_test(many_threads),
        cmocka_unit_test(branches),     cmocka_unit_test(many_numbers), cmocka_unit_test(reports),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
