/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on products and convolutions: every form's gradient against differences, bounded rows, packing, epilogues. */
#include "kernels/program.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define INTS(text, ...)                                                                     \
    {.name = text, .type = GRAPHI_INTS, .ints = (const int64_t[]){__VA_ARGS__},              \
     .count = (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))}
#define INT(text, value) {.name = text, .type = GRAPHI_INT, .i = value}

static graphi_value input(graphi_graph *graph, const char *name, int rank, const int64_t *dims)
{
    return graphi_input(graph, name, GRAPHI_F32, rank, dims);
}

static graphi_value reshaped(graphi_graph *graph, graphi_value value, int rank, const int64_t *shape)
{
    graphi_attribute attribute = {.name = "shape", .type = GRAPHI_INTS, .ints = shape, .count = rank};
    return graphi_op(graph, "reshape", 1, &value, 1, &attribute);
}

/* The sum of all elements of `value` with random weights. */
static graphi_value weighed(graphi_graph *graph, graphi_value value)
{
    int64_t count = type_count(&graph_value(graph, value)->type);
    graphi_value pair[] = {reshaped(graph, value, 2, (int64_t[]){1, count}), input(graph, "weights", 2, (int64_t[]){count, 1})};
    return reshaped(graph, graphi_op(graph, "matmul", 2, pair, 0, NULL), 0, NULL);
}

/* Gradients of one operation with respect to all its inputs. */
static void check_gradients(const char *kind, int inputs, const int *rank, int64_t (*dims)[4], int attributes,
                            const graphi_attribute *attribute)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    graphi_graph *graph;
    graphi_value in[4], gradient[4];
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    for (int i = 0; i < inputs; i++)
        in[i] = input(graph, names[i], rank[i], dims[i]);
    graphi_value out = graphi_op(graph, kind, inputs, in, attributes, attribute);
    if (out == GRAPHI_NONE)
        fail_msg("%s", graphi_message());
    graphi_value loss = weighed(graph, out);
    if (graphi_gradients(graph, loss, inputs, in, gradient) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    struct reference r;
    reference_init(&r, graph);
    for (int i = 0; i < inputs; i++)
        assert_true(reference_gradient_error(&r, loss, in[i], gradient[i], 12, 0.05) < 2e-3);
    reference_fini(&r);
    graphi_graph_destroy(graph);
}

/* A wrong transposition in any of the forms: rows, reduction, batch, one operand used for the whole batch, sums of pairs. */
static void gradients_of_matmul(void **state)
{
    (void)state;
    for (int ta = 0; ta < 2; ta++)
        for (int tb = 0; tb < 2; tb++) {
            graphi_attribute attributes[] = {INT("trans_a", ta), INT("trans_b", tb), INT("pairs", 2)};
            int64_t two[4][4] = {{ta ? 7 : 5, ta ? 5 : 7}, {tb ? 6 : 7, tb ? 7 : 6}, {ta ? 3 : 5, ta ? 5 : 3},
                                 {tb ? 6 : 3, tb ? 3 : 6}};
            check_gradients("matmul", 2, (int[]){2, 2}, two, 2, attributes);
            check_gradients("matmul", 4, (int[]){2, 2, 2, 2}, two, 3, attributes);
            int64_t batch[2][4] = {{2, 3, ta ? 7 : 5, ta ? 5 : 7}, {2, 3, tb ? 6 : 7, tb ? 7 : 6}};
            check_gradients("matmul", 2, (int[]){4, 4}, batch, 2, attributes);
            int64_t left[2][4] = {{3, ta ? 7 : 5, ta ? 5 : 7}, {tb ? 6 : 7, tb ? 7 : 6}};
            if (!ta) /* with trans_a the gradient of b is a sum over the batch */
                check_gradients("matmul", 2, (int[]){3, 2}, left, 2, attributes);
        }
}

/* Wrong padding, stride, group or size in a gradient; and gradients of gradients. */
static void gradients_of_convolutions(void **state)
{
    (void)state;
    graphi_attribute plain[] = {INTS("strides", 1, 1), INTS("pads", 1, 1, 1, 1)};
    graphi_attribute grouped[] = {INTS("strides", 2, 1), INTS("pads", 0, 1, 2, 0), INT("groups", 2), INTS("dilations", 1, 2)};
    int64_t images[2][4] = {{2, 6, 7, 4}, {3, 3, 4, 6}}, grouped_weights[2][4] = {{2, 6, 7, 4}, {3, 3, 2, 6}};
    check_gradients("conv2d", 2, (int[]){4, 4}, images, 2, plain);
    check_gradients("conv2d", 2, (int[]){4, 4}, grouped_weights, 4, grouped);
    graphi_attribute data[] = {INTS("strides", 2, 2), INTS("pads", 1, 1, 1, 1), INTS("size", 8, 7)};
    int64_t dy[2][4] = {{2, 4, 4, 6}, {3, 3, 4, 6}};
    check_gradients("conv2d_backward_data", 2, (int[]){4, 4}, dy, 3, data);
    graphi_attribute weights[] = {INTS("strides", 2, 2), INTS("pads", 1, 1, 1, 1), INTS("kernel", 3, 3)};
    int64_t x_dy[2][4] = {{2, 8, 7, 4}, {2, 4, 4, 6}};
    check_gradients("conv2d_backward_weights", 2, (int[]){4, 4}, x_dy, 3, weights);
}

/* Fewer rows than the bound must give the rows that the same graph of that size gives, also where a row of the bounded
 * dimension is several rows of the matrix, a step of a reduction, or several products of a batch. */
static void bounded_rows(void **state)
{
    (void)state;
    float *result[2][4];
    int64_t count[4];
    for (int bounded = 0; bounded < 2; bounded++) {
        graphi_graph *graph;
        assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
        int64_t n = bounded ? graphi_symbol(graph, "batch", 9) : 4;
        graphi_value x = input(graph, "x", 3, (int64_t[]){n, 5, 8}), w = input(graph, "w", 2, (int64_t[]){8, 70});
        graphi_value u = input(graph, "u", 2, (int64_t[]){n, 20}), v = input(graph, "v", 2, (int64_t[]){n, 30});
        graphi_value y = input(graph, "y", 3, (int64_t[]){n, 8, 6});
        graphi_value image = input(graph, "image", 4, (int64_t[]){n, 5, 5, 3}), k = input(graph, "k", 4, (int64_t[]){3, 3, 3, 4});
        graphi_attribute trans = INT("trans_a", 1);
        graphi_value out[] = {graphi_op(graph, "matmul", 2, (graphi_value[]){x, w}, 0, NULL),
                              graphi_op(graph, "matmul", 2, (graphi_value[]){u, v}, 1, &trans),
                              graphi_op(graph, "matmul", 2, (graphi_value[]){x, y}, 0, NULL),
                              graphi_op(graph, "conv2d", 2, (graphi_value[]){image, k}, 0, NULL)};
        assert_int_equal(graphi_graph_status(graph), GRAPHI_OK);
        struct reference r;
        reference_init(&r, graph);
        r.rows = 4;
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        for (int i = 0; i < 4; i++) {
            if (!bounded)
                count[i] = type_count(&graph_value(graph, out[i])->type);
            result[bounded][i] = malloc((size_t)count[i] * sizeof(float));
            memcpy(result[bounded][i], reference_floats(&r, out[i]), (size_t)count[i] * sizeof(float));
        }
        reference_fini(&r);
        graphi_graph_destroy(graph);
    }
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(result[0][i], result[1][i], (size_t)count[i] * sizeof(float));
        free(result[0][i]);
        free(result[1][i]);
    }
}

/* A packed and fused product must be what the separate operations give (passes rewrite one into the other). */
static void packed_and_fused(void **state)
{
    (void)state;
    graphi_graph *graph;
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    graphi_value x = input(graph, "x", 2, (int64_t[]){20, 33}), w = input(graph, "w", 2, (int64_t[]){90, 33});
    graphi_value bias = input(graph, "bias", 1, (int64_t[]){90});
    graphi_attribute trans_b = INT("trans_b", 1), trans = INT("trans", 1);
    graphi_value plain = graphi_op(graph, "matmul", 2, (graphi_value[]){x, w}, 1, &trans_b);
    plain = graphi_op(graph, "relu", 1, (graphi_value[]){graphi_op(graph, "add", 2, (graphi_value[]){plain, bias}, 0, NULL)}, 0, NULL);
    struct program program = {.inputs = 2, .instructions = 2, .outputs = 2, .output = {3, 2}};
    program.code[0] = (struct program_instruction){PROGRAM_ADD, 0, 1, -1, 0};
    program.code[1] = (struct program_instruction){PROGRAM_RELU, 2, -1, -1, 0};
    int64_t encoded[PROGRAM_MAX_ENCODED];
    int length = program_encode(&program, encoded);
    graphi_attribute attributes[] = {INT("packed_b", 1), {.name = "program", .type = GRAPHI_INTS, .ints = encoded, .count = length},
                                     INT("outputs", 2)};
    graphi_value packed = graphi_op(graph, "pack", 1, &w, 1, &trans);
    graphi_value fused = graphi_op(graph, "matmul", 3, (graphi_value[]){x, packed, bias}, 3, attributes);
    if (graphi_graph_status(graph) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++) {
        struct reference r;
        reference_init(&r, graph);
        r.isa = isa;
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        assert_true(reference_difference(reference_floats(&r, fused), reference_floats(&r, plain), 20 * 90) < 1e-6);
        assert_true(reference_floats(&r, fused + 1)[0] <= reference_floats(&r, fused)[0]);
        reference_fini(&r);
    }
    graphi_graph_destroy(graph);
}

/* Without it a value that is no number could hide behind a number that follows it. */
static void differences_see_what_is_no_number(void **state)
{
    (void)state;
    float good[3] = {1, 2, 3}, bad[3] = {1, NAN, 3};
    assert_true(reference_difference(good, good, 3) == 0);
    assert_true(reference_difference(bad, good, 3) == INFINITY);
    assert_true(reference_difference(good, bad, 3) == INFINITY);
}

/* Operands that do not fit must be refused with both types in the message. */
static void mismatches_are_named(void **state)
{
    (void)state;
    graphi_graph *graph;
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    graphi_value x = input(graph, "x", 2, (int64_t[]){64, 512}), w = input(graph, "w", 2, (int64_t[]){256, 100});
    assert_int_equal(graphi_op(graph, "matmul", 2, (graphi_value[]){x, w}, 0, NULL), GRAPHI_NONE);
    assert_int_equal(graphi_graph_status(graph), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "[64,512]"));
    assert_non_null(strstr(graphi_message(), "[256,100]"));
    graphi_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_matmul), cmocka_unit_test(gradients_of_convolutions), cmocka_unit_test(bounded_rows),
        cmocka_unit_test(differences_see_what_is_no_number),
        cmocka_unit_test(packed_and_fused),    cmocka_unit_test(mismatches_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
