/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products in the order in which their operands are there (passes/ready.c) and in stages (passes/stages.c),
 * weight gradients over time and gates: which ones, on how many cores, that a stage needs nothing that is made behind
 * the one before, and that no bit depends on them. */
#include "engine/compile/plan.h"
#include "machine/machine.h"
#include "rewritten.h"

#include <stdio.h>

enum { ROWS = 64, UNITS = 8, STEPS = 10, FEW = 8, MANY = 9, OF_STAGE = 256 };

static graphi_value input(graphi_graph *g, const char *name, int i, int64_t rows)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", name, i);
    return graphi_input(g, text, GRAPHI_F32, 2, (int64_t[]){rows, UNITS});
}

static graphi_value weight(graphi_graph *g, const char *name)
{
    return graphi_parameter(g, name, GRAPHI_F32, 2, (int64_t[]){UNITS, UNITS},
                            &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -0.1, .b = 0.1});
}

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    return g;
}

/* h(t) = tanh(x(t) W + h(t - 1) U + b), with updates of all three. */
static graphi_graph *unrolled(int64_t rows, int steps)
{
    graphi_graph *g = new_graph();
    graphi_value w = weight(g, "w"), u = weight(g, "u"), h = input(g, "h", 0, rows), loss = GRAPHI_NONE;
    graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, (int64_t[]){UNITS}, NULL);
    for (int t = 0; t < steps; t++) {
        const graphi_value sum =
            graphi_add(g, graphi_matmul(g, input(g, "x", t, rows), w, 0, 0), graphi_matmul(g, h, u, 0, 0));
        h = graphi_tanh(g, graphi_add(g, sum, b));
        graphi_value part = graphi_reduce_sum(g, graphi_square(g, h), NULL, 0, 0);
        loss = loss == GRAPHI_NONE ? part : graphi_add(g, loss, part);
    }
    graphi_output(g, "loss", loss);
    assert_int_equal(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = number(g, 0.001f)}), GRAPHI_OK);
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    return g;
}

/* Weight gradients, and in *later those of them that go on from another's sums. */
static int gradients(const graphi_graph *g, int *later)
{
    int count = 0;
    *later = 0;
    for (size_t i = 0; i < g->nodes.count; i++) {
        const struct node *node = &g->nodes.data[i];
        const bool counts = is_kind(node, "matmul") && attr_int(node, "trans_a");
        count += counts;
        *later += counts && attr_int(node, "base");
    }
    return count;
}

/* After all passes, or those left: so many stages that begin a sum, and so many behind them. */
static void has_stages(const graphi_graph *g, int cores, const char *disable, int begin, int behind)
{
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .cores = cores, .disable = disable});
    int later, count = gradients(copy, &later);
    assert_int_equal(later, behind);
    assert_int_equal(count - later, begin);
    graphi_graph_destroy(copy);
}

/* Those of both weights and of the bias, each of which `reduce` made of all steps. */
static void sums_over_time_are_cut(void **state)
{
    graphi_graph *g = unrolled(ROWS, STEPS);
    for (int stages = 1; stages <= 9; stages++) {
        graphi_graph *longer = unrolled(OF_STAGE / 2, 2 * stages);
        has_stages(longer, MANY, NULL, 3, 3 * ((stages < 8 ? stages : 8) - 1));
        graphi_graph_destroy(longer);
    }
    has_stages(g, MANY, NULL, 3, 3);
    has_stages(g, FEW, NULL, 3, 0);
    has_stages(g, 0, NULL, 3, 0); /* not known */
    has_stages(g, MANY, "stages", 3, 0);
    has_stages(g, MANY, "reduce", 2 * STEPS, 0); /* one a step; those of the bias are no products then */
    graphi_graph_destroy(g);
}

/* Nothing that a stage reads is made behind the next one: it stands where the last of it is made. */
static void stages_are_early(void **state)
{
    graphi_graph *g = unrolled(OF_STAGE, STEPS), *copy;
    copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .cores = MANY});
    int between = 0;
    for (size_t i = 0; i < copy->nodes.count; i++) {
        const struct node *node = &copy->nodes.data[i];
        if (!is_kind(node, "matmul") || !attr_int(node, "trans_a") || !attr_int(node, "base"))
            continue;
        const int32_t before = graph_value(copy, node->input[2 * attr_int(node, "pairs")])->node;
        int32_t last = -1;
        for (int k = 0; k < 2 * attr_int(node, "pairs"); k++) {
            const int32_t maker = graph_value(copy, node->input[k])->node;
            last = maker > last ? maker : last;
        }
        assert_true(before < last && last < (int32_t)i);
        between += last - before;
    }
    assert_true(between > 0);
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* Sums go on in their order, in any instruction set and precision. */
static void cores_change_no_bits(void **state)
{
    static const char *const lists[] = {NULL, "sums", "epilogue,fusion", "batch"};
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (int rounded = 0; rounded < 2; rounded++)
            for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
                graphi_graph *g = unrolled(ROWS + 1, STEPS);
                struct pass_options options = {.isa = isa, .cores = FEW, .disable = lists[list],
                                               .multiplicands = rounded ? GRAPHI_BF16 : GRAPHI_F32};
                graphi_graph *few = rewritten(g, options);
                options.cores = MANY;
                graphi_graph *many = rewritten(g, options);
                int later;
                gradients(many, &later);
                assert_int_equal(later, rounded ? 2 : 3);
                same_results_on(isa, 0, many, few, 0, "cores");
                same_results_on(isa, 0, g, many, rounded ? 0.05 : 1e-4, "stages");
                graphi_graph_destroy(many);
                graphi_graph_destroy(few);
                graphi_graph_destroy(g);
            }
}

/* The rows of a call are fewer than their bound. */
static void rows_may_be_bounded(void **state)
{
    graphi_graph *g = new_graph(), *few, *many;
    const int64_t rows[] = {graphi_symbol(g, "rows", OF_STAGE), UNITS};
    graphi_value w = weight(g, "w"), h = graphi_input(g, "h", GRAPHI_F32, 2, rows), loss = GRAPHI_NONE;
    for (int t = 0; t < STEPS; t++) {
        h = graphi_tanh(g, graphi_matmul(g, h, w, 0, 0));
        graphi_value part = graphi_reduce_sum(g, graphi_square(g, h), NULL, 0, 0);
        loss = loss == GRAPHI_NONE ? part : graphi_add(g, loss, part);
    }
    graphi_output(g, "loss", loss);
    assert_int_equal(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = number(g, 0.001f)}), GRAPHI_OK);
    struct pass_options options = {.isa = isa_detect(), .cores = FEW};
    few = rewritten(g, options);
    options.cores = MANY;
    many = rewritten(g, options);
    has_stages(g, MANY, NULL, 1, 7);
    for (int64_t actual = 1; actual <= OF_STAGE; actual += 85)
        same_results_on(isa_detect(), actual, many, few, 0, "bounded rows");
    graphi_graph_destroy(many);
    graphi_graph_destroy(few);
    graphi_graph_destroy(g);
}

/* z = the sum of h(t)' y(t), in which what is made last comes first, or last. */
static graphi_graph *sum_of(bool last_first, int64_t rows, bool made)
{
    graphi_graph *g = new_graph();
    graphi_value w = weight(g, "w"), h = input(g, "h", 0, rows), term[4], sum;
    for (int t = 0; t < 4; t++) {
        h = made ? graphi_tanh(g, graphi_matmul(g, h, w, 0, 0)) : input(g, "x", t, rows);
        term[t] = graphi_matmul(g, h, input(g, "y", t, rows), 1, 0);
    }
    sum = term[last_first ? 3 : 0];
    for (int t = 1; t < 4; t++)
        sum = graphi_add(g, sum, term[last_first ? 3 - t : t]);
    graphi_output(g, "z", sum);
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    return g;
}

/* Operands are summed as they come, whatever order they were written in and however many cores there are; where all is
 * there from the start, there is nothing to gain. */
static void operands_come_in_order(void **state)
{
    for (int last_first = 0; last_first < 2; last_first++)
        for (int made = 0; made < 2; made++) {
            graphi_graph *g = sum_of(last_first, OF_STAGE, made);
            has_stages(g, MANY, NULL, 1, made ? 3 : 0);
            has_stages(g, FEW, NULL, 1, 0);
            graphi_graph *few = rewritten(g, (struct pass_options){.isa = isa_detect(), .cores = FEW});
            graphi_graph *many = rewritten(g, (struct pass_options){.isa = isa_detect(), .cores = MANY});
            same_results_on(isa_detect(), 0, many, few, 0, "order");
            graphi_graph_destroy(many);
            graphi_graph_destroy(few);
            graphi_graph_destroy(g);
        }
}

static void short_sums_stay(void **state)
{
    for (int64_t rows = OF_STAGE / 2 - 1; rows <= OF_STAGE / 2; rows++) {
        graphi_graph *g = sum_of(false, rows, true);
        has_stages(g, MANY, NULL, 1, rows == OF_STAGE / 2);
        graphi_graph_destroy(g);
    }
}

/* h(t) = tanh(x(t) W + h(t - 1) U), or with the two pairs the other way round, of `layers` layers. */
static graphi_graph *gates(int64_t units, int layers, int steps, bool late_first)
{
    enum { MOST = 4 };
    graphi_graph *g = new_graph();
    const int64_t rows[] = {graphi_symbol(g, "rows", ROWS), units}, sides[] = {units, units};
    const graphi_initializer small = {.kind = GRAPHI_INIT_UNIFORM, .a = -0.05, .b = 0.05};
    graphi_value w[MOST], u[MOST], h[MOST], loss = GRAPHI_NONE;
    char name[32];
    for (int l = 0; l < layers; l++) {
        snprintf(name, sizeof name, "w%d", l);
        w[l] = graphi_parameter(g, name, GRAPHI_F32, 2, sides, &small);
        snprintf(name, sizeof name, "u%d", l);
        u[l] = graphi_parameter(g, name, GRAPHI_F32, 2, sides, &small);
        snprintf(name, sizeof name, "h%d", l);
        h[l] = graphi_input(g, name, GRAPHI_F32, 2, rows);
    }
    for (int t = 0; t < steps; t++) {
        snprintf(name, sizeof name, "x%d", t);
        graphi_value x = graphi_input(g, name, GRAPHI_F32, 2, rows);
        for (int l = 0; l < layers; l++) {
            const graphi_value from_x = graphi_matmul(g, x, w[l], 0, 0), from_h = graphi_matmul(g, h[l], u[l], 0, 0);
            x = h[l] = graphi_tanh(g, late_first ? graphi_add(g, from_h, from_x) : graphi_add(g, from_x, from_h));
        }
        const graphi_value part = graphi_reduce_sum(g, graphi_square(g, x), NULL, 0, 0);
        loss = loss == GRAPHI_NONE ? part : graphi_add(g, loss, part);
    }
    graphi_output(g, "loss", loss);
    assert_int_equal(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = number(g, 0.001f)}), GRAPHI_OK);
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    return g;
}

/* Products behind others whose sums they go on from, but for weight gradients, in one phase. */
static int later_products(const graphi_graph *g, int backward)
{
    int count = 0;
    for (size_t i = 0; i < g->nodes.count; i++) {
        const struct node *node = &g->nodes.data[i];
        count += is_kind(node, "matmul") && !attr_int(node, "trans_a") && attr_int(node, "base") &&
                 node->backward == backward;
    }
    return count;
}

/* x(t) W is made before h(t - 1) is there, in every step but the first, which waits for neither, whichever of the two
 * was written first. Of a layer above another the two change places: its first step waits for what comes from below,
 * and in the second one both come together. Small products stay whole. */
static void gates_begin_early(void **state)
{
    enum { UNITS_ENOUGH = 256, GATES = 4 };
    static const struct {
        int64_t units;
        int layers, cores;
        bool late_first;
        const char *disable;
        int forward;
    } cases[] = {{UNITS_ENOUGH, 1, MANY, false, NULL, GATES - 1},
                 {UNITS_ENOUGH, 1, FEW, false, NULL, 0},
                 {UNITS_ENOUGH, 1, MANY, false, "stages", 0},
                 {UNITS_ENOUGH - 16, 1, MANY, false, NULL, 0},
                 {UNITS_ENOUGH, 1, MANY, true, NULL, GATES - 1},
                 {UNITS_ENOUGH, 2, MANY, false, NULL, 2 * (GATES - 1)},
                 {UNITS_ENOUGH, 2, FEW, true, NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_graph *g = gates(cases[i].units, cases[i].layers, GATES, cases[i].late_first);
        struct pass_options options = {.isa = ISA_PLAIN, .cores = cases[i].cores, .disable = cases[i].disable};
        graphi_graph *copy = rewritten(g, options);
        const int found = later_products(copy, 0);
        if (found != cases[i].forward)
            fail_msg("case %zu: found %d products in stages, expected %d", i, found, cases[i].forward);
        graphi_graph_destroy(copy);
        graphi_graph_destroy(g);
    }
}

/* With an activation behind them, packed weights, bounded rows, any instruction set and precision. */
static void early_gates_have_the_same_bits(void **state)
{
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (int form = 0; form < 4; form++) {
            const bool rounded = form & 1;
            graphi_graph *g = gates(256, 2, 3, form >> 1);
            struct pass_options options = {
                .isa = isa, .cores = FEW, .multiplicands = rounded ? GRAPHI_BF16 : GRAPHI_F32};
            graphi_graph *few = rewritten(g, options);
            options.cores = MANY;
            graphi_graph *many = rewritten(g, options);
            assert_true(later_products(many, 0) > 0 && later_products(many, 1) > 0);
            assert_true(!later_products(few, 0) && !later_products(few, 1));
            same_results_on(isa, ROWS - 1, many, few, 0, "early gates");
            graphi_graph_destroy(many);
            graphi_graph_destroy(few);
            graphi_graph_destroy(g);
        }
}

static int products_of_plan(graphi_machine *machine, const char *disable)
{
    graphi_graph *g = unrolled(ROWS, STEPS);
    graphi_plan *plan;
    assert_int_equal(graphi_plan_create(g, machine, &(graphi_plan_options){.disable = disable}, &plan), GRAPHI_OK);
    int later, count = gradients(plan->compiled->graph, &later);
    assert_true(count);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    return later;
}

static void plans_know_the_cores(void **state)
{
    for (int cores = FEW; cores <= MANY; cores++) {
        graphi_machine *machine;
        assert_int_equal(graphi_machine_load("machines/e5-2650v4-x2.json", cores, &machine), GRAPHI_OK);
        assert_int_equal(products_of_plan(machine, NULL), cores == MANY ? 3 : 0);
        assert_int_equal(products_of_plan(machine, "stages"), 0);
        graphi_machine_destroy(machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_over_time_are_cut), cmocka_unit_test(stages_are_early),
        cmocka_unit_test(cores_change_no_bits),   cmocka_unit_test(rows_may_be_bounded),
        cmocka_unit_test(operands_come_in_order),
        cmocka_unit_test(short_sums_stay),        cmocka_unit_test(gates_begin_early),
        cmocka_unit_test(early_gates_have_the_same_bits),
        cmocka_unit_test(plans_know_the_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
