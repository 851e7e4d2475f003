/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operations, reductions, softmax and dropout as graph operations: shape rules and their messages,
 * gradients by central differences, fused programs. */
#include "graphi/ops.h"
#include "ops/build.h"
#include "ops/elementwise.h"

#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static graphi_graph *new_graph(void)
{
    graphi_graph *graph;
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    return graph;
}

static graphi_value input(graphi_graph *graph, const char *name, int rank, const int64_t *dims)
{
    return graphi_input(graph, name, GRAPHI_F32, rank, dims);
}

/* Weighted sum, so that every element has a slope of its own. */
static graphi_value loss_of(graphi_graph *graph, graphi_value y)
{
    struct value_type type = graph_value(graph, y)->type;
    graphi_value weights =
        graphi_op(graph, "expand", 1, (graphi_value[]){build_scalar(graph, 0.7f)}, 2,
                  (graphi_attribute[]){{.name = "dims", .type = GRAPHI_INTS, .ints = type.dims, .count = type.rank},
                                       {.name = "symbol", .type = GRAPHI_INT, .i = type.symbol}});
    graphi_value shaped = build2(graph, "mul", y, build2(graph, "add", weights, build1(graph, "square", y)));
    return build1(graph, "reduce_sum", shaped);
}

static void check_gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *wrt, const char *what,
                            int64_t rows, float scale, float offset, float spread)
{
    graphi_value gradient[3];
    if (graphi_gradients(graph, loss, n, wrt, gradient) != GRAPHI_OK)
        fail_msg("%s: %s", what, graphi_message());
    for (int isa = 0; isa <= (int)isa_detect(); isa += (int)isa_detect() ? (int)isa_detect() : 1) {
        struct reference r;
        reference_init(&r, graph);
        r.rows = rows;
        r.isa = (enum isa)isa;
        for (int i = 0; i < n; i++)
            for (int64_t k = 0; k < type_count(&graph_value(graph, wrt[i])->type); k++)
                reference_floats(&r, wrt[i])[k] = reference_floats(&r, wrt[i])[k] * scale + offset + (float)i * spread;
        for (int i = 0; i < n; i++) {
            if (gradient[i] == GRAPHI_NONE)
                continue;
            double error = reference_gradient_error(&r, loss, wrt[i], gradient[i], 12, 1e-2);
            if (!(error < 1e-2))
                fail_msg("%s, input %d, isa %d: gradient off by %g", what, i, isa, error);
        }
        reference_fini(&r);
    }
}

/* Every row of the table, with every operand broadcast in turn: a wrong rule or a sum left out. */
static void gradients_of_every_operation(void **state)
{
    static const int64_t shapes[][2] = {{3, 5}, {1, 5}, {3, 1}, {1, 1}};
    for (int i = 0; op_at(i); i++) {
        const struct op_kind *kind = op_at(i);
        if (!(kind->flags & OP_ELEMENTWISE) || kind->program_op >= PROGRAM_OPS)
            continue;
        bool flat = kind->gradient &&
                    (!strcmp(kind->name, "sign") || !strcmp(kind->name, "step") || !strcmp(kind->name, "floor") ||
                     !strcmp(kind->name, "less") || !strcmp(kind->name, "equal"));
        for (int narrow = 0; narrow < (flat ? 0 : 4 * kind->min_inputs); narrow++) {
            graphi_graph *graph = new_graph();
            graphi_value in[3];
            static const char *const names[] = {"a", "b", "c"};
            for (int k = 0; k < kind->min_inputs; k++)
                in[k] = input(graph, names[k], 2, shapes[k == narrow / 4 ? narrow % 4 : 0]);
            graphi_value y = graphi_op(graph, kind->name, kind->min_inputs, in, 0, NULL);
            bool mod = !strcmp(kind->name, "mod"); /* quotients that stay between two integers, not 0 and 1 */
            check_gradients(graph, loss_of(graph, y), kind->min_inputs, in, kind->name, 0, mod ? 0.05f : 0.45f,
                            mod ? 4.5f : 1.1f, mod ? -3.25f : 0.95f);
            graphi_graph_destroy(graph);
        }
    }
}

/* Negative and mixed signs, where relu, abs, min, max and softplus change their slope. */
static void gradients_on_both_sides(void **state)
{
    static const char *const kinds[] = {"relu", "abs", "softplus", "sigmoid", "tanh", "erf",
                                        "max",  "min", "select",   "exp",     "neg"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        graphi_graph *graph = new_graph();
        int64_t dims[] = {9};
        graphi_value in[] = {input(graph, "left", 1, dims), input(graph, "right", 1, dims),
                             input(graph, "third", 1, dims)};
        graphi_value y = graphi_op(graph, kinds[i], op_find(kinds[i])->min_inputs, in, 0, NULL);
        check_gradients(graph, loss_of(graph, y), op_find(kinds[i])->min_inputs, in, kinds[i], 0, 2, 0.013f, 0);
        graphi_graph_destroy(graph);
    }
}

/* Of equal arguments both get the gradient, and what they come from in common twice; or nobody does. */
static void equal_arguments_share_no_gradient(void **state)
{
    static const char *const kinds[] = {"min", "max"};
    static const float same[] = {1, -2, 0};
    for (int kind = 0; kind < 2; kind++) {
        graphi_graph *graph = new_graph();
        graphi_value in[] = {input(graph, "left", 1, (int64_t[]){3}), input(graph, "right", 1, (int64_t[]){3})};
        graphi_value loss = build1(graph, "reduce_sum", build2(graph, kinds[kind], in[0], in[1])), gradient[2];
        assert_int_equal(graphi_gradients(graph, loss, 2, in, gradient), GRAPHI_OK);
        struct reference r;
        reference_init(&r, graph);
        reference_set(&r, in[0], same);
        reference_set(&r, in[1], same);
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        for (int i = 0; i < 3; i++)
            assert_true(reference_floats(&r, gradient[0])[i] == 1 && reference_floats(&r, gradient[1])[i] == 0);
        reference_fini(&r);
        graphi_graph_destroy(graph);
    }
}

/* The powers that a polynomial has: 0 to the power of 0 is 1 whatever the base does next, not what 0 times an infinite
 * slope is; the same of what slopes do next. */
static void gradients_of_powers_at_zero(void **state)
{
    enum { N = 7 };
    static const float base[N] = {0, 0, 0, -2, 0, 3, 4}, exponent[N] = {0, 1, 2, 0, 3, 2, 0},
                       slope[N] = {0, 1, 0, 0, 0, 6, 0}, bend[N] = {0, 0, 2, 0, 0, 2, 0};
    graphi_graph *graph = new_graph();
    graphi_value in[] = {input(graph, "base", 1, (int64_t[]){N}), input(graph, "exponent", 1, (int64_t[]){N})};
    graphi_value gradient[2], second[2][2], loss = build1(graph, "reduce_sum", build2(graph, "pow", in[0], in[1]));
    assert_int_equal(graphi_gradients(graph, loss, 2, in, gradient), GRAPHI_OK);
    for (int k = 0; k < 2; k++)
        assert_int_equal(graphi_gradients(graph, build1(graph, "reduce_sum", gradient[k]), 2, in, second[k]),
                         GRAPHI_OK);
    struct reference r;
    reference_init(&r, graph);
    reference_set(&r, in[0], base);
    reference_set(&r, in[1], exponent);
    assert_int_equal(reference_run(&r), GRAPHI_OK);
    for (int i = 0; i < N; i++) {
        assert_true(reference_floats(&r, gradient[0])[i] == slope[i]);
        assert_true(isfinite(reference_floats(&r, gradient[1])[i]));
        assert_true(reference_floats(&r, second[0][0])[i] == bend[i]);
        for (int k = 1; k < 4; k++)
            assert_true(isfinite(reference_floats(&r, second[k / 2][k % 2])[i]));
    }
    for (int k = 0; k < 2; k++)
        assert_true(reference_floats(&r, second[k][!k])[N - 1] == 0.25f); /* the reciprocal of the base */
    reference_fini(&r);
    graphi_graph_destroy(graph);
}

/* Axes confused, a mean over the bound instead of the actual rows. */
static void gradients_of_reductions(void **state)
{
    static const char *const kinds[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_sum_squares"};
    static const int64_t axes[][2] = {{0, 0}, {0, 2}, {1, 0}, {2, 0}, {-1, -2}, {0, 1}};
    static const int counts[] = {0, 2, 1, 1, 2, 2};
    for (int kind = 0; kind < 4; kind++)
        for (int a = 0; a < 6; a++)
            for (int keep = 0; keep < 2; keep++)
                for (int bounded = 0; bounded < 2; bounded++) {
                    graphi_graph *graph = new_graph();
                    int64_t dims[] = {bounded ? graphi_symbol(graph, "batch", 4) : 4, 3, 5};
                    graphi_value x = input(graph, "x", 3, dims);
                    graphi_attribute attributes[] = {
                        {.name = "axes", .type = GRAPHI_INTS, .ints = axes[a], .count = counts[a]},
                        {.name = "keepdims", .type = GRAPHI_INT, .i = keep}};
                    graphi_value y = graphi_op(graph, kinds[kind], 1, &x, 2, attributes);
                    assert_int_equal(graphi_graph_status(graph), GRAPHI_OK);
                    check_gradients(graph, loss_of(graph, y), 1, &x, kinds[kind], bounded ? 3 : 0, 1, 0.2f, 0);
                    graphi_graph_destroy(graph);
                }
}

static void gradients_of_softmax(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        graphi_graph *graph = new_graph();
        graphi_value x = input(graph, "x", 2, (int64_t[]){graphi_symbol(graph, "batch", 5), 7});
        graphi_value y = build1(graph, kind ? "log_softmax" : "softmax", x);
        check_gradients(graph, loss_of(graph, y), 1, &x, kind ? "log_softmax" : "softmax", 3, 1, 0, 0);
        graphi_graph_destroy(graph);
    }
    graphi_graph *graph = new_graph();
    int64_t dims[] = {2, 3, 7};
    graphi_value x = input(graph, "x", 3, dims), labels = graphi_input(graph, "labels", GRAPHI_I32, 2, dims);
    graphi_value loss = build1(graph, "square", build2(graph, "softmax_cross_entropy", x, labels));
    check_gradients(graph, loss, 1, &x, "softmax_cross_entropy", 0, 1, 0, 0);
    graphi_graph_destroy(graph);
}

static void gradient_of_dropout(void **state)
{
    graphi_graph *graph = new_graph();
    graphi_value x = input(graph, "x", 2, (int64_t[]){4, 6});
    graphi_value y =
        graphi_op(graph, "dropout", 1, &x, 1, (graphi_attribute[]){{.name = "keep", .type = GRAPHI_FLOAT, .f = 0.6}});
    check_gradients(graph, loss_of(graph, y), 1, &x, "dropout", 0, 1, 0, 0);
    graphi_graph_destroy(graph);
}

/* A node of random numbers is of the other distribution, forgets its numbers, or draws what another node does. */
static void random_nodes(void **state)
{
    enum { N = 20000 };
    static const struct {
        const char *kind;
        double mean, variance;
    } row[] = {{"random_uniform", 0.5, 0.75}, {"random_normal", -1, 4}}; /* a = -1, b = 2 */
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        graphi_graph *graph = new_graph();
        const int64_t dims[] = {N / 4, 4};
        const graphi_attribute attributes[] = {graphi_ints("dims", dims, 2), graphi_float("a", -1),
                                               graphi_float("b", 2)};
        graphi_value y = graphi_op(graph, row[k].kind, 0, NULL, 3, attributes);
        graphi_value other = graphi_op(graph, row[k].kind, 0, NULL, 3, attributes);
        static float first[N];
        struct reference r;
        reference_init(&r, graph);
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        memcpy(first, reference_floats(&r, y), sizeof first);
        assert_memory_not_equal(reference_floats(&r, other), first, sizeof first);
        double mean = 0, square = 0;
        for (int i = 0; i < N; i++)
            mean += (double)first[i] / N, square += (double)first[i] * (double)first[i] / N;
        assert_true(fabs(mean - row[k].mean) < 0.06 && fabs(square - mean * mean - row[k].variance) < 0.15);
        assert_int_equal(reference_run(&r), GRAPHI_OK); /* the next step */
        assert_memory_not_equal(reference_floats(&r, y), first, sizeof first);
        r.step = 0;
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        assert_memory_equal(reference_floats(&r, y), first, sizeof first);
        reference_fini(&r);
        graphi_graph_destroy(graph);
    }
}

/* A shape error must say which shapes met. */
static void messages_name_shapes(void **state)
{
    static const struct {
        const char *kind, *text;
        int64_t a[2], b[2];
    } row[] = {{"add", "float32[4,5]", {3, 5}, {4, 5}},
               {"mul", "float32[3,4]", {3, 4}, {3, 5}},
               {"add_n", "float32[1,5]", {3, 5}, {1, 5}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        graphi_graph *graph = new_graph();
        graphi_value in[] = {input(graph, "a", 2, row[i].a), input(graph, "b", 2, row[i].b)};
        assert_int_equal(graphi_op(graph, row[i].kind, 2, in, 0, NULL), GRAPHI_NONE);
        assert_int_equal(graphi_graph_status(graph), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), row[i].text));
        graphi_graph_destroy(graph);
    }
    graphi_graph *graph = new_graph(); /* a bounded size meets a fixed one that is not 1 */
    graphi_value a = input(graph, "a", 2, (int64_t[]){graphi_symbol(graph, "batch", 8), 5});
    graphi_value b = input(graph, "b", 2, (int64_t[]){8, 5});
    assert_int_equal(build2(graph, "add", a, b), GRAPHI_NONE);
    assert_non_null(strstr(graphi_message(), "float32[<=8,5]"));
    graphi_graph_destroy(graph);
}

/* What fusion leaves must compute what the single nodes did, to the bit. */
static void fused_program_equals_its_nodes(void **state)
{
    graphi_graph *graph = new_graph();
    graphi_value x = input(graph, "x", 2, (int64_t[]){7, 33}), b = input(graph, "b", 1, (int64_t[]){33});
    graphi_value sum = build2(graph, "add", x, b), squashed = build1(graph, "tanh", sum);
    graphi_value y = graphi_op(graph, "add_n", 3, (graphi_value[]){squashed, sum, squashed}, 0, NULL);
    struct program program = {.inputs = 2, .outputs = 2};
    int16_t value[3];
    assert_int_equal(elementwise_append(graph_node(graph, 0), (int16_t[]){0, 1}, &program, &value[0]), GRAPHI_OK);
    assert_int_equal(elementwise_append(graph_node(graph, 1), &value[0], &program, &value[1]), GRAPHI_OK);
    assert_int_equal(
        elementwise_append(graph_node(graph, 2), (int16_t[]){value[1], value[0], value[1]}, &program, &value[2]),
        GRAPHI_OK);
    program.output[0] = value[2];
    program.output[1] = value[1];
    int64_t code[PROGRAM_MAX_ENCODED];
    graphi_attribute attributes[] = {
        {.name = "program", .type = GRAPHI_INTS, .ints = code, .count = program_encode(&program, code)},
        {.name = "outputs", .type = GRAPHI_INT, .i = 2}};
    graphi_value fused = graphi_op(graph, "program", 2, (graphi_value[]){x, b}, 2, attributes);
    struct program again = {.inputs = 2, .outputs = 2}; /* a program taken into another one */
    assert_int_equal(graphi_graph_status(graph), GRAPHI_OK);
    assert_int_equal(elementwise_append(graph_node(graph, 3), (int16_t[]){0, 1}, &again, again.output), GRAPHI_OK);
    int64_t taken[PROGRAM_MAX_ENCODED];
    assert_int_equal(program_encode(&again, taken), attributes[0].count);
    assert_memory_equal(taken, code, sizeof *code * (size_t)attributes[0].count);
    for (int isa = 0; isa <= (int)isa_detect(); isa++) {
        struct reference r;
        reference_init(&r, graph);
        r.isa = (enum isa)isa;
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        assert_memory_equal(r.data[fused], r.data[y], 7 * 33 * sizeof(float));
        assert_memory_equal(r.data[fused + 1], r.data[squashed], 7 * 33 * sizeof(float));
        reference_fini(&r);
    }
    code[5] = 99; /* damaged: reads a value that does not exist */
    assert_int_equal(graphi_op(graph, "program", 2, (graphi_value[]){x, b}, 2, attributes), GRAPHI_NONE);
    assert_int_equal(graphi_graph_status(graph), GRAPHI_INVALID);
    graphi_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_every_operation),
        cmocka_unit_test(gradients_on_both_sides),
        cmocka_unit_test(equal_arguments_share_no_gradient),
        cmocka_unit_test(gradients_of_powers_at_zero),
        cmocka_unit_test(gradients_of_reductions),
        cmocka_unit_test(gradients_of_softmax),
        cmocka_unit_test(gradient_of_dropout),
        cmocka_unit_test(random_nodes),
        cmocka_unit_test(messages_name_shapes),
        cmocka_unit_test(fused_program_equals_its_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
