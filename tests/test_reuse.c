/* SPDX-License-Identifier: Apache-2.0 */
/* The order by weights (passes/reuse.c): layers of an unrolled network one after the other, in both passes, where the
 * caches hold one of them and not all; no other order where they hold all, none, or nothing is known of them. */
#include "engine/compile/plan.h"
#include "graphi/models.h"
#include "machine/machine.h"
#include "rewritten.h"

#include <stdio.h>

enum { LAYERS = 3, STEPS = 5, UNITS = 16, WEIGHT = UNITS * UNITS * 4, LAYER = 2 * WEIGHT };

/* h(l, t) = tanh(x W(l) + h(l, t - 1) U(l)), one step of time after the other; with gradients, of all weights. */
static graphi_graph *unrolled(bool training)
{
    graphi_graph *g;
    graphi_value weight[2 * LAYERS], h[LAYERS], loss = GRAPHI_NONE;
    char name[32];
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    for (int i = 0; i < 2 * LAYERS; i++) {
        snprintf(name, sizeof name, "weight%d", i);
        weight[i] = graphi_parameter(g, name, GRAPHI_F32, 2, (int64_t[]){UNITS, UNITS},
                                     &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -0.4, .b = 0.4});
    }
    for (int l = 0; l < LAYERS; l++) {
        snprintf(name, sizeof name, "h%d", l);
        h[l] = graphi_input(g, name, GRAPHI_F32, 2, (int64_t[]){2, UNITS});
    }
    graphi_value all = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){2 * STEPS, UNITS});
    for (int t = 0; t < STEPS; t++) {
        graphi_value x = graphi_slice(g, all, 0, 2 * t, 2 * t + 2);
        for (int l = 0; l < LAYERS; l++) {
            snprintf(name, sizeof name, "%d", l);
            graphi_scope(g, name);
            x = h[l] = graphi_tanh(g, graphi_add(g, graphi_matmul(g, x, weight[2 * l], 0, 0),
                                                 graphi_matmul(g, h[l], weight[2 * l + 1], 0, 0)));
        }
        graphi_scope(g, "loss");
        graphi_value part = graphi_reduce_sum(g, graphi_square(g, x), NULL, 0, 0);
        loss = loss == GRAPHI_NONE ? part : graphi_add(g, loss, part);
    }
    graphi_output(g, "loss", loss);
    if (training)
        assert_int_equal(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = number(g, 0.01f)}), GRAPHI_OK);
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    return g;
}

/* The graph with an order for such caches, of equal results. */
static graphi_graph *ordered(const graphi_graph *g, int64_t cache, const char *disable)
{
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = disable, .cache = cache});
    same_results(g, copy, 1e-5, "reuse");
    return copy;
}

/* How often the next product with a weight, of one pass, is of another layer. */
static int changes_of_layer(const graphi_graph *g, bool backward)
{
    int changes = 0, products = 0;
    const char *last = NULL;
    for (int32_t i = 0; i < (int32_t)g->nodes.count; i++) {
        const struct node *node = graph_node(g, i);
        bool reads = false;
        for (int k = 0; k < node->inputs; k++)
            reads |= graph_value(g, node->input[k])->kind == VALUE_PARAMETER;
        if (!reads || node->backward != backward || strcmp(node->kind->name, "matmul") != 0)
            continue;
        changes += last && strcmp(last, node->scope) != 0;
        last = node->scope;
        products++;
    }
    assert_true(products >= LAYERS * (STEPS - 1));
    return changes;
}

static bool same_order(const graphi_graph *a, const graphi_graph *b)
{
    bool same = a->nodes.count == b->nodes.count;
    for (int32_t i = 0; same && i < (int32_t)a->nodes.count; i++)
        same = graph_node(a, i)->kind == graph_node(b, i)->kind && graph_node(a, i)->key == graph_node(b, i)->key;
    return same;
}

/* Both ways of writing a cell's sum: two products, and one of two pairs. */
static void layers_follow_each_other(void **state)
{
    static const char *const lists[] = {"all,+reuse", "pack"};
    for (int training = 0; training < 2; training++)
        for (int list = 0; list < 2; list++) {
            graphi_graph *g = unrolled(training), *by_steps = ordered(g, 0, lists[list]);
            assert_true(changes_of_layer(by_steps, false) >= STEPS * LAYERS - 1);
            assert_true(!training || changes_of_layer(by_steps, true) >= (STEPS - 1) * LAYERS);
            for (int64_t cache = LAYER; cache < LAYERS * LAYER; cache += WEIGHT) {
                graphi_graph *by_layers = ordered(g, cache, lists[list]);
                assert_int_equal(changes_of_layer(by_layers, false), LAYERS - 1);
                /* The first of a layer's is the gradient of the layer above, at the last step. */
                assert_true(!training || changes_of_layer(by_layers, true) <= LAYERS + 1);
                graphi_graph_destroy(by_layers);
            }
            graphi_graph_destroy(by_steps);
            graphi_graph_destroy(g);
        }
}

static void other_orders_stay(void **state)
{
    for (int training = 0; training < 2; training++) {
        graphi_graph *g = unrolled(training), *first = ordered(g, 0, NULL);
        /* Nothing is spared where not even one layer stays; where all stay there is nothing to spare. */
        const int64_t caches[] = {WEIGHT / 2, LAYER - 1, (training + 1) * LAYERS * LAYER, INT64_MAX};
        for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
            graphi_graph *other = ordered(g, caches[i], NULL);
            assert_true(same_order(first, other));
            graphi_graph_destroy(other);
        }
        graphi_graph *off = ordered(g, LAYER, "reuse"), *on = ordered(g, LAYER, NULL);
        assert_true(same_order(first, off));
        assert_false(same_order(first, on));
        graphi_graph_destroy(on);
        graphi_graph_destroy(off);
        graphi_graph_destroy(first);
        graphi_graph_destroy(g);
    }
}

/* Half of the last-level cache is for weights. */
static void plans_know_the_caches(void **state)
{
    graphi_machine *machine;
    assert_int_equal(graphi_machine_load("machines/e5-2650v4-x2.json", 0, &machine), GRAPHI_OK);
    for (int fits = 0; fits < 2; fits++) {
        graphi_graph *g = unrolled(false);
        graphi_plan *plan;
        machine->l3_bytes = fits ? 2 * LAYERS * LAYER : 2 * LAYER;
        assert_int_equal(graphi_plan_create(g, machine, &(graphi_plan_options){.disable = "pack"}, &plan), GRAPHI_OK);
        const int changes = changes_of_layer(plan->compiled->graph, false);
        assert_true(fits ? changes >= STEPS * LAYERS - 1 : changes == LAYERS - 1);
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
    graphi_machine_destroy(machine);
}

/* Levels come before the order of the array: executors side by side go on with several layers. */
static void many_executors_lose_nothing(void **state)
{
    graphi_machine *machine;
    assert_int_equal(graphi_machine_load("machines/e5-2650v4-x2.json", 0, &machine), GRAPHI_OK);
    machine->l3_bytes = 32 << 20;
    for (int training = 0; training < 2; training++)
        for (int executors = 2; executors <= 8; executors *= 2) {
            double ms[2];
            for (int off = 0; off < 2; off++) {
                graphi_graph *g;
                graphi_plan *plan;
                graphi_plan_info info;
                const graphi_plan_options options = {
                    .setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = executors, .width = 1},
                    .disable = off ? "reuse" : NULL};
                const graphi_model_options model = {.size = "medium", .steps = 8, .forward = !training};
                assert_int_equal(graphi_model_create("lstm", &model, &g), GRAPHI_OK);
                assert_int_equal(graphi_plan_create(g, machine, &options, &plan), GRAPHI_OK);
                graphi_plan_get_info(plan, &info);
                ms[off] = info.predicted_ms;
                graphi_plan_destroy(plan);
                graphi_graph_destroy(g);
            }
            assert_true(ms[0] > 0 && ms[0] <= 1.01 * ms[1]);
        }
    graphi_machine_destroy(machine);
}

/* A parameter of 400 MB that is hardly read makes the same arena cheaper to widen. */
static void plans_weigh_what_lies_beside_the_arena(void **state)
{
    graphi_machine *machine;
    int64_t arena[2];
    assert_int_equal(graphi_machine_load("machines/e5-2650v4-x2.json", 2, &machine), GRAPHI_OK);
    for (int beside = 0; beside < 2; beside++) {
        graphi_graph *g;
        graphi_plan *plan;
        graphi_plan_info info;
        assert_int_equal(graphi_model_create("lstm", &(graphi_model_options){.forward = true}, &g), GRAPHI_OK);
        graphi_value large = graphi_parameter(g, "large", GRAPHI_F32, 1, (int64_t[]){beside ? 100000000 : 1}, NULL);
        graphi_output(g, "one", graphi_neg(g, graphi_slice(g, large, 0, 0, 1)));
        assert_int_equal(graphi_plan_create(g, machine, NULL, &plan), GRAPHI_OK);
        graphi_plan_get_info(plan, &info);
        arena[beside] = info.arena_bytes;
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
    assert_in_range(arena[1], arena[0] + 1, 8 * arena[0]);
    graphi_machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_follow_each_other),
        cmocka_unit_test(other_orders_stay),
        cmocka_unit_test(plans_know_the_caches),
        cmocka_unit_test(many_executors_lose_nothing),
        cmocka_unit_test(plans_weigh_what_lies_beside_the_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
