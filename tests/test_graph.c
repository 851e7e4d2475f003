/* SPDX-License-Identifier: Apache-2.0 */
/* The graph layer: builder and its errors, types, printing, hash, rewriting, regions, differentiation, optimizers. */
#include "graph/graph.h"

#include "graph/op.h"
#include "graphi/ops.h"
#include "passes/passes.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "reference.h"

void graphi_free(void *pointer); /* machine.h */

/* Of small() below. It changes only when the hash or the operations of that graph do: stored plans are then refused. */
#define HASH_OF_SMALL 0xb7a13f83942c6118ull

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    return g;
}

static graphi_value op(graphi_graph *g, const char *kind, int n, const graphi_value *in)
{
    return graphi_op(g, kind, n, in, 0, NULL);
}
#define OP(kind, ...)                                                                                                  \
    op(g, kind, (int)(sizeof((graphi_value[]){__VA_ARGS__}) / sizeof(graphi_value)), (graphi_value[]){__VA_ARGS__})

static graphi_value input(graphi_graph *g, const char *name, int64_t rows, int64_t cols)
{
    return graphi_input(g, name, GRAPHI_F32, 2, (int64_t[]){rows, cols});
}

static graphi_value parameter(graphi_graph *g, const char *name, int64_t rows, int64_t cols)
{
    return graphi_parameter(g, name, GRAPHI_F32, 2, (int64_t[]){rows, cols}, NULL);
}

static graphi_value sum(graphi_graph *g, graphi_value x)
{
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    return graphi_op(g, "sum_to", 1, &x, 1, &none);
}

static void broken(graphi_graph *g, const char *message)
{
    assert_int_not_equal(graphi_graph_status(g), GRAPHI_OK);
    assert_string_equal(graphi_message(), message);
    graphi_graph_destroy(g);
}

/* A message that does not name node, shapes and expectation leaves the user searching; a later error must not hide the
 * first. */
static void errors_are_sticky_and_exact(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = input(g, "x", 64, 512), w = parameter(g, "w", 256, 512);
    graphi_scope(g, "layer2/t7");
    graphi_value y = OP("add", x, w);
    assert_int_equal(y, GRAPHI_NONE);
    assert_int_equal(OP("tanh", y), GRAPHI_NONE);
    assert_int_equal(input(g, "x", 1, 1), GRAPHI_NONE);
    graphi_output(g, "y", y);
    assert_int_equal(g->outputs.count, 0);
    broken(g, "INVALID: add 'layer2/t7' (node 0): found float32[64,512] with float32[256,512], expected shapes that "
              "broadcast");

    g = new_graph();
    graphi_op(g, "tahn", 0, NULL, 0, NULL);
    broken(g, "INVALID: operation: found kind 'tahn', expected one of docs/operations.md");

    g = new_graph();
    x = input(g, "x", 2, 2);
    OP("add", x);
    broken(g, "INVALID: add (node 0): found 1 inputs, expected 2");

    g = new_graph();
    x = input(g, "x", 2, 2);
    OP("add", x, 17);
    broken(g, "INVALID: add (node 0): found value 17 as input 1, expected a value of this graph");

    g = new_graph();
    x = input(g, "x", 2, 2);
    graphi_op(g, "tanh", 1, &x, 1, &(graphi_attribute){.name = "axis"});
    broken(g, "INVALID: tanh (node 0): found attribute 'axis', expected one that the operation has");

    g = new_graph();
    graphi_op(g, "delay", 0, NULL, 1, &(graphi_attribute){.name = "nanoseconds", .type = GRAPHI_INTS});
    broken(g, "INVALID: delay (node 0): found a list of integers as attribute 'nanoseconds', expected an integer");

    g = new_graph();
    x = input(g, "x", 2, 2);
    graphi_op(g, "slice", 1, &x, 0, NULL);
    broken(g, "INVALID: slice (node 0): found no attribute 'axis', expected it");

    g = new_graph();
    input(g, "x", 2, 2);
    parameter(g, "x", 2, 2);
    broken(g, "INVALID: parameter 'x': found a name already in use, expected a unique one");

    g = new_graph();
    input(g, "x", 2, 0);
    broken(g, "INVALID: input 'x': found dimension 1 of size 0, expected at least 1");

    g = new_graph();
    x = input(g, "x", 2, 2);
    graphi_assign(g, x, x);
    broken(g, "INVALID: assign: found value 0, expected a parameter");

    g = new_graph();
    w = parameter(g, "w", 2, 2);
    graphi_assign(g, w, w);
    graphi_assign(g, w, w);
    broken(g, "INVALID: assign: found a second assignment of 'w', expected one");

    g = new_graph();
    x = input(g, "x", 2, 2);
    assert_int_equal(graphi_gradients(g, x, 0, NULL, NULL), GRAPHI_INVALID);
    broken(g, "INVALID: gradients: found a loss of type float32[2,2], expected one float32");
}

/* Without it an unrolled network keeps half a megabyte of equal attributes; shared by mistake, an operation would
 * compute with another one's. */
static void attributes_are_kept_once(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = input(g, "x", 4, 6);
    graphi_attribute rows = {.name = "dims", .type = GRAPHI_INTS, .ints = (int64_t[]){6}, .count = 1};
    graphi_attribute all = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value first = graphi_op(g, "sum_to", 1, &x, 1, &rows), other = graphi_op(g, "sum_to", 1, &x, 1, &all);
    graphi_value again = graphi_op(g, "sum_to", 1, &x, 1, &rows);
    const struct node *a = graph_node(g, graph_value(g, first)->node), *b = graph_node(g, graph_value(g, other)->node),
                      *c = graph_node(g, graph_value(g, again)->node);
    assert_ptr_equal(a->attribute, c->attribute);
    assert_ptr_not_equal(a->attribute, b->attribute);
    assert_int_equal(graph_value(g, again)->type.rank, 1);
    assert_int_equal(graph_value(g, other)->type.rank, 0);
    graphi_graph_destroy(g);
}

/* A run at a smaller batch must not replan: the bound travels through operations that accept it, and only there. */
static void symbols_travel(void **state)
{
    graphi_graph *g = new_graph();
    int64_t batch = graphi_symbol(g, "batch", 64);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){batch, 8}), w = parameter(g, "w", 8, 4);
    graphi_value y = OP("tanh", OP("matmul", x, w));
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    assert_int_equal(graphi_value_type(g, y, &dtype, &rank, dims), GRAPHI_OK);
    assert_int_equal(dims[0], 64);
    assert_int_equal(graph_value(g, y)->type.symbol, 0);
    assert_int_equal(graphi_symbol(g, "batch", 64), batch);
    assert_int_equal(graphi_symbol(g, "batch", 32), GRAPHI_NONE);
    broken(g, "INVALID: symbol: found 'batch' with bound 32, expected its first bound 64");
}

/* Who feeds an input by the type of an output that has its name feeds too few bytes. */
static void an_output_may_be_named_like_an_input(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = input(g, "x", 2, 3), w = parameter(g, "w", 4, 5), total = sum(g, x);
    graphi_output(g, "x", total);
    graphi_port port = {.value = GRAPHI_NONE};
    assert_true(graphi_graph_at(g, GRAPHI_PORT_INPUT, 0, &port));
    assert_true(strcmp(port.name, "x") == 0 && port.value == x && port.rank == 2 && port.dtype == GRAPHI_F32);
    assert_true(port.dims[0] == 2 && port.dims[1] == 3 && port.dims[2] == 0 && port.bytes == 24);
    assert_true(graphi_graph_at(g, GRAPHI_PORT_OUTPUT, 0, &port));
    assert_true(strcmp(port.name, "x") == 0 && port.value == total && port.rank == 0 && port.bytes == 4);
    assert_int_equal(graphi_find(g, "x"), total);
    assert_true(graphi_graph_at(g, GRAPHI_PORT_PARAMETER, 0, &port) && port.value == w);
    for (graphi_port_kind kind = GRAPHI_PORT_INPUT; kind <= GRAPHI_PORT_PARAMETER; kind++)
        assert_false(graphi_graph_at(g, kind, 1, &port) || graphi_graph_at(g, kind, -1, &port));
    assert_false(graphi_graph_at(NULL, GRAPHI_PORT_INPUT, 0, &port));
    assert_int_equal(port.value, w);
    graphi_graph_destroy(g);
}

static graphi_graph *small(void)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_symbol(g, "batch", 4), 3});
    graphi_value w = parameter(g, "w", 3, 2), two = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){2});
    graphi_scope(g, "layer");
    graphi_value y = OP("mul", OP("tanh", OP("matmul", x, w)), two);
    graphi_scope(g, NULL);
    graphi_output(g, "y", y);
    return g;
}

static void expect_print(const graphi_graph *g, graphi_print_format format, const char *expected)
{
    char *text;
    assert_int_equal(graphi_graph_print(g, format, &text), GRAPHI_OK);
    assert_string_equal(text, expected);
    graphi_free(text);
}

/* Printing is what people compare; a change must be seen. */
static void printing_is_golden(void **state)
{
    graphi_graph *g = small();
    expect_print(g, GRAPHI_PRINT_TEXT,
                 "symbol batch <= 4\n"
                 "input %0 \"x\" float32[batch<=4,3]\n"
                 "parameter %1 \"w\" float32[3,2]\n"
                 "constant %2 float32[] = 2\n"
                 "0: %3 float32[batch<=4,2] = matmul(%0, %1) 'layer'\n"
                 "1: %4 float32[batch<=4,2] = tanh(%3) 'layer'\n"
                 "2: %5 float32[batch<=4,2] = mul(%4, %2) 'layer'\n"
                 "output \"y\" %5\n");
    graphi_graph_destroy(g);
    graphi_graph *body = new_graph();
    g = body;
    graphi_output(g, "out", OP("neg", input(g, "in", 2, 2)));
    g = new_graph();
    graphi_value x = input(g, "x", 2, 2);
    graphi_output(g, "y", graphi_region(g, body, 1, &x));
    expect_print(g, GRAPHI_PRINT_TEXT,
                 "input %0 \"x\" float32[2,2]\n"
                 "0: %1 float32[2,2] = call(%0) {outputs=1}\n"
                 "  {\n"
                 "    input %0 \"in\" float32[2,2]\n"
                 "    0: %1 float32[2,2] = neg(%0)\n"
                 "    output \"out\" %1\n"
                 "  }\n"
                 "output \"y\" %1\n");
    expect_print(g, GRAPHI_PRINT_DOT,
                 "digraph graphi {\n"
                 "  rankdir=TB;\n"
                 "  v0 [shape=box, label=\"x\"];\n"
                 "  n0 [label=\"call\"];\n"
                 "  v0 -> n0 [label=\"float32[2,2]\"];\n"
                 "  subgraph \"cluster_n0r0_\" {\n"
                 "    label=\"call 0\";\n"
                 "    n0r0_v0 [shape=box, label=\"in\"];\n"
                 "    n0r0_n0 [label=\"neg\"];\n"
                 "    n0r0_v0 -> n0r0_n0 [label=\"float32[2,2]\"];\n"
                 "    n0r0_o0 [shape=doubleoctagon, label=\"out\"];\n"
                 "    n0r0_n0 -> n0r0_o0;\n"
                 "  }\n"
                 "  o0 [shape=doubleoctagon, label=\"y\"];\n"
                 "  n0 -> o0;\n"
                 "}\n");
    graphi_graph_destroy(g);

    g = new_graph(); /* a symbol's name would end the label */
    OP("neg", input(g, "x", graphi_symbol(g, "a \"b\"", 4), 2));
    expect_print(g, GRAPHI_PRINT_DOT,
                 "digraph graphi {\n"
                 "  rankdir=TB;\n"
                 "  v0 [shape=box, label=\"x\"];\n"
                 "  n0 [label=\"neg\"];\n"
                 "  v0 -> n0 [label=\"float32[a \\\"b\\\"<=4,2]\"];\n"
                 "}\n");
    graphi_graph_destroy(g);
}

/* "Of limit" of a step counts three times what a gradient passes and once what it does not (a generator beside the
 * discriminator that learns from it); counted otherwise, DCGAN reached twice the machine's limit. */
static void step_is_rated_by_what_learns(void **state)
{
    graphi_graph *g = new_graph();
    graphi_graph_info info;
    graphi_value made = OP("matmul", input(g, "noise", 4, 8), parameter(g, "generator", 8, 3));
    graphi_freeze(g, graphi_find(g, "generator"));
    OP("matmul", made, parameter(g, "teacher", 3, 2)); /* reads what the judge reads, and learns nothing */
    graphi_freeze(g, graphi_find(g, "teacher"));
    graphi_value loss = sum(g, OP("matmul", made, parameter(g, "judge", 3, 2)));
    graphi_minimize(
        g, loss,
        &(graphi_optimizer){.kind = GRAPHI_SGD, .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)});
    graphi_graph_get_info(g, &info);
    const double learns = 2 * 4 * 3 * 2, once = 2 * 4 * 8 * 3 + learns;
    assert_float_equal(info.step_flops, once + 3 * learns, 0);
    assert_float_equal(info.flops, once + 2 * learns, 0); /* the gradient of what was made is not wanted */
    graphi_graph_destroy(g);
}

/* Stored plans are found by the hash: it must not depend on the process, on dead things, nor miss a difference. */
static void hash_is_stable(void **state)
{
    graphi_graph *g = small();
    graphi_graph_info info;
    graphi_graph_get_info(g, &info);
    assert_int_equal(info.hash, HASH_OF_SMALL);
    graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){7}); /* nobody reads it */
    assert_int_equal(graph_hash(g), HASH_OF_SMALL);
    assert_int_equal(graph_compact(g), GRAPHI_OK);
    assert_int_equal(graph_hash(g), HASH_OF_SMALL);
    assert_int_equal(info.nodes, 3);
    assert_int_equal(info.parameter_elements, 6);
    assert_true(info.flops == 2 * 4 * 3 * 2 && info.step_flops == info.flops);
    assert_int_equal(info.intermediate_bytes, 3 * 4 * 2 * 4);
    OP("tanh", graphi_find(g, "y"));
    assert_int_not_equal(graph_hash(g), HASH_OF_SMALL);
    graphi_graph_destroy(g);
    graphi_graph *zero = new_graph(), *other = new_graph(); /* their reciprocals are infinities of both signs */
    graphi_fill(zero, GRAPHI_LIST(2), 0.0, GRAPHI_F32);
    graphi_fill(other, GRAPHI_LIST(2), -0.0, GRAPHI_F32);
    assert_int_not_equal(graph_hash(zero), graph_hash(other));
    expect_print(zero, GRAPHI_PRINT_TEXT, "0: %0 float32[2] = fill() {shape=[2]}\n");
    expect_print(other, GRAPHI_PRINT_TEXT, "0: %0 float32[2] = fill() {shape=[2], value=-0}\n");
    graphi_graph_destroy(zero);
    graphi_graph_destroy(other);
}

/* Two networks that differ in one source alone would take each other's stored plans. */
static void hash_sees_every_source(void **state)
{
    static const float data[2][2] = {{1, 2}, {1, 3}};
    static const struct {
        const char *name;
        int64_t size;
        graphi_initializer init;
        bool frozen;
    } all[] = {{"w", 2, {.kind = GRAPHI_INIT_UNIFORM, .a = 0, .b = 1}, false},
               {"v", 2, {.kind = GRAPHI_INIT_UNIFORM, .a = 0, .b = 1}, false},
               {"w", 3, {.kind = GRAPHI_INIT_UNIFORM, .a = 0, .b = 1}, false},
               {"w", 2, {.kind = GRAPHI_INIT_UNIFORM, .a = 0, .b = 2}, false},
               {"w", 2, {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1}, false},
               {"w", 2, {.kind = GRAPHI_INIT_NORMAL, .a = 0, .b = 1}, false},
               {"w", 2, {.kind = GRAPHI_INIT_UNIFORM, .a = 0, .b = 1}, true},
               {"w", 2, {.data = data[0]}, false},
               {"w", 2, {.data = data[1]}, false}};
    enum { COUNT = sizeof all / sizeof *all };
    uint64_t hash[COUNT];
    for (int i = 0; i < COUNT; i++) {
        graphi_graph *g = new_graph();
        graphi_value w = graphi_parameter(g, all[i].name, GRAPHI_F32, 1, &all[i].size, &all[i].init);
        if (all[i].frozen)
            graphi_freeze(g, w);
        graphi_output(g, "y", OP("tanh", w));
        hash[i] = graph_hash(g);
        for (int k = 0; k < i; k++)
            if (hash[k] == hash[i])
                fail_msg("sources %d and %d have one hash", k, i);
        graphi_graph_destroy(g);
    }
}

/* Wrong sums of several gradient terms, missed or invented dependencies, broadcasts: against central differences. */
static void gradients_of_composites(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = input(g, "x", 5, 4), w = parameter(g, "w", 4, 6), u = parameter(g, "u", 6, 6);
    graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, (int64_t[]){6}, NULL),
                 unused = parameter(g, "unused", 2, 2);
    graphi_value h = OP("tanh", OP("add", OP("matmul", x, w), b));
    for (int t = 0; t < 3; t++) /* u and b are read several times */
        h = OP("mul", OP("sigmoid", OP("add", OP("matmul", h, u), b)), OP("add", h, b));
    graphi_value loss = sum(g, OP("mul", h, h)), wrt[] = {x, w, u, b, unused}, gradient[5];
    int32_t forward = (int32_t)g->nodes.count;
    graphi_scope(g, "behind");
    assert_int_equal(graphi_gradients(g, loss, 5, wrt, gradient), GRAPHI_OK);
    assert_string_equal(g->scope, "behind"); /* of what is added next, not of the first cell's */
    assert_int_equal(graph_check(g), GRAPHI_OK);
    assert_int_equal(gradient[4], GRAPHI_NONE);
    for (size_t i = 0; i < g->nodes.count; i++)
        assert_int_equal(g->nodes.data[i].backward, (int32_t)i >= forward);
    struct reference r;
    reference_init(&r, g);
    for (int i = 0; i < 4; i++)
        assert_true(reference_gradient_error(&r, loss, wrt[i], gradient[i], 12, 1e-2) < 5e-3);
    reference_fini(&r);
    graphi_graph_destroy(g);
}

/* The gradient of the mean of rows repeats to a shape that follows the body's symbol. */
static graphi_graph *cell_body(bool bounded)
{
    graphi_graph *g = new_graph();
    graphi_value h = input(g, "h", bounded ? graphi_symbol(g, "rows", 6) : 6, 4), w = input(g, "w", 4, 4);
    graphi_value z = OP("tanh", OP("matmul", h, w));
    graphi_output(g, "z", z);
    graphi_output(g, "z2", OP("mul", z, OP("sub", h, graphi_reduce_mean(g, z, GRAPHI_LIST(0), 0))));
    return g;
}

/* Six rows, or two rows each of up to three pairs. */
static graphi_value cell_input(graphi_graph *g, bool bounded)
{
    if (!bounded)
        return input(g, "h", 6, 4);
    graphi_symbol(g, "batch", 6);
    graphi_value pairs = input(g, "h", graphi_symbol(g, "pairs", 3), 8);
    return graphi_reshape(g, pairs, (int64_t[]){6, 4}, 2);
}

/* A region must be the same function as its body inlined, forwards and backwards, whatever symbols of the graph its
 * own stand for: they have other numbers, and another size. */
static void regions_equal_their_bodies(bool bounded)
{
    graphi_graph *g = new_graph();
    graphi_value h = cell_input(g, bounded), w = parameter(g, "w", 4, 4), in[] = {h, w};
    graphi_scope(g, "a");
    graphi_value first = graphi_region(g, cell_body(bounded), 2, in);
    in[0] = OP("add", first, first + 1);
    graphi_value second = graphi_region(g, cell_body(bounded), 2, in);
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    assert_int_equal(graph_value(g, second)->type.symbol, bounded ? 1 : -1);
    graphi_value loss = sum(g, OP("mul", second, second + 1)), gradient;
    assert_int_equal(graphi_gradients(g, loss, 1, &w, &gradient), GRAPHI_OK);
    graphi_output(g, "loss", loss);
    graphi_output(g, "gradient", gradient);
    assert_int_equal(graph_check(g), GRAPHI_OK);
    struct reference r, flat;
    reference_init(&r, g);
    assert_true(reference_gradient_error(&r, loss, w, gradient, 16, 1e-2) < 5e-3);
    graphi_graph *copy;
    graphi_graph_info called, inlined;
    assert_int_equal(graph_clone(g, &copy), GRAPHI_OK);
    assert_int_equal(graph_inline(copy), GRAPHI_OK);
    assert_int_equal(graph_check(copy), GRAPHI_OK);
    graphi_graph_get_info(g, &called);
    graphi_graph_get_info(copy, &inlined);
    assert_true(called.flops == inlined.flops && called.flops > 0); /* of products, not of what is element-wise */
    for (size_t i = 0; i < copy->nodes.count; i++)
        assert_int_equal(copy->nodes.data[i].regions, 0);
    reference_init(&flat, copy);
    assert_int_equal(reference_run(&flat), GRAPHI_OK);
    assert_int_equal(reference_run(&r), GRAPHI_OK);
    assert_memory_equal(reference_floats(&flat, graphi_find(copy, "gradient")), reference_floats(&r, gradient), 64);
    reference_fini(&flat);
    reference_fini(&r);
    graphi_graph_destroy(copy);
    graphi_value wrong[] = {w, w};
    assert_int_equal(graphi_region(g, cell_body(bounded), 2, wrong), GRAPHI_NONE);
    assert_non_null(
        strstr(graphi_message(), bounded
                                     ? "found input 0 of type float32[4,4], expected float32[<=6,4] like the region's"
                                     : "found input 0 of type float32[4,4], expected float32[6,4] like the region's"));
    graphi_graph_destroy(g);
}

/* What stands for a call stands in its place: behind what comes after it, its results would be alive later. */
static void bodies_take_the_place_of_their_call(void **state)
{
    graphi_graph *g = new_graph(), *body = new_graph();
    graphi_value x = input(g, "x", 2, 2);
    graphi_output(body, "y", graphi_tanh(body, input(body, "a", 2, 2)));
    graphi_value called = graphi_region(g, body, 1, &x);
    graphi_output(g, "after", OP("abs", x));
    graphi_output(g, "y", called);
    assert_int_equal(graph_inline(g), GRAPHI_OK);
    assert_string_equal(graph_node(g, 0)->kind->name, "tanh");
    assert_string_equal(graph_node(g, 1)->kind->name, "abs");
    graphi_graph_destroy(g);
}

/* Processor seconds to inline a chain of so many calls, each of which gives an input on beside its result: the sum
 * before it, or, `handed`, always the same one. */
static void inlined(int calls, bool handed)
{
    graphi_graph *g = new_graph();
    graphi_value v[] = {input(g, "x", 2, 2), GRAPHI_NONE};
    v[1] = v[0];
    for (int i = 0; i < calls; i++) {
        graphi_graph *body = new_graph();
        graphi_value a = input(body, "a", 2, 2), b = input(body, "b", 2, 2);
        graphi_output(body, "sum", graphi_add(body, a, b));
        graphi_output(body, "same", handed ? b : a);
        const graphi_value out = graphi_region(g, body, 2, v);
        v[0] = handed ? v[0] : out;
        v[1] = out + 1;
    }
    graphi_output(g, "y", handed ? v[1] : v[0]);
    assert_int_equal(graph_inline(g), GRAPHI_OK);
    if (handed) /* sums that nobody reads */
        assert_int_equal(graphi_find(g, "y"), graphi_find(g, "x"));
    for (int i = 1; i < calls && !handed; i++) /* reads the sum before it, and what that one's call was given */
        for (int k = 0; k < 2; k++)
            assert_int_equal(graph_node(g, i)->input[k],
                             i - k < 1 ? graphi_find(g, "x") : graph_node(g, i - 1 - k)->output);
    graphi_graph_destroy(g);
}

/* Each body follows the one before it, or hands its input on. Whoever goes along all that hand a value on, for each of
 * them, or by recursion, does not come to the end of the long one. */
static void regions_are_inlined_in_one_sweep(void **state)
{
    for (int handed = 0; handed < 2; handed++) {
        inlined(200, handed);
        inlined(40000, handed);
    }
}

static void regions_of_fixed_sizes(void **state) { regions_equal_their_bodies(false); }

static void regions_of_bounded_sizes(void **state) { regions_equal_their_bodies(true); }

/* A reader of the old weights that runs after their update trains on the wrong ones. */
static void updates_follow_all_readers(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value w = parameter(g, "w", 4, 6), next = graphi_assign(g, w, OP("neg", w));
    graphi_attribute shape = {.name = "shape", .type = GRAPHI_INTS, .ints = (int64_t[]){6, 4}, .count = 2};
    graphi_value view = graphi_op(g, "reshape", 1, &w, 1, &shape);
    graphi_output(g, "late", OP("tanh", view)); /* reads the old content through a view, built after the update */
    graphi_output(g, "new", OP("abs", next));
    assert_int_equal(graph_order_updates(g), GRAPHI_OK);
    assert_int_equal(graph_compact(g), GRAPHI_OK);
    assert_int_equal(graph_check(g), GRAPHI_OK);
    int at_assign = -1, at_tanh = -1;
    for (size_t i = 0; i < g->nodes.count; i++) {
        at_assign = strcmp(g->nodes.data[i].kind->name, "assign") == 0 ? (int)i : at_assign;
        at_tanh = strcmp(g->nodes.data[i].kind->name, "tanh") == 0 ? (int)i : at_tanh;
    }
    assert_true(at_tanh < at_assign);
    /* A reader of the old content that needs the new: no order exists. */
    OP("add", w, graphi_find(g, "new"));
    OP("add", w, graph_node(g, at_assign)->output);
    assert_int_equal(graph_order_updates(g), GRAPHI_OK);
    assert_int_equal(graph_compact(g), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "what reads the old content of 'w', or a view of it, needs the new"));
    graphi_graph_destroy(g);
}

/* A reduction of two attributes, and updates of two parameters of one type: that of v is output "y". */
static graphi_graph *updated(void)
{
    graphi_graph *g = new_graph();
    graphi_value v = parameter(g, "v", 2, 3), w = parameter(g, "w", 2, 3);
    graphi_value one = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){1});
    graphi_output(g, "mean", graphi_op(g, "reduce_mean", 1, &v, 0, NULL));
    graphi_output(g, "y", graphi_assign(g, v, OP("add", v, one)));
    graphi_output(g, "one", one);
    graphi_assign(g, w, OP("sub", w, one));
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    return g;
}

/* The checker is worth what it finds: each planted fault must be found. */
static void checker_finds_planted_faults(void **state)
{
    for (int fault = 0; fault < 13; fault++) {
        graphi_graph *g = fault < 7 ? small() : updated();
        graphi_attribute *in_place = g->nodes.data[0].attribute, turned[] = {in_place[1], in_place[0]};
        assert_int_equal(graph_check(g), GRAPHI_OK);
        switch (fault) {
        case 0:
            g->nodes.data[0].input[0] = 4; /* a later result */
            break;
        case 1:
            g->nodes.data[1].kind = NULL;
            break;
        case 2:
            g->values.data[3].type.dims[1] = 5;
            break;
        case 3:
            g->values.data[4].assigns = 1; /* other type */
            break;
        case 4:
            g->nodes.data[2].inputs = 1;
            break;
        case 5:
            g->outputs.data[0].value = 99;
            break;
        case 6:
            assert_int_equal(graph_after(g, 2, 1), GRAPHI_OK);
            break;
        case 7:
            g->values.data[graphi_find(g, "w")].assigned = false;
            break;
        case 8: /* the second update is one of the first parameter too */
            g->values.data[graphi_find(g, "y")].assigns = graphi_find(g, "w");
            g->values.data[graphi_find(g, "v")].assigned = false;
            break;
        case 9:
            g->values.data[graphi_find(g, "one")].data = NULL;
            break;
        case 10:
            g->nodes.data[0].attribute = turned;
            break;
        case 11:
            g->parameters.count--;
            break;
        case 12:
            g->parameters.data[1] = g->parameters.data[0];
            break;
        }
        assert_int_equal(graph_check(g), GRAPHI_INVALID);
        graphi_graph_destroy(g);
    }
}

/* A parameter's update has an edge from every reader of the old content: looking for each among all before it would
 * cost their square, in every pass. So they are added unseen, and compaction drops those that are there. */
static void doubled_edges_end_with_compaction(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 0, NULL);
    for (int i = 0; i < 4; i++)
        graphi_op(g, "tanh", 1, &x, 0, NULL);
    static const int32_t first[] = {2, 0, 2, 2, 0, 1}, left[] = {2, 0, 1};
    enum { EDGES = sizeof first / sizeof *first };
    for (int e = 0; e < EDGES; e++)
        assert_int_equal(graph_after(g, first[e], 3), GRAPHI_OK);
    assert_int_equal(g->nodes.data[3].afters, EDGES);
    assert_int_equal(graph_compact(g), GRAPHI_OK);
    assert_int_equal(g->nodes.data[3].afters, 3);
    for (int e = 0; e < 3; e++)
        assert_int_equal(g->nodes.data[3].after[e], left[e]);
    graphi_graph_destroy(g);
}

static double or_usual(double asked, double usual) { return asked != 0 ? asked : usual; }

/* A step of torch.optim for one element at rate 0.1; m and s are its slots, t counts from 1. */
static double stepped(const graphi_optimizer *o, double x, double d, double *m, double *s, int t)
{
    const double b1 = or_usual(o->beta1, 0.9), b2 = or_usual(o->beta2, 0.999), epsilon = or_usual(o->epsilon, 1e-8);
    switch (o->kind) {
    case GRAPHI_SGD: return x - 0.1 * d;
    case GRAPHI_ADAGRAD: *s += d * d; return x - 0.1 * d / (sqrt(*s + o->accumulator) + or_usual(o->epsilon, 1e-10));
    case GRAPHI_MOMENTUM: *m = or_usual(o->momentum, 0.9) * *m + d; return x - 0.1 * *m;
    default:
        *m = b1 * *m + (1 - b1) * d;
        *s = b2 * *s + (1 - b2) * d * d;
        return x - 0.1 / (1 - pow(b1, t)) * *m / (sqrt(*s) / sqrt(1 - pow(b2, t)) + epsilon);
    }
}

/* The numbers of torch.optim and clip_grad_norm_ for a matrix w and a vector v, of which the loss is the sum of
 * squares, for three steps in double precision. Corrections made of a rounded beta err by a tenth for the last beta2
 * alone. An option that is passed over would not be missed otherwise: networks learn all the same. */
static void optimizers_step_as_published(void **state)
{
    static const graphi_optimizer optimizers[] = {
        {.kind = GRAPHI_SGD},
        {.kind = GRAPHI_SGD, .clip_norm = 2, .weight_decay = 0.5},
        {.kind = GRAPHI_SGD, .clip_norm = 100},
        {.kind = GRAPHI_MOMENTUM},
        {.kind = GRAPHI_MOMENTUM, .momentum = 0.5, .weight_decay = 0.5},
        {.kind = GRAPHI_ADAGRAD}, {.kind = GRAPHI_ADAGRAD, .accumulator = 0.5, .epsilon = 0.1, .weight_decay = 0.5},
        {.kind = GRAPHI_ADAM},
        {.kind = GRAPHI_ADAM, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 0.1},
        {.kind = GRAPHI_ADAM, .beta2 = 0.999999},
        {.kind = GRAPHI_ADAM, .beta2 = 0.9999999}};
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        enum { ALL = 3, MATRIX = 2 }; /* elements; those of w come first */
        const float start[ALL] = {1, -2, 3};
        graphi_graph *g = new_graph();
        graphi_initializer first = {.data = start}, last = {.data = start + MATRIX};
        graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){1, MATRIX}, &first);
        graphi_value v = graphi_parameter(g, "v", GRAPHI_F32, 1, (int64_t[]){ALL - MATRIX}, &last);
        graphi_optimizer optimizer = optimizers[o];
        optimizer.learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
        graphi_value loss = OP("add", sum(g, OP("square", w)), sum(g, OP("square", v)));
        assert_int_equal(graphi_minimize(g, loss, &optimizer), GRAPHI_OK);
        struct reference r;
        reference_init(&r, g);
        for (size_t k = 0; k < g->values.count; k++) /* slots start so */
            for (int64_t i = 0; g->values.data[k].frozen && i < type_count(&g->values.data[k].type); i++)
                ((float *)r.data[k])[i] = (float)g->values.data[k].init.a;
        reference_set(&r, optimizer.learning_rate, &(float){0.1f});
        reference_set(&r, w, start);
        reference_set(&r, v, start + MATRIX);
        double x[ALL] = {1, -2, 3}, m[ALL] = {0}, s[ALL] = {0};
        for (int t = 1; t <= 3; t++) {
            double norm = 2 * sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
            double factor = optimizer.clip_norm > 0 ? fmin(1, optimizer.clip_norm / (norm + 1e-6)) : 1;
            assert_int_equal(reference_run(&r), GRAPHI_OK);
            for (int i = 0; i < ALL; i++) {
                double d = 2 * x[i] * factor + (i < MATRIX ? optimizer.weight_decay * x[i] : 0);
                x[i] = stepped(&optimizer, x[i], d, &m[i], &s[i], t);
                float found = i < MATRIX ? reference_floats(&r, w)[i] : reference_floats(&r, v)[i - MATRIX];
                if (!(fabs((double)found - x[i]) < 1e-5))
                    fail_msg("optimizer %zu, step %d, element %d: found %g, expected %g", o, t, i, (double)found, x[i]);
            }
        }
        reference_fini(&r);
        graphi_graph_destroy(g);
    }
}

/* Networks that learn apart in one graph, each with a counter of its own. */
static void optimizers_stand_beside_each_other(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
    for (int i = 0; i < 3; i++) {
        graphi_value w = parameter(g, (const char *[]){"a", "b", "c"}[i], 2, 2);
        graphi_optimizer adam = {.kind = GRAPHI_ADAM, .learning_rate = rate};
        if (graphi_minimize(g, sum(g, OP("square", w)), &adam) != GRAPHI_OK)
            fail_msg("%s", graphi_message());
    }
    assert_int_equal(graph_check(g), GRAPHI_OK);
    graphi_graph_destroy(g);
}

static graphi_status build_everything(void)
{
    graphi_graph *g = NULL;
    graphi_status status = graphi_graph_create(&g);
    if (status != GRAPHI_OK)
        return status;
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_symbol(g, "batch", 4), 3});
    graphi_value w = parameter(g, "w", 3, 4), two = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){2});
    graphi_scope(g, "layer");
    graphi_value h = OP("mul", OP("tanh", OP("matmul", x, w)), two), loss = sum(g, h);
    graphi_optimizer adam = {.kind = GRAPHI_ADAM, .learning_rate = two, .clip_norm = 1, .weight_decay = 0.1};
    if (h != GRAPHI_NONE)
        graphi_minimize(g, loss, &adam);
    graphi_output(g, "loss", loss);
    graphi_value in[] = {input(g, "rows", 3, 4), parameter(g, "square", 4, 4)};
    graphi_graph *body = NULL;
    status = graphi_graph_status(g);
    if (status == GRAPHI_OK && (status = graphi_graph_create(&body)) == GRAPHI_OK) {
        graphi_value a = input(body, "h", 3, 4), b = input(body, "w", 4, 4);
        graphi_output(body, "z", graphi_op(body, "matmul", 2, (graphi_value[]){a, b}, 0, NULL));
        graphi_value z = graphi_region(g, body, 2, in), gradient;
        if (z != GRAPHI_NONE)
            graphi_gradients(g, sum(g, z), 1, &in[1], &gradient);
        status = graphi_graph_status(g);
    }
    char *text = NULL;
    if (status == GRAPHI_OK)
        status = graphi_graph_print(g, GRAPHI_PRINT_DOT, &text);
    graphi_free(text);
    graphi_graph_destroy(g);
    return status;
}

/* A name would be looked for where its output was before the selection. */
static void selected_outputs_are_found(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const graphi_value x = graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){4});
    static const char *const names[] = {"b", "bc", "c"}; /* one begins another */
    graphi_value of[3];
    for (int i = 0; i < 3; i++) {
        of[i] = OP("tanh", x);
        graphi_output(g, names[i], of[i]);
    }
    assert_int_equal(passes_select(g, "bc,c", true), GRAPHI_OK);
    assert_int_equal(graphi_find(g, "b"), GRAPHI_NONE);
    assert_int_equal(graphi_find(g, "bc"), of[1]);
    assert_int_equal(graphi_find(g, "c"), of[2]);
    graphi_graph_destroy(g);
}

/* A failed allocation anywhere in building must come back as MEMORY, with nothing leaked or half made. */
static void building_survives_failed_allocations(void **state)
{
    graphi_status status = GRAPHI_MEMORY;
    for (long n = 0; status != GRAPHI_OK && n < 2000; n++) {
        mem_fail_after(n);
        status = build_everything();
        mem_fail_after(-1);
        if (status != GRAPHI_OK && status != GRAPHI_MEMORY)
            fail_msg("after %ld: %s", n, graphi_message());
    }
    assert_int_equal(status, GRAPHI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_sticky_and_exact),
        cmocka_unit_test(attributes_are_kept_once),
        cmocka_unit_test(symbols_travel),
        cmocka_unit_test(an_output_may_be_named_like_an_input),
        cmocka_unit_test(printing_is_golden),
        cmocka_unit_test(hash_is_stable),
        cmocka_unit_test(hash_sees_every_source),
        cmocka_unit_test(step_is_rated_by_what_learns),
        cmocka_unit_test(gradients_of_composites),
        cmocka_unit_test(regions_of_fixed_sizes),
        cmocka_unit_test(regions_are_inlined_in_one_sweep),
        cmocka_unit_test(regions_of_bounded_sizes),
        cmocka_unit_test(bodies_take_the_place_of_their_call),
        cmocka_unit_test(updates_follow_all_readers),
        cmocka_unit_test(doubled_edges_end_with_compaction),
        cmocka_unit_test(checker_finds_planted_faults),
        cmocka_unit_test(optimizers_step_as_published),
        cmocka_unit_test(optimizers_stand_beside_each_other),
        cmocka_unit_test(selected_outputs_are_found),
        cmocka_unit_test(building_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
