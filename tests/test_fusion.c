/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise fusion: what becomes one program, and what must not. */
#include "rewritten.h"

/* Fusion that leaves an LSTM cell in pieces, or that glues across a matrix product, loses the gain or deadlocks. */
static void fusion_takes_a_whole_cell(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {4, 8};
    graphi_value i = graphi_input(g, "i", GRAPHI_F32, 2, dims), f = graphi_input(g, "f", GRAPHI_F32, 2, dims);
    graphi_value o = graphi_input(g, "o", GRAPHI_F32, 2, dims), u = graphi_input(g, "u", GRAPHI_F32, 2, dims);
    graphi_value c = graphi_input(g, "c", GRAPHI_F32, 2, dims), b = graphi_input(g, "b", GRAPHI_F32, 1, dims + 1);
    graphi_value next = OP("add", OP("mul", OP("sigmoid", OP("add", f, b)), c),
                           OP("mul", OP("sigmoid", OP("add", i, b)), OP("tanh", u)));
    graphi_value h = OP("mul", OP("sigmoid", o), OP("tanh", next));
    graphi_output(g, "c2", next);
    graphi_output(g, "h", h);
    struct pass_options options = {.isa = ISA_PLAIN};
    assert_int_equal(passes_run(g, &options), GRAPHI_OK);
    assert_int_equal(graph_check(g), GRAPHI_OK);
    assert_int_equal(g->nodes.count, 1);
    assert_int_equal(count_kind(g, "program"), 1);
    graphi_graph_destroy(g);
}

/* x -> a -> (sum) -> b and a -> b: fusing a with b would make the sum both before and after the group. */
static void fusion_keeps_groups_convex(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {4, 8};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims);
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value a = OP("tanh", OP("square", x));
    graphi_value sum = graphi_op(g, "sum_to", 1, &a, 1, &none);
    graphi_value b = OP("sigmoid", OP("mul", a, sum));
    graphi_output(g, "b", b);
    graphi_graph *copy;
    assert_int_equal(graph_clone(g, &copy), GRAPHI_OK);
    struct pass_options options = {.isa = ISA_PLAIN};
    assert_int_equal(passes_run(copy, &options), GRAPHI_OK);
    assert_int_equal(graph_check(copy), GRAPHI_OK);
    assert_int_equal(copy->nodes.count, 3);
    same_results(g, copy, 0, "convex");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* A product that only a later program reads is written and read for nothing; so are the terms of a sum over rows. The
 * later program waits for the matrix product, the earlier one makes an operand of it. */
static void fusion_stores_no_more_than_needed(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {4, 8}, square[] = {8, 8}, row[] = {8};
    graphi_value p = graphi_input(g, "p", GRAPHI_F32, 2, dims), q = graphi_input(g, "q", GRAPHI_F32, 2, dims);
    graphi_value w = graphi_input(g, "w", GRAPHI_F32, 2, square), b = graphi_input(g, "b", GRAPHI_F32, 1, row);
    graphi_attribute to_row = {.name = "dims", .type = GRAPHI_INTS, .ints = row, .count = 1};
    graphi_value c = OP("tanh", p), u = OP("mul", c, q), v = OP("neg", u);
    graphi_value z = OP("add", OP("mul", OP("add", OP("matmul", c, w), b), u), v);
    graphi_value terms = OP("mul", z, OP("square", u));
    graphi_output(g, "z", z);
    graphi_output(g, "sum", graphi_op(g, "sum_to", 1, &terms, 1, &to_row));
    graphi_graph *copy;
    assert_int_equal(graph_clone(g, &copy), GRAPHI_OK);
    struct pass_options options = {.isa = ISA_PLAIN, .disable = "epilogue"};
    assert_int_equal(passes_run(copy, &options), GRAPHI_OK);
    assert_int_equal(graph_check(copy), GRAPHI_OK);
    assert_int_equal(copy->nodes.count, 3); /* tanh, matmul, program */
    assert_int_equal(count_kind(copy, "program"), 1);
    same_results(g, copy, 0, "sums");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* A sum ends its program: a matrix that reads it, beside the terms, waits for all of them; in one program it would read
 * a term. A scalar's sum is none over rows. */
static void readers_of_sums_wait_for_them(void **state)
{
    graphi_graph *g, *copy;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {8, 6}, row[] = {6}, one[] = {1};
    graphi_attribute to_row = {.name = "dims", .type = GRAPHI_INTS, .ints = row, .count = 1};
    graphi_attribute to_one = {.name = "dims", .type = GRAPHI_INTS, .ints = one, .count = 1};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims), a = OP("relu", x), b = OP("tanh", OP("neg", x));
    graphi_output(g, "apart", OP("sub", a, graphi_op(g, "sum_to", 1, &a, 1, &to_row)));
    graphi_output(g, "all", graphi_op(g, "sum_to", 1, &b, 1, &to_one));
    assert_int_equal(graph_clone(g, &copy), GRAPHI_OK);
    struct pass_options options = {.isa = ISA_PLAIN};
    assert_int_equal(passes_run(copy, &options), GRAPHI_OK);
    assert_int_equal(graph_check(copy), GRAPHI_OK);
    same_results(g, copy, 0, "sums that are read again");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* An update that is not in its program streams the parameter through memory twice more. */
static void fusion_writes_updates_in_place(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {4, 8};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims), w = graphi_parameter(g, "w", GRAPHI_F32, 2, dims, NULL);
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value y = OP("tanh", OP("mul", x, w));
    graphi_value loss = graphi_op(g, "sum_to", 1, &y, 1, &none);
    graphi_optimizer adam = {.kind = GRAPHI_ADAM, .learning_rate = number(g, 0.01f)};
    assert_int_equal(graphi_minimize(g, loss, &adam), GRAPHI_OK);
    graphi_output(g, "loss", loss);
    graphi_graph *copy;
    assert_int_equal(graph_clone(g, &copy), GRAPHI_OK);
    struct pass_options options = {.isa = ISA_PLAIN};
    assert_int_equal(passes_run(copy, &options), GRAPHI_OK);
    assert_int_equal(graph_check(copy), GRAPHI_OK);
    assert_int_equal(count_kind(copy, "assign"), 0);
    int assigned = 0;
    for (size_t v = 0; v < copy->values.count; v++)
        assigned += copy->values.data[v].assigns >= 0;
    assert_int_equal(assigned, 4); /* w, m, v, step */
    same_results(g, copy, 0, "adam");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fusion_takes_a_whole_cell),
        cmocka_unit_test(fusion_keeps_groups_convex),
        cmocka_unit_test(fusion_stores_no_more_than_needed),
        cmocka_unit_test(readers_of_sums_wait_for_them),
        cmocka_unit_test(fusion_writes_updates_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
