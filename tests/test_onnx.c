/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models in sessions: what runs, and what is refused with which words. Models are written here. */
#include "folder.h"
#include "onnx_writer.h"

#include "base/memory.h"
#include "graphi/graphi.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { F32 = 1, I64 = 7, BOOL = 9 };

static graphi_session *open_model(const struct proto *graph, int64_t opset)
{
    const struct proto model = model_of(graph, opset);
    graphi_session *session = NULL;
    const graphi_status status = graphi_session_open(NULL, model.data, model.size, NULL, &session);
    if (status != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return session;
}

static void refused(const struct proto *graph, int64_t opset, graphi_status status, const char *words)
{
    const struct proto model = model_of(graph, opset);
    graphi_session *session = NULL;
    assert_int_equal(graphi_session_open(NULL, model.data, model.size, NULL, &session), status);
    assert_null(session);
    if (!strstr(graphi_message(), words))
        fail_msg("found \"%s\", expected \"%s\" in it", graphi_message(), words);
}

static graphi_tensor *tensor(graphi_element type, int rank, const int64_t *dims, const void *data)
{
    graphi_tensor *value = NULL;
    assert_int_equal(graphi_tensor_create(type, rank, dims, data, &value), GRAPHI_OK);
    return value;
}

static graphi_tensor *floats(int64_t count, const float *data)
{
    return tensor(GRAPHI_ELEMENT_FLOAT32, 1, &count, data);
}
static graphi_tensor *number(int64_t value)
{
    return tensor(GRAPHI_ELEMENT_INT64, 0, NULL, &value);
}

/* The only result of a model of one input "x". */
static graphi_tensor *run_one(const graphi_session *session, graphi_tensor *x)
{
    graphi_tensor *result = NULL;
    const graphi_status status =
        graphi_session_run(session, (const char *const[]){"x"}, (const graphi_tensor *const[]){x}, 1, NULL, 1, &result);
    if (status != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    graphi_tensor_destroy(x);
    return result;
}

static void equals(graphi_tensor *found, int64_t count, const float *expected)
{
    graphi_tensor_info info;
    graphi_tensor_get_info(found, &info);
    assert_int_equal(info.element, GRAPHI_ELEMENT_FLOAT32);
    assert_int_equal(info.count, count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(((const float *)info.data)[i] - expected[i]) <= 1e-5f))
            fail_msg("found %g at %lld, expected %g", (double)((const float *)info.data)[i], (long long)i,
                     (double)expected[i]);
    graphi_tensor_destroy(found);
}

/* y = (x + 1) * x, its nodes in the wrong order, which the file may have. */
static void nodes_are_sorted(void **state)
{
    struct proto graph = {0};
    graph_port(&graph, 11, "x", F32, 1, (int64_t[]){-1});
    graph_constant(&graph, "one", F32, 0, NULL, &(float){1}, 4);
    graph_node(&graph, "Mul", "sum x", "y");
    graph_node(&graph, "Add", "x one", "sum");
    graph_port(&graph, 12, "y", F32, 1, (int64_t[]){-1});
    graphi_session *session = open_model(&graph, 13);
    equals(run_one(session, floats(3, (float[]){1, 2, -3})), 3, (float[]){2, 6, 6});
    graphi_session_port port;
    assert_true(graphi_session_port_at(session, GRAPHI_SESSION_INPUT, 0, &port));
    assert_string_equal(port.symbols[0], "n");
    assert_int_equal(port.dims[0], -1);
    assert_false(graphi_session_port_at(session, GRAPHI_SESSION_INPUT, 1, &port));
    graphi_session_close(session);
}

/* Attributes of older opsets become inputs: the same sums from opset 11 and 13. */
static void older_opsets_are_upgraded(void **state)
{
    for (int64_t opset = 11; opset <= 13; opset += 2) {
        struct proto graph = {0}, node = node_of("ReduceSum", opset < 13 ? "x" : "x axes", "y");
        graph_port(&graph, 11, "x", F32, 2, (int64_t[]){2, 3});
        if (opset < 13)
            node_ints(&node, "axes", 1, (int64_t[]){1});
        else
            graph_constant(&graph, "axes", I64, 1, (int64_t[]){1}, &(int64_t){1}, 8);
        node_int(&node, "keepdims", 0);
        proto_add(&graph, 1, &node);
        graph_port(&graph, 12, "y", F32, 1, (int64_t[]){2});
        graphi_session *session = open_model(&graph, opset);
        graphi_tensor *x = tensor(GRAPHI_ELEMENT_FLOAT32, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6});
        equals(run_one(session, x), 2, (float[]){6, 15});
        graphi_session_close(session);
    }
}

/* Attributes that mean something else since: opset 10 places samples at x / scale, and Hardmax of opset 11 looks along
 * all axes from its own on. onnx's converter (1.23.2) leaves both as they are: findings/onnx-version-converter-*.sh. */
static void older_meanings_are_kept(void **state)
{
    struct proto graph = {0}, resize = node_of("Resize", "x scales", "y"), hardmax = node_of("Hardmax", "x", "y");
    graph_port(&graph, 11, "x", F32, 4, (int64_t[]){1, 1, 1, 4});
    graph_constant(&graph, "scales", F32, 1, (int64_t[]){4}, (float[]){1, 1, 1, 2}, 16);
    node_text(&resize, "mode", "linear");
    proto_add(&graph, 1, &resize);
    graph_port(&graph, 12, "y", F32, 4, (int64_t[]){1, 1, 1, 8});
    graphi_session *session = open_model(&graph, 10);
    equals(run_one(session, tensor(GRAPHI_ELEMENT_FLOAT32, 4, (int64_t[]){1, 1, 1, 4}, (float[]){0, 1, 2, 3})), 8,
           (float[]){0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 3});
    graphi_session_close(session);

    graph = (struct proto){0};
    graph_port(&graph, 11, "x", F32, 3, (int64_t[]){2, 2, 2});
    node_int(&hardmax, "axis", 1);
    proto_add(&graph, 1, &hardmax);
    graph_port(&graph, 12, "y", F32, 3, (int64_t[]){2, 2, 2});
    session = open_model(&graph, 11);
    equals(run_one(session, tensor(GRAPHI_ELEMENT_FLOAT32, 3, (int64_t[]){2, 2, 2}, (float[]){1, 2, 3, 9, 8, 1, 2, 3})),
           8, (float[]){0, 0, 0, 1, 1, 0, 0, 0});
    graphi_session_close(session);
}

/* An If whose branches read the value outside. */
static void branches_read_outside(void **state)
{
    struct proto graph = {0}, yes = {0}, no = {0}, node = node_of("If", "more", "y");
    graph_node(&yes, "Neg", "x", "a");
    graph_port(&yes, 12, "a", F32, -1, NULL);
    graph_node(&no, "Abs", "x", "b");
    graph_port(&no, 12, "b", F32, -1, NULL);
    graph_port(&graph, 11, "x", F32, 1, (int64_t[]){2});
    graph_node(&graph, "ReduceSum", "x", "sum");
    graph_constant(&graph, "zero", F32, 0, NULL, &(float){0}, 4);
    graph_node(&graph, "Greater", "sum zero", "more");
    node_graph(&node, "then_branch", &yes);
    node_graph(&node, "else_branch", &no);
    proto_add(&graph, 1, &node);
    graph_port(&graph, 12, "y", F32, -1, NULL);
    graphi_session *session = open_model(&graph, 13);
    equals(run_one(session, floats(2, (float[]){3, -1})), 2, (float[]){-3, 1});
    equals(run_one(session, floats(2, (float[]){-3, 1})), 2, (float[]){3, 1});
    graphi_session_close(session);
}

/* A Loop that adds x to what it carries, trip by trip, and collects it. */
static struct proto loop_graph(bool endless)
{
    struct proto graph = {0}, body = {0}, node = node_of("Loop", endless ? "- - x" : "m - x", "last all");
    graph_port(&body, 11, "i", I64, 0, NULL);
    graph_port(&body, 11, "on", BOOL, 0, NULL);
    graph_port(&body, 11, "v", F32, 1, (int64_t[]){2});
    graph_node(&body, "Add", "v x", "w");
    graph_node(&body, "Identity", "on", "go");
    graph_node(&body, "Identity", "w", "scan");
    graph_port(&body, 12, "go", BOOL, 0, NULL);
    graph_port(&body, 12, "w", F32, 1, (int64_t[]){2});
    graph_port(&body, 12, "scan", F32, 1, (int64_t[]){2});
    graph_port(&graph, 11, "x", F32, 1, (int64_t[]){2});
    graph_port(&graph, 11, "m", I64, 0, NULL);
    node_graph(&node, "body", &body);
    proto_add(&graph, 1, &node);
    graph_port(&graph, 12, "last", F32, 1, (int64_t[]){2});
    graph_port(&graph, 12, "all", F32, 2, (int64_t[]){-1, 2});
    return graph;
}

static graphi_status run_loop(const graphi_session *session, int64_t trips, graphi_tensor **results)
{
    graphi_tensor *in[2] = {floats(2, (float[]){1, 2}), number(trips)};
    const graphi_status status = graphi_session_run(session, (const char *const[]){"x", "m"},
                                                    (const graphi_tensor *const *)in, 2, NULL, 2, results);
    graphi_tensor_destroy(in[0]);
    graphi_tensor_destroy(in[1]);
    return status;
}

static void loops_carry_and_collect(void **state)
{
    const struct proto graph = loop_graph(false);
    graphi_session *session = open_model(&graph, 13);
    graphi_tensor *results[2];
    graphi_tensor_info info;
    assert_int_equal(run_loop(session, 2, results), GRAPHI_OK);
    equals(results[0], 2, (float[]){3, 6});
    equals(results[1], 4, (float[]){2, 4, 3, 6});
    for (int64_t none = -1; none <= 0; none++) { /* no trips: what it began with, and (0, 2) */
        assert_int_equal(run_loop(session, none, results), GRAPHI_OK);
        equals(results[0], 2, (float[]){1, 2});
        graphi_tensor_get_info(results[1], &info);
        assert_int_equal(info.rank, 2);
        assert_int_equal(info.dims[0], 0);
        assert_int_equal(info.dims[1], 2);
        graphi_tensor_destroy(results[1]);
    }
    graphi_session_close(session);
}

/* Scan of opset 8: two rows of three and one steps are summed up; the shorter one ends in zeros. A length beyond the
 * steps is refused. */
static void batches_are_scanned(void **state)
{
    for (int64_t length = 1; length <= 4; length += 3) {
        struct proto graph = {0}, body = {0}, node = node_of("Scan", "lengths start rows", "last all");
        graph_port(&body, 11, "s", F32, 0, NULL);
        graph_port(&body, 11, "v", F32, 0, NULL);
        graph_node(&body, "Add", "s v", "t");
        graph_node(&body, "Identity", "t", "u");
        graph_port(&body, 12, "t", F32, 0, NULL);
        graph_port(&body, 12, "u", F32, 0, NULL);
        graph_port(&graph, 11, "x", F32, 1, (int64_t[]){6});
        graph_constant(&graph, "shape", I64, 1, (int64_t[]){2}, (int64_t[]){2, 3}, 16);
        graph_constant(&graph, "lengths", I64, 1, (int64_t[]){2}, (int64_t[]){3, length}, 16);
        graph_constant(&graph, "start", F32, 1, (int64_t[]){2}, (float[]){0, 10}, 8);
        graph_node(&graph, "Reshape", "x shape", "rows");
        node_graph(&node, "body", &body);
        node_int(&node, "num_scan_inputs", 1);
        proto_add(&graph, 1, &node);
        graph_port(&graph, 12, "all", F32, -1, NULL);
        graphi_session *session = open_model(&graph, 8);
        graphi_tensor *x = floats(6, (float[]){1, 2, 3, 4, 5, 6}), *result = NULL;
        if (length == 1)
            equals(run_one(session, x), 6, (float[]){1, 3, 6, 14, 0, 0});
        else {
            assert_int_equal(graphi_session_run(session, (const char *const[]){"x"}, (const graphi_tensor *const[]){x},
                                                1, NULL, 1, &result),
                             GRAPHI_INVALID);
            assert_non_null(strstr(graphi_message(), "sequence_lens"));
            graphi_tensor_destroy(x);
        }
        graphi_session_close(session);
    }
}

/* A Loop that never ends is ended by the limit, which the message tells. */
static void endless_loops_end(void **state)
{
    const struct proto graph = loop_graph(true), model = model_of(&graph, 13);
    const graphi_session_options options = {.loop_limit = 50};
    graphi_session *session;
    graphi_tensor *results[2] = {NULL, NULL};
    assert_int_equal(graphi_session_open(NULL, model.data, model.size, &options, &session), GRAPHI_OK);
    assert_int_equal(run_loop(session, 1, results), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "more than 50 trips"));
    assert_null(results[0]);
    graphi_session_close(session);
}

/* A function whose attribute refers to the call's, or is the function's own default. */
static void functions_are_inlined(void **state)
{
    struct proto graph = {0}, function = {0}, inner = node_of("LeakyRelu", "a", "b"), reference = {0}, fallback = {0};
    struct proto call = node_of("Leak", "x", "y"), given = {0};
    const struct proto import = opset_of("", 16), own = opset_of("mine", 1);
    proto_text(&reference, 1, "alpha");
    proto_text(&reference, 21, "slope");
    proto_int(&reference, 20, 1);
    proto_add(&inner, 5, &reference);
    proto_text(&function, 1, "Leak");
    proto_text(&function, 4, "a");
    proto_text(&function, 5, "b");
    proto_add(&function, 7, &inner);
    proto_add(&function, 9, &import);
    proto_text(&function, 10, "mine");
    proto_text(&fallback, 1, "slope");
    proto_varint(&fallback, 2 << 3 | 5);
    memcpy(fallback.data + fallback.size, &(float){0.5f}, 4);
    fallback.size += 4;
    proto_int(&fallback, 20, 1);
    proto_add(&function, 11, &fallback);
    proto_text(&call, 7, "mine");
    for (int defaults = 0; defaults < 2; defaults++) {
        struct proto one = call;
        if (!defaults) {
            given = fallback;
            assert_int_equal(given.data[7], 2 << 3 | 5); /* behind the name */
            memcpy(given.data + 8, &(float){0.25f}, 4);
            proto_add(&one, 5, &given);
        }
        graph = (struct proto){0};
        graph_port(&graph, 11, "x", F32, 1, (int64_t[]){2});
        proto_add(&graph, 1, &one);
        graph_port(&graph, 12, "y", F32, 1, (int64_t[]){2});
        struct proto model = model_of(&graph, 16);
        proto_add(&model, 8, &own);
        proto_add(&model, 25, &function);
        graphi_session *session;
        if (graphi_session_open(NULL, model.data, model.size, NULL, &session) != GRAPHI_OK)
            fail_msg("%s", graphi_message());
        equals(run_one(session, floats(2, (float[]){-4, 4})), 2, (float[]){defaults ? -2 : -1, 4});
        graphi_session_close(session);
    }
}

static void bad_graphs_are_refused(void **state)
{
    struct proto circle = {0}, twice = {0}, missing = {0}, giant = {0}, short_data = {0}, none = {0};
    graph_port(&circle, 11, "x", F32, 1, (int64_t[]){2});
    graph_node(&circle, "Add", "x b", "a");
    graph_node(&circle, "Neg", "a", "b");
    graph_port(&circle, 12, "b", F32, 1, (int64_t[]){2});
    refused(&circle, 13, GRAPHI_INVALID, "circle through node");
    graph_port(&twice, 11, "x", F32, 1, (int64_t[]){2});
    graph_node(&twice, "Neg", "x", "a");
    graph_node(&twice, "Abs", "x", "a");
    refused(&twice, 13, GRAPHI_INVALID, "\"a\" twice");
    graph_node(&missing, "Neg", "nobody", "a");
    refused(&missing, 13, GRAPHI_INVALID, "reads \"nobody\"");
    graph_constant(&giant, "w", F32, 3, (int64_t[]){INT64_MAX, INT64_MAX, 2}, "abcd", 4);
    refused(&giant, 13, GRAPHI_INVALID, "initializer \"w\"");
    graph_constant(&short_data, "w", F32, 1, (int64_t[]){2}, "abcd", 4);
    refused(&short_data, 13, GRAPHI_INVALID, "expected 8");
    refused(&none, 5, GRAPHI_UNSUPPORTED, "opset 5");
    refused(&none, 29, GRAPHI_UNSUPPORTED, "opset 29");
}

/* All of them are named at once, with domain and version. */
static void unsupported_operators_are_named(void **state)
{
    struct proto graph = {0}, other = node_of("Thing", "x", "b"), unknown = node_of("Neg", "b", "c");
    graph_port(&graph, 11, "x", F32, 1, (int64_t[]){2});
    graph_node(&graph, "NoSuch", "x", "a");
    node_int(&unknown, "speed", 3);
    proto_add(&graph, 1, &other);
    proto_add(&graph, 1, &unknown);
    graph_port(&graph, 12, "c", F32, 1, (int64_t[]){2});
    refused(&graph, 13, GRAPHI_UNSUPPORTED,
            "\"a\" (NoSuch of domain \"\" version 13), \"b\" (Thing of domain \"\" version 13), "
            "\"c\" (Neg of domain \"\" version 13, attribute speed)");
}

/* An attribute without a name is none of the operator's. */
static void nameless_attributes_are_refused(void **state)
{
    struct proto graph = {0}, node = node_of("Neg", "x", "y");
    graph_port(&graph, 11, "x", F32, 1, (int64_t[]){2});
    node_int(&node, "", 3);
    proto_add(&graph, 1, &node);
    graph_port(&graph, 12, "y", F32, 1, (int64_t[]){2});
    refused(&graph, 13, GRAPHI_UNSUPPORTED, "\"y\" (Neg of domain");
}

static void inputs_are_checked(void **state)
{
    struct proto graph = {0};
    graph_port(&graph, 11, "x", F32, 2, (int64_t[]){2, -1});
    graph_node(&graph, "Neg", "x", "y");
    graph_port(&graph, 12, "y", F32, 2, (int64_t[]){2, -1});
    graphi_session *session = open_model(&graph, 13);
    graphi_tensor *good = tensor(GRAPHI_ELEMENT_FLOAT32, 2, (int64_t[]){2, 0}, NULL), *result = NULL;
    graphi_tensor *type = tensor(GRAPHI_ELEMENT_INT64, 2, (int64_t[]){2, 1}, (int64_t[]){1, 2});
    graphi_tensor *size = tensor(GRAPHI_ELEMENT_FLOAT32, 2, (int64_t[]){1, 2}, (float[]){1, 2});
    const struct {
        const char *names[2];
        const graphi_tensor *values[2];
        size_t count;
        const char *output, *words;
    } cases[] = {
        {{"x"}, {type}, 1, "y", "found int64 [2, 1] as input \"x\", expected float32 [2, -1]"},
        {{"x"}, {size}, 1, "y", "found float32 [1, 2] as input \"x\""},
        {{"z"}, {good}, 1, "y", "found input \"z\", expected one of x"},
        {{"x", "x"}, {good, good}, 2, "y", "\"x\" twice"},
        {{"x"}, {good}, 0, "y", "found no input \"x\""},
        {{"x"}, {good}, 1, "z", "found output \"z\", expected one of y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            graphi_session_run(session, cases[i].names, cases[i].values, cases[i].count, &cases[i].output, 1, &result),
            GRAPHI_INVALID);
        assert_null(result);
        if (!strstr(graphi_message(), cases[i].words))
            fail_msg("found \"%s\", expected \"%s\" in it", graphi_message(), cases[i].words);
    }
    assert_int_equal(
        graphi_session_run(session, cases[0].names, (const graphi_tensor *const[]){good}, 1, NULL, 1, &result),
        GRAPHI_OK);
    graphi_tensor_destroy(result);
    graphi_tensor_destroy(good);
    graphi_tensor_destroy(type);
    graphi_tensor_destroy(size);
    graphi_session_close(session);
}

/* External data lies in the model's folder, whatever the file says. */
static void external_data_is_confined(void **state)
{
    static const struct {
        const char *location, *offset;
        graphi_status status;
        const char *words;
    } cases[] = {
        {"data.bin", "4", GRAPHI_OK, ""},
        {"data.bin", "8", GRAPHI_INVALID, "12 bytes of external data"},
        {"../outside.bin", "0", GRAPHI_INVALID, "in the model's folder"},
        {"link.bin", "0", GRAPHI_INVALID, "in the model's folder"},
        {"none.bin", "0", GRAPHI_IO, "none.bin"},
    };
    struct folder folder;
    folder_make(&folder);
    assert_int_equal(mkdir(folder_name(&folder, "inner"), 0700), 0);
    folder_write(&folder, "inner/data.bin", (float[]){0, 5, 6}, 12);
    folder_write(&folder, "outside.bin", (float[]){1, 2}, 8);
    assert_int_equal(symlink("../outside.bin", folder_name(&folder, "inner/link.bin")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct proto graph = {0}, t = {0};
        proto_int(&t, 1, 2);
        proto_int(&t, 2, F32);
        proto_text(&t, 8, "w");
        const char *entries[][2] = {{"location", cases[i].location}, {"offset", cases[i].offset}, {"length", "8"}};
        for (int k = 0; k < 3; k++) {
            struct proto entry = {0};
            proto_text(&entry, 1, entries[k][0]);
            proto_text(&entry, 2, entries[k][1]);
            proto_add(&t, 13, &entry);
        }
        proto_int(&t, 14, 1);
        proto_add(&graph, 5, &t);
        graph_port(&graph, 11, "x", F32, 1, (int64_t[]){2});
        graph_node(&graph, "Add", "x w", "y");
        graph_port(&graph, 12, "y", F32, 1, (int64_t[]){2});
        const struct proto model = model_of(&graph, 13);
        graphi_session *session = NULL;
        const char *path = folder_write(&folder, "inner/m.onnx", model.data, model.size);
        assert_int_equal(graphi_session_open(path, NULL, 0, NULL, &session), cases[i].status);
        if (session)
            equals(run_one(session, floats(2, (float[]){1, 1})), 2, (float[]){6, 7});
        else if (!strstr(graphi_message(), cases[i].words))
            fail_msg("found \"%s\", expected \"%s\" in it", graphi_message(), cases[i].words);
        graphi_session_close(session);
    }
    folder_remove(&folder);
}

static void *run_often(void *session)
{
    for (int i = 0; i < 200; i++) {
        graphi_tensor *results[2];
        assert_int_equal(run_loop(session, 3, results), GRAPHI_OK);
        equals(results[0], 2, (float[]){4, 8});
        graphi_tensor_destroy(results[1]);
    }
    return NULL;
}

static void threads_share_a_session(void **state)
{
    const struct proto graph = loop_graph(false);
    graphi_session *session = open_model(&graph, 13);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, session), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    graphi_session_close(session);
}

/* Whichever allocation fails: MEMORY, and nothing is lost. */
static void memory_may_run_out(void **state)
{
    const struct proto graph = loop_graph(false), model = model_of(&graph, 13);
    for (long n = 0;; n++) {
        graphi_session *session = NULL;
        graphi_tensor *results[2] = {NULL, NULL}, *in[2] = {floats(2, (float[]){1, 2}), number(2)};
        mem_fail_after(n);
        graphi_status status = graphi_session_open(NULL, model.data, model.size, NULL, &session);
        if (status == GRAPHI_OK)
            status = graphi_session_run(session, (const char *const[]){"x", "m"}, (const graphi_tensor *const *)in, 2,
                                        NULL, 2, results);
        mem_fail_after(-1);
        for (int i = 0; i < 2; i++) {
            graphi_tensor_destroy(results[i]);
            graphi_tensor_destroy(in[i]);
        }
        graphi_session_close(session);
        if (status == GRAPHI_OK)
            break;
        assert_true(status == GRAPHI_MEMORY || status == GRAPHI_INVALID); /* the parser tells no memory as no message */
        assert_true(n < 2000);
    }
}

/* Every truncation of a file is refused or opens; none crashes. */
static void truncated_files_are_refused(void **state)
{
    const struct proto graph = loop_graph(false), model = model_of(&graph, 13);
    for (size_t size = 0; size < model.size; size++) {
        graphi_session *session = NULL;
        if (graphi_session_open(NULL, model.data, size, NULL, &session) == GRAPHI_OK)
            assert_true(size > model.size - 8); /* without its opset, which nothing then reads */
        graphi_session_close(session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_sorted),
        cmocka_unit_test(older_opsets_are_upgraded),
        cmocka_unit_test(older_meanings_are_kept),
        cmocka_unit_test(branches_read_outside),
        cmocka_unit_test(loops_carry_and_collect),
        cmocka_unit_test(batches_are_scanned),
        cmocka_unit_test(endless_loops_end),
        cmocka_unit_test(functions_are_inlined),
        cmocka_unit_test(bad_graphs_are_refused),
        cmocka_unit_test(unsupported_operators_are_named),
        cmocka_unit_test(nameless_attributes_are_refused),
        cmocka_unit_test(inputs_are_checked),
        cmocka_unit_test(external_data_is_confined),
        cmocka_unit_test(threads_share_a_session),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(truncated_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
