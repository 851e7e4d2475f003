/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows by one weight that become one (passes/batch.c): which ones, that no cycle comes about, and that
 * plans for few cores and for many have the same bits. */
#include "engine/compile/plan.h"
#include "machine/machine.h"
#include "rewritten.h"

#include <stdio.h>

enum { LAYERS = 3, STEPS = 5, ROWS = 2, UNITS = 64, FEW = 2, MANY = 64 };

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    return g;
}

static graphi_value weight(graphi_graph *g, const char *name, int i)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", name, i);
    return graphi_parameter(g, text, GRAPHI_F32, 2, (int64_t[]){UNITS, UNITS},
                            &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -0.1, .b = 0.1});
}

static graphi_value input(graphi_graph *g, const char *name, int i, int64_t rows)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", name, i);
    return graphi_input(g, text, GRAPHI_F32, 2, (int64_t[]){rows, UNITS});
}

static graphi_value times(graphi_graph *g, graphi_value x, graphi_value w) { return graphi_matmul(g, x, w, 0, 0); }

static void output(graphi_graph *g, const char *name, int i, graphi_value value)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", name, i);
    graphi_output(g, text, value);
}

/* h(l, t) = tanh(0.1 (x W(l) + h(l, t - 1) U(l))), in which h U may come first; with updates, of all weights. More than
 * 0.1 would make much of rounding. */
static graphi_graph *unrolled(bool training, bool h_first)
{
    graphi_graph *g = new_graph();
    graphi_value w[LAYERS], u[LAYERS], h[LAYERS], loss = GRAPHI_NONE;
    for (int l = 0; l < LAYERS; l++) {
        w[l] = weight(g, "w", l);
        u[l] = weight(g, "u", l);
        h[l] = input(g, "h", l, ROWS);
    }
    graphi_value all = input(g, "x", 0, ROWS * STEPS);
    for (int t = 0; t < STEPS; t++) {
        graphi_value x = graphi_slice(g, all, 0, ROWS * t, ROWS * t + ROWS);
        for (int l = 0; l < LAYERS; l++) {
            const graphi_value up = times(g, x, w[l]), on = times(g, h[l], u[l]);
            const graphi_value sum = h_first ? graphi_add(g, on, up) : graphi_add(g, up, on);
            x = h[l] = graphi_tanh(g, graphi_mul(g, sum, number(g, 0.1f)));
        }
        graphi_value part = graphi_reduce_sum(g, graphi_square(g, x), NULL, 0, 0);
        loss = loss == GRAPHI_NONE ? part : graphi_add(g, loss, part);
    }
    graphi_output(g, "loss", loss);
    if (training)
        assert_int_equal(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = number(g, 0.01f)}), GRAPHI_OK);
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    return g;
}

/* The pass alone, after which the graph is whole and has the same results. */
static graphi_graph *batched(const graphi_graph *g)
{
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .cores = FEW, .disable = "all,+batch"});
    same_results(g, copy, 1e-5, "batch");
    return copy;
}

/* Products of so many rows. */
static int count_products(const graphi_graph *g, int64_t rows)
{
    int count = 0;
    for (size_t i = 0; i < g->nodes.count; i++) {
        const struct node *node = &g->nodes.data[i];
        count += is_kind(node, "matmul") && !attr_int(node, "trans_a") &&
                 graph_value(g, node->input[0])->type.dims[0] == rows;
    }
    return count;
}

/* In the forward pass each layer's x W, in the backward one what it gives to the layer below, but for the last step:
 * there is no other gradient to add it to. The lowest layer's operands are the input as it came. */
static void steps_become_rows(void **state)
{
    for (int training = 0; training < 2; training++)
        for (int h_first = 0; h_first < 2; h_first++) {
            graphi_graph *g = unrolled(training, h_first), *b;
            b = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .cores = FEW, .disable = "pack,fusion"});
            same_results(g, b, 1e-5, "all passes");
            assert_int_equal(count_products(b, ROWS * STEPS), LAYERS);
            assert_int_equal(count_products(b, ROWS * (STEPS - 1)), training ? LAYERS - 1 : 0);
            const int backward = training ? LAYERS * (STEPS - 1) + LAYERS - 1 : 0;
            assert_int_equal(count_products(b, ROWS), LAYERS * STEPS + backward);
            assert_int_equal(count_kind(b, "concat"), training ? 2 * (LAYERS - 1) : LAYERS - 1);
            graphi_graph_destroy(b);
            graphi_graph_destroy(g);
        }
}

/* Sums go on where the whole product left off: no bit depends on the cores, in any instruction set and precision. */
static void cores_change_no_bits(void **state)
{
    static const char *const lists[] = {NULL, "sums", "pack", "+merge", "epilogue,fusion"};
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (int form = 0; form < 8; form++)
            for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
                graphi_graph *g = unrolled(form & 1, form >> 1 & 1);
                struct pass_options options = {.isa = isa, .cores = FEW, .disable = lists[list],
                                               .multiplicands = form & 4 ? GRAPHI_BF16 : GRAPHI_F32};
                graphi_graph *few = rewritten(g, options);
                options.cores = MANY;
                graphi_graph *many = rewritten(g, options);
                assert_true(count_products(few, ROWS * STEPS) && !count_products(many, ROWS * STEPS));
                same_results_on(isa, 0, many, few, 0, "cores");
                graphi_graph_destroy(many);
                graphi_graph_destroy(few);
                graphi_graph_destroy(g);
            }
}

/* z(t) = tanh(x(t) P) W + x(t) V: both pairs can be had of all steps at once, as products of many rows. */
static graphi_graph *of_two_shared_pairs(bool late_first)
{
    enum { MANY_STEPS = 16 };
    graphi_graph *g = new_graph();
    graphi_value p = weight(g, "p", 0), w = weight(g, "w", 0), v = weight(g, "v", 0), loss = GRAPHI_NONE;
    for (int t = 0; t < MANY_STEPS; t++) {
        graphi_value x = input(g, "x", t, ROWS), late = times(g, graphi_tanh(g, times(g, x, p)), w),
                     early = times(g, x, v);
        graphi_value z = late_first ? graphi_add(g, late, early) : graphi_add(g, early, late);
        graphi_value part = graphi_reduce_sum(g, graphi_square(g, z), NULL, 0, 0);
        loss = loss == GRAPHI_NONE ? part : graphi_add(g, loss, part);
    }
    graphi_output(g, "loss", loss);
    assert_int_equal(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = number(g, 1e-3f)}), GRAPHI_OK);
    return g;
}

/* z = x W and relu(y P) W, whose operands are there together where both products are one. */
static graphi_graph *of_one_weight(bool late_first)
{
    graphi_graph *g = new_graph();
    graphi_value p = weight(g, "p", 0), w = weight(g, "w", 0);
    graphi_value early = input(g, "x", 0, ROWS), late = graphi_relu(g, times(g, input(g, "y", 0, ROWS), p));
    graphi_value first = times(g, late_first ? late : early, w), second = times(g, late_first ? early : late, w);
    graphi_value loss = graphi_add(g, graphi_reduce_sum(g, graphi_square(g, first), NULL, 0, 0),
                                   graphi_reduce_sum(g, graphi_square(g, second), NULL, 0, 0));
    graphi_output(g, "loss", loss);
    assert_int_equal(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = number(g, 1e-3f)}), GRAPHI_OK);
    return g;
}

/* What was put together waits for the last of its parts, so operands are there in another order than apart: pass_ready
 * must not see that. */
static void order_is_from_before(void **state)
{
    for (int form = 0; form < 4; form++) {
        graphi_graph *g = (form & 1 ? of_one_weight : of_two_shared_pairs)(form >> 1);
        assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
        graphi_graph *few = rewritten(g, (struct pass_options){.isa = isa_detect(), .cores = FEW});
        graphi_graph *many = rewritten(g, (struct pass_options){.isa = isa_detect(), .cores = MANY});
        assert_int_not_equal(few->nodes.count, many->nodes.count);
        same_results_on(isa_detect(), 0, many, few, 0, "cores");
        graphi_graph_destroy(many);
        graphi_graph_destroy(few);
        graphi_graph_destroy(g);
    }
}

/* Each product of a chain reads what the one before made. */
static void what_waits_stays(void **state)
{
    graphi_graph *g = new_graph(), *b;
    graphi_value w = weight(g, "w", 0), h = input(g, "h", 0, ROWS);
    for (int t = 0; t < STEPS; t++)
        h = graphi_tanh(g, times(g, h, w));
    graphi_output(g, "h", h);
    b = batched(g);
    assert_int_equal(count_products(b, ROWS), STEPS);
    graphi_graph_destroy(b);
    graphi_graph_destroy(g);
}

/* Of two weights of which each one's product waits for one of the other's, one gives way. */
static void no_cycle_comes_about(void **state)
{
    graphi_graph *g = new_graph(), *b;
    graphi_value v = weight(g, "v", 0), w = weight(g, "w", 0);
    output(g, "z", 0, times(g, graphi_relu(g, times(g, input(g, "x", 0, ROWS), v)), w));
    output(g, "z", 1, times(g, graphi_relu(g, times(g, input(g, "x", 1, ROWS), w)), v));
    b = batched(g);
    assert_int_equal(count_products(b, ROWS), 2);
    assert_int_equal(count_products(b, 2 * ROWS), 1);
    graphi_graph_destroy(b);
    graphi_graph_destroy(g);
}

/* The second product reads what a parameter has after an update that waits for a reader of the first one's result. */
static void updates_are_waited_for(void **state)
{
    graphi_graph *g = new_graph(), *b;
    graphi_value w = weight(g, "w", 0);
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 2, (int64_t[]){ROWS, UNITS}, NULL);
    output(g, "z", 0, graphi_mul(g, times(g, input(g, "x", 0, ROWS), w), p));
    graphi_value set = graphi_assign(g, p, graphi_add(g, p, number(g, 1)));
    output(g, "z", 1, times(g, graphi_mul(g, input(g, "x", 1, ROWS), set), w));
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    b = batched(g);
    assert_int_equal(count_products(b, ROWS), 2);
    graphi_graph_destroy(b);
    graphi_graph_destroy(g);
}

/* Operands that follow each other in one value need no copy, in part of it either; others are put below each other. */
static void neighbours_are_not_copied(void **state)
{
    static const struct {
        int at[3], copies, slices; /* slices: of the input, before and after */
    } cases[] = {{{0, 2, 4}, 0, 3}, {{2, 4, 6}, 0, 4}, {{-6, 4, 6}, 0, 4}, {{0, 4, 2}, 1, 6}, {{0, 2, 6}, 1, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_graph *g = new_graph(), *b;
        graphi_value w = weight(g, "w", 0), x = input(g, "x", 0, i ? 8 : 6);
        for (int k = 0; k < 3; k++)
            output(g, "z", k, times(g, graphi_slice(g, x, 0, cases[i].at[k], cases[i].at[k] + 2), w));
        b = batched(g);
        assert_int_equal(count_products(b, 6), 1);
        assert_int_equal(count_kind(b, "concat"), cases[i].copies);
        graphi_graph *rest = rewritten(b, (struct pass_options){.isa = ISA_PLAIN, .disable = "all,+dead"});
        assert_int_equal(count_kind(rest, "slice"), cases[i].slices);
        graphi_graph_destroy(rest);
        graphi_graph_destroy(b);
        graphi_graph_destroy(g);
    }
}

/* A second layer of products takes what the first one left as it is. */
static void batches_follow_each_other(void **state)
{
    enum { DEPTH = 4 };
    graphi_graph *g = new_graph(), *b;
    graphi_value x[2] = {input(g, "x", 0, ROWS), input(g, "x", 1, ROWS)};
    for (int i = 0; i < DEPTH; i++) {
        graphi_value w = weight(g, "w", i);
        x[0] = times(g, x[0], w);
        x[1] = times(g, x[1], w);
    }
    output(g, "z", 0, x[0]);
    output(g, "z", 1, x[1]);
    b = batched(g);
    assert_int_equal(count_products(b, 2 * ROWS), DEPTH);
    assert_int_equal(count_products(b, ROWS), 0);
    assert_int_equal(count_kind(b, "concat"), 1);
    graphi_graph_destroy(b);
    graphi_graph_destroy(g);
}

/* Many rows, small weights, and weights that are computed. */
static void limits(void **state)
{
    static const struct {
        int64_t rows, units;
        bool computed, batches;
    } cases[] = {{24, 768, false, true},  {25, 800, false, false}, {2, 64, false, true},
                 {3, 64, false, false}, {1, 16, false, false},   {2, 64, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t rows = cases[i].rows, units = cases[i].units;
        graphi_graph *g = new_graph(), *b;
        graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){units, units}, NULL);
        w = cases[i].computed ? graphi_neg(g, w) : w;
        for (int k = 0; k < 2; k++) {
            char name[8];
            snprintf(name, sizeof name, "x%d", k);
            output(g, "z", k, times(g, graphi_input(g, name, GRAPHI_F32, 2, (int64_t[]){rows, units}), w));
        }
        b = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .cores = FEW});
        assert_int_equal(count_products(b, 2 * rows), cases[i].batches);
        graphi_graph_destroy(b);
        graphi_graph_destroy(g);
    }
}

/* What sums begin with is one of their result's type, and gets the gradient of the result. */
static void sums_begin_with_their_like(void **state)
{
    for (int i = -4; i <= 4; i += 2) { /* whatever number says so, there is one of them */
        graphi_graph *g = new_graph();
        const graphi_attribute base = {.name = "base", .type = GRAPHI_INT, .i = i};
        const graphi_value in[] = {input(g, "x", 0, ROWS), weight(g, "w", 0)};
        graphi_op(g, "matmul", 2, in, 1, &base);
        assert_int_equal(graphi_graph_status(g), i ? GRAPHI_INVALID : GRAPHI_OK);
        graphi_graph_destroy(g);
    }
    const graphi_attribute base = {.name = "base", .type = GRAPHI_INT, .i = 1};
    for (int64_t rows = ROWS - 1; rows <= ROWS; rows++) {
        graphi_graph *g = new_graph();
        const graphi_value in[] = {input(g, "x", 0, ROWS), weight(g, "w", 0), input(g, "y", 0, rows)};
        graphi_value y = graphi_op(g, "matmul", 3, in, 1, &base), gradient[2];
        assert_int_equal(graphi_graph_status(g), rows == ROWS ? GRAPHI_OK : GRAPHI_INVALID);
        if (rows == ROWS) {
            graphi_value loss = graphi_reduce_sum(g, y, NULL, 0, 0);
            assert_int_equal(graphi_gradients(g, loss, 2, (graphi_value[]){y, in[2]}, gradient), GRAPHI_OK);
            assert_int_equal(gradient[0], gradient[1]);
        }
        graphi_graph_destroy(g);
    }
}

/* Who set it by hand would have it taken for an operand of a pair, by every pass that puts products together. */
static void bases_set_by_hand_stay(void **state)
{
    const graphi_attribute base = {.name = "base", .type = GRAPHI_INT, .i = 1};
    graphi_graph *g = new_graph(), *b;
    graphi_value x = input(g, "x", 0, ROWS), y = input(g, "x", 1, ROWS), z[4];
    for (int i = 0; i < 4; i++) { /* by one weight, of one input, and a sum */
        const graphi_value in[] = {i == 1 ? y : x, weight(g, "w", i), input(g, "z", i, ROWS)};
        z[i] = graphi_op(g, "matmul", 3, i == 1 ? (graphi_value[]){y, graphi_find(g, "w0"), in[2]} : in, 1, &base);
        output(g, "y", i, graphi_mul(g, z[i], number(g, 0.1f)));
    }
    output(g, "sum", 0, graphi_add(g, graphi_op(g, "matmul", 3, (graphi_value[]){x, graphi_find(g, "w2"), y}, 1, &base),
                                   times(g, y, graphi_find(g, "w3"))));
    b = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .cores = FEW, .disable = "+merge"});
    same_results(g, b, 1e-6, "products with a base");
    graphi_graph_destroy(b);
    graphi_graph_destroy(g);
}

static int products_of_plan(graphi_machine *machine, const char *disable)
{
    graphi_graph *g = unrolled(false, false);
    graphi_plan *plan;
    assert_int_equal(graphi_plan_create(g, machine, &(graphi_plan_options){.disable = disable}, &plan), GRAPHI_OK);
    const int count = count_products(plan->compiled->graph, ROWS * STEPS);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    return count;
}

static void plans_know_the_cores(void **state)
{
    for (int cores = 7; cores <= 10; cores++) {
        graphi_machine *machine;
        assert_int_equal(graphi_machine_load("machines/e5-2650v4-x2.json", cores, &machine), GRAPHI_OK);
        assert_int_equal(products_of_plan(machine, NULL), cores <= 8 ? LAYERS : 0);
        assert_int_equal(products_of_plan(machine, "batch"), 0);
        graphi_machine_destroy(machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_become_rows),      cmocka_unit_test(cores_change_no_bits),
        cmocka_unit_test(order_is_from_before),
        cmocka_unit_test(what_waits_stays),       cmocka_unit_test(no_cycle_comes_about),
        cmocka_unit_test(updates_are_waited_for), cmocka_unit_test(neighbours_are_not_copied),
        cmocka_unit_test(batches_follow_each_other),
        cmocka_unit_test(limits),                 cmocka_unit_test(plans_know_the_cores),
        cmocka_unit_test(sums_begin_with_their_like), cmocka_unit_test(bases_set_by_hand_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
