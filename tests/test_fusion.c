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
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
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
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = "epilogue"});
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
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {8, 6}, row[] = {6}, one[] = {1};
    graphi_attribute to_row = {.name = "dims", .type = GRAPHI_INTS, .ints = row, .count = 1};
    graphi_attribute to_one = {.name = "dims", .type = GRAPHI_INTS, .ints = one, .count = 1};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims), a = OP("relu", x), b = OP("tanh", OP("neg", x));
    graphi_output(g, "apart", OP("sub", a, graphi_op(g, "sum_to", 1, &a, 1, &to_row)));
    graphi_output(g, "all", graphi_op(g, "sum_to", 1, &b, 1, &to_one));
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
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
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
    assert_int_equal(count_kind(copy, "assign"), 0);
    int assigned = 0;
    for (size_t v = 0; v < copy->values.count; v++)
        assigned += copy->values.data[v].assigns >= 0;
    assert_int_equal(assigned, 4); /* w, m, v, step */
    same_results(g, copy, 0, "adam");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* Batches of products, dims as stored: what broadcasts, what is transposed; ANY is a bounded size. */
enum { ANY = -1, BOUND = 4, ROWS = 3 };
static const struct batch_form {
    int a_rank, b_rank, out_rank, trans_a, trans_b;
    int64_t a[4], b[4], out[4];
} batch_forms[] = {
    {3, 3, 3, 0, 0, {3, 20, 7}, {3, 7, 70}, {3, 20, 70}},
    {4, 3, 4, 0, 1, {2, 3, 5, 7}, {3, 6, 7}, {2, 3, 5, 6}},
    {4, 4, 4, 1, 0, {2, 1, 7, 5}, {1, 3, 7, 6}, {2, 3, 5, 6}},
    {2, 3, 3, 0, 0, {130, 40}, {2, 40, 70}, {2, 130, 70}},
    {4, 4, 4, 0, 1, {ANY, 3, 5, 7}, {ANY, 1, 6, 7}, {ANY, 3, 5, 6}},
    {3, 4, 4, 1, 1, {3, 7, 5}, {ANY, 1, 6, 7}, {ANY, 3, 5, 6}},
};

static graphi_value batch_input(graphi_graph *g, const char *name, int64_t bound, int rank, const int64_t *dims)
{
    int64_t own[4];
    for (int d = 0; d < rank; d++)
        own[d] = dims[d] == ANY ? bound : dims[d];
    return graphi_input(g, name, GRAPHI_F32, rank, own);
}

/* scale tanh(product + bias) column (+ residual). A weight gradient's residual belongs to the optimizer. */
static graphi_graph *batch_chain(const struct batch_form *form)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const graphi_attribute attributes[] = {{.name = "trans_a", .type = GRAPHI_INT, .i = form->trans_a},
                                           {.name = "trans_b", .type = GRAPHI_INT, .i = form->trans_b}};
    const int64_t bound = graphi_symbol(g, "batch", BOUND);
    int64_t column[4];
    memcpy(column, form->out, sizeof column);
    column[form->out_rank - 1] = 1;
    graphi_value product[] = {batch_input(g, "a", bound, form->a_rank, form->a),
                              batch_input(g, "b", bound, form->b_rank, form->b)};
    graphi_value bias = batch_input(g, "bias", bound, 1, form->out + form->out_rank - 1);
    graphi_value y = OP("add", graphi_op(g, "matmul", 2, product, 2, attributes), bias);
    y = OP("mul", OP("mul", OP("tanh", y), number(g, 0.7f)), batch_input(g, "column", bound, form->out_rank, column));
    if (!form->trans_a)
        y = OP("add", y, batch_input(g, "residual", bound, form->out_rank, form->out));
    graphi_output(g, "y", y);
    if (graphi_graph_status(g))
        fail_msg("%s", graphi_message());
    return g;
}

/* Element-wise work behind a batch of products goes through memory twice more, or meets the rows of another product: it
 * must run on their tiles and have the bits of the separate operations. */
static void batches_take_epilogues(void **state)
{
    for (size_t f = 0; f < sizeof batch_forms / sizeof *batch_forms; f++)
        for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++) {
            char what[64];
            graphi_graph *g = batch_chain(&batch_forms[f]);
            graphi_graph *copy = rewritten(g, (struct pass_options){.isa = isa});
            snprintf(what, sizeof what, "form %d, %s", (int)f, isa_name(isa));
            if (copy->nodes.count != 1 || count_kind(copy, "matmul") != 1)
                fail_msg("%s: %d nodes", what, (int)copy->nodes.count);
            same_results_on(isa, 0, g, copy, 0, what);
            same_results_on(isa, ROWS, g, copy, 0, what);
            graphi_graph_destroy(copy);
            graphi_graph_destroy(g);
        }
}

/* A gate that took the other one into its product would wait for it; so neither of two products of one depth takes the
 * other's result. */
static void products_do_not_wait_for_each_other(void **state)
{
    for (int bare = 0; bare < 2; bare++) {
        graphi_graph *g;
        assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
        const int64_t dims[] = {6, 5}, square[] = {5, 5};
        graphi_value one =
            OP("matmul", graphi_input(g, "x", GRAPHI_F32, 2, dims), graphi_input(g, "w", GRAPHI_F32, 2, square));
        graphi_value two =
            OP("matmul", graphi_input(g, "h", GRAPHI_F32, 2, dims), graphi_input(g, "u", GRAPHI_F32, 2, square));
        graphi_output(g, "y", bare ? OP("mul", one, two) : OP("mul", OP("tanh", one), OP("sigmoid", two)));
        graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
        assert_int_equal(count_kind(copy, "matmul"), 2);
        for (size_t i = 0; i < copy->nodes.count; i++)
            for (int k = 0; is_kind(&copy->nodes.data[i], "matmul") && k < copy->nodes.data[i].inputs; k++)
                assert_int_equal(graph_value(copy, copy->nodes.data[i].input[k])->kind, VALUE_INPUT);
        same_results(g, copy, 0, "gates");
        graphi_graph_destroy(copy);
        graphi_graph_destroy(g);
    }
}

/* The slopes of a normalization, vectors that follow from parameters, are there in no time: a product that left them
 * behind would have its result written and read once more. */
static void products_take_vectors_that_are_there_early(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {6, 5}, square[] = {5, 5};
    graphi_value y =
        OP("matmul", graphi_input(g, "x", GRAPHI_F32, 2, dims), graphi_input(g, "w", GRAPHI_F32, 2, square));
    graphi_output(g, "y", OP("mul", y, OP("sigmoid", graphi_parameter(g, "v", GRAPHI_F32, 1, dims + 1, NULL))));
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
    assert_int_equal(copy->nodes.count, 2);
    same_results(g, copy, 0, "slopes");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* The next content of a bias comes after all that reads the one before it: a product that took it would wait for them.
 */
static void products_do_not_wait_for_updates(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {6, 5}, square[] = {5, 5};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims), w = graphi_input(g, "w", GRAPHI_F32, 2, square);
    graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, dims + 1, NULL);
    graphi_value early = OP("matmul", OP("tanh", OP("matmul", x, w)), w), y = OP("matmul", OP("square", x), w);
    graphi_output(g, "before", OP("mul", early, b));
    graphi_value next = graphi_assign(g, b, graphi_input(g, "next", GRAPHI_F32, 1, dims + 1));
    graphi_output(g, "after", OP("add", y, next));
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
    assert_int_equal(copy->nodes.count, 6); /* three products, a square, the update, the sum after it */
    same_results(g, copy, 0, "updates");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* What repeats along a batch, a mask of attention say, is no row, column or whole result: it stays behind the product.
 */
static void operands_that_repeat_in_a_batch_stay_outside(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t q[] = {2, 3, 5, 7}, k[] = {2, 3, 7, 5}, mask[] = {2, 1, 5, 5};
    graphi_value scores = OP("matmul", graphi_input(g, "q", GRAPHI_F32, 4, q), graphi_input(g, "k", GRAPHI_F32, 4, k));
    scores = OP("mul", scores, number(g, 0.4f));
    graphi_output(g, "y", OP("add", scores, graphi_input(g, "mask", GRAPHI_F32, 4, mask)));
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = isa_detect()});
    assert_int_equal(copy->nodes.count, 2);
    same_results_on(isa_detect(), 0, g, copy, 0, "mask");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* x sigmoid(x), hard-swish, GELU by tanh, and what two ways come together to. */
static graphi_value activation(graphi_graph *g, int which, graphi_value x)
{
    graphi_value three = number(g, 3), zero = number(g, 0), six = number(g, 6), cube;
    switch (which) {
    case 0: return OP("mul", x, OP("sigmoid", x));
    case 1: return OP("mul", x, OP("div", OP("min", OP("max", OP("add", x, three), zero), six), six));
    case 2:
        cube = OP("mul", OP("mul", x, OP("square", x)), number(g, 0.044715f));
        cube = OP("tanh", OP("mul", OP("add", x, cube), number(g, 0.79788456f)));
        return OP("mul", OP("mul", x, number(g, 0.5f)), OP("add", cube, number(g, 1)));
    default: return OP("add", OP("mul", OP("exp", x), OP("tanh", x)), OP("select", x, OP("neg", x), OP("square", x)));
    }
}

/* Results that are read twice meet again on the tile. One that somebody else has ends the epilogue before it. */
static void diamonds_run_on_tiles(void **state)
{
    const int64_t xs[] = {9, 20}, ws[] = {20, 33}, image[] = {2, 7, 7, 6}, window[] = {3, 3, 6, 10};
    for (int which = 0; which < 4; which++)
        for (int form = 0; form < 3; form++) { /* product, convolution, a product of which something else is read */
            graphi_graph *g;
            assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
            const bool product = form != 1;
            graphi_value x = graphi_input(g, "x", GRAPHI_F32, product ? 2 : 4, product ? xs : image);
            graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, product ? 2 : 4, product ? ws : window, NULL);
            graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, product ? ws + 1 : window + 3, NULL);
            graphi_value y = OP("add", product ? OP("matmul", x, w) : OP("conv2d", x, w), b);
            if (form == 2)
                graphi_output(g, "biased", y);
            graphi_output(g, "y", activation(g, which, y));
            graphi_graph *copy = rewritten(g, (struct pass_options){.isa = isa_detect(), .disable = "pack"});
            assert_int_equal(copy->nodes.count, form == 2 ? 2 : 1);
            same_results_on(isa_detect(), 0, g, copy, 0, "diamond");
            graphi_graph_destroy(copy);
            graphi_graph_destroy(g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fusion_takes_a_whole_cell),
        cmocka_unit_test(fusion_keeps_groups_convex),
        cmocka_unit_test(fusion_stores_no_more_than_needed),
        cmocka_unit_test(readers_of_sums_wait_for_them),
        cmocka_unit_test(fusion_writes_updates_in_place),
        cmocka_unit_test(batches_take_epilogues),
        cmocka_unit_test(diamonds_run_on_tiles),
        cmocka_unit_test(operands_that_repeat_in_a_batch_stay_outside),
        cmocka_unit_test(products_do_not_wait_for_each_other),
        cmocka_unit_test(products_take_vectors_that_are_there_early),
        cmocka_unit_test(products_do_not_wait_for_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
