/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a table of embeddings that become one (passes/tables.c), and those that do not; what is read of one. */
#include "rewritten.h"

#include <stdio.h>

enum { STEPS = 4, WORDS = 7, UNITS = 5, BATCH = 3 };

/* Lookups of ids, each times weights of its own, summed; with updates of table and weights. */
struct looked {
    graphi_graph *graph;
    graphi_value table, loss;
};

static struct looked begin(void)
{
    struct looked l = {.loss = GRAPHI_NONE};
    assert_int_equal(graphi_graph_create(&l.graph), GRAPHI_OK);
    l.table = graphi_parameter(l.graph, "table", GRAPHI_F32, 2, (int64_t[]){WORDS, UNITS}, NULL);
    return l;
}

static void weigh(struct looked *l, graphi_value x)
{
    graphi_graph *g = l->graph;
    char name[32];
    snprintf(name, sizeof name, "weight%d", (int)g->values.count);
    graphi_value w = graphi_parameter(g, name, GRAPHI_F32, 1, (int64_t[]){UNITS}, NULL);
    graphi_value part = graphi_reduce_sum(g, graphi_square(g, graphi_mul(g, x, w)), NULL, 0, 0);
    l->loss = l->loss == GRAPHI_NONE ? part : graphi_add(g, l->loss, part);
}

static void look(struct looked *l, graphi_value ids) { weigh(l, graphi_embedding(l->graph, l->table, ids)); }

/* The tokens of each step, as a language model has them: columns of a matrix. */
static void look_at_steps(struct looked *l, int steps)
{
    graphi_value tokens = graphi_input(l->graph, "tokens", GRAPHI_I32, 2, (int64_t[]){BATCH, STEPS});
    for (int t = 0; t < steps; t++)
        look(l, graphi_reshape(l->graph, graphi_slice(l->graph, tokens, 1, t, t + 1), GRAPHI_LIST(BATCH)));
}

static void close_with(struct looked *l)
{
    graphi_output(l->graph, "loss", l->loss);
    assert_int_equal(
        graphi_minimize(l->graph, l->loss, &(graphi_optimizer){.learning_rate = number(l->graph, 0.1f)}), GRAPHI_OK);
}

/* Both run once, with ids that come twice and others that do not come at all, and have the same parameters after it. */
static void same_updates(const graphi_graph *before, const graphi_graph *after)
{
    struct reference r[2];
    const graphi_graph *graph[2] = {before, after};
    for (int i = 0; i < 2; i++) {
        reference_init(&r[i], graph[i]);
        for (size_t v = 0; v < graph[i]->values.count; v++) {
            const struct value *value = graph_value(graph[i], (int32_t)v);
            for (int64_t k = 0; value->type.dtype == GRAPHI_I32 && value->name && k < type_count(&value->type); k++)
                ((int32_t *)r[i].data[v])[k] = (int32_t)((k * k + k) % WORDS);
        }
        assert_int_equal(reference_run(&r[i]), GRAPHI_OK);
    }
    for (size_t v = 0; v < before->values.count; v++) {
        const struct value *value = graph_value(before, (int32_t)v);
        if (value->kind == VALUE_PARAMETER && value->type.dtype == GRAPHI_F32)
            assert_true(reference_difference(reference_floats(&r[1], graphi_find(after, value->name)),
                                             reference_floats(&r[0], (graphi_value)v),
                                             type_count(&value->type)) <= 1e-5);
    }
    reference_fini(&r[0]);
    reference_fini(&r[1]);
}

/* After the pass so many gradients of tables are left, and so many sums. */
static void leaves(struct looked *l, int gradients, int sums)
{
    graphi_graph *copy;
    assert_int_equal(graphi_graph_status(l->graph), GRAPHI_OK);
    assert_int_equal(graph_clone(l->graph, &copy), GRAPHI_OK);
    const struct pass_options options = {.isa = ISA_PLAIN, .disable = "all,+tables"};
    if (passes_run(copy, &options) != GRAPHI_OK || graph_check(copy) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    assert_int_equal(count_kind(copy, "embedding_grad"), gradients);
    assert_int_equal(count_kind(copy, "add_n"), sums);
    same_updates(l->graph, copy);
    graphi_graph_destroy(copy);
    graphi_graph_destroy(l->graph);
}

static void steps_become_one(void **state)
{
    for (int steps = 1; steps <= STEPS; steps++) {
        struct looked l = begin();
        look_at_steps(&l, steps);
        close_with(&l);
        leaves(&l, 1, 0);
    }
}

/* What else reads the table has its gradient added: one that is the output layer, too. */
static void other_gradients_stay(void **state)
{
    struct looked l = begin();
    look_at_steps(&l, STEPS);
    weigh(&l, graphi_tanh(l.graph, l.table));
    close_with(&l);
    leaves(&l, 1, 1);
}

/* Ids of another shape, and a bounded number of them. */
static void unlike_ones_stay_apart(void **state)
{
    struct looked l = begin();
    look_at_steps(&l, 2);
    look(&l, graphi_input(l.graph, "matrix", GRAPHI_I32, 2, (int64_t[]){2, 2}));
    look(&l, graphi_input(l.graph, "more", GRAPHI_I32, 1, (int64_t[]){BATCH + 1}));
    close_with(&l);
    leaves(&l, 2, 1);
    l = begin();
    const int64_t rows = graphi_symbol(l.graph, "rows", BATCH);
    for (int i = 0; i < 2; i++) {
        char name[8];
        snprintf(name, sizeof name, "ids%d", i);
        look(&l, graphi_input(l.graph, name, GRAPHI_I32, 1, (int64_t[]){rows}));
    }
    close_with(&l);
    leaves(&l, 2, 1);
}

/* A gradient that is read, or wanted, by itself. */
static void gradients_of_others_stay(void **state)
{
    for (int output = 0; output < 2; output++) {
        struct looked l = begin();
        const graphi_attribute rows = {.name = "rows", .type = GRAPHI_INT, .i = WORDS};
        graphi_value part[2];
        for (int i = 0; i < 2; i++) {
            char name[8];
            snprintf(name, sizeof name, "ids%d", i);
            const graphi_value ids = graphi_input(l.graph, name, GRAPHI_I32, 1, (int64_t[]){BATCH});
            const graphi_value in[] = {ids, graphi_embedding(l.graph, l.table, ids)};
            part[i] = graphi_op(l.graph, "embedding_grad", 2, in, 1, &rows);
        }
        graphi_output(l.graph, "sum", graphi_add(l.graph, part[0], part[1]));
        graphi_output(l.graph, "other", output ? part[0] : graphi_neg(l.graph, part[0]));
        leaves(&l, 2, 0);
    }
}

/* Ids are a parameter, and what the second gradient reads follows from its update, which waits for the first gradient:
 * one of both would wait for itself. */
static void readers_of_updated_ids_stay(void **state)
{
    struct looked l = begin();
    graphi_graph *g = l.graph;
    const graphi_attribute rows = {.name = "rows", .type = GRAPHI_INT, .i = WORDS};
    graphi_value ids = graphi_parameter(g, "ids", GRAPHI_I32, 1, (int64_t[]){BATCH}, NULL);
    graphi_freeze(g, ids);
    graphi_value dy = graphi_input(g, "dy", GRAPHI_F32, 2, (int64_t[]){BATCH, UNITS});
    graphi_value first = graphi_op(g, "embedding_grad", 2, (graphi_value[]){ids, dy}, 1, &rows);
    graphi_value next = graphi_assign(g, ids, graphi_input(g, "next", GRAPHI_I32, 1, (int64_t[]){BATCH}));
    graphi_value second = graphi_op(g, "embedding_grad", 2, (graphi_value[]){next, dy}, 1, &rows);
    graphi_output(g, "sum", graphi_add(g, first, second));
    leaves(&l, 2, 0);
}

/* The limit of a step would count a table of which it takes a few rows. */
static void rows_of_tables_are_read(void **state)
{
    graphi_graph *g;
    graphi_graph_info info;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const graphi_value table = graphi_parameter(g, "table", GRAPHI_F32, 2, (const int64_t[]){100, 8}, NULL);
    const graphi_value ids = graphi_input(g, "ids", GRAPHI_I32, 1, (const int64_t[]){5});
    graphi_parameter(g, "unread", GRAPHI_F32, 1, (const int64_t[]){7}, NULL);
    graphi_output(g, "rows", graphi_embedding(g, table, ids));
    graphi_graph_get_info(g, &info);
    assert_int_equal(info.parameter_elements, 100 * 8 + 7);
    assert_int_equal(info.read_elements, 5 * 8);
    const graphi_value many = graphi_input(g, "many", GRAPHI_I32, 1, (const int64_t[]){99});
    graphi_output(g, "more", graphi_embedding(g, table, many));
    graphi_graph_get_info(g, &info);
    assert_int_equal(info.read_elements, 100 * 8);
    const graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (const int64_t[]){8, 1});
    graphi_output(g, "all", graphi_matmul(g, table, x, 0, 0));
    graphi_graph_get_info(g, &info);
    assert_int_equal(info.read_elements, 100 * 8);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_become_one),         cmocka_unit_test(other_gradients_stay),
        cmocka_unit_test(unlike_ones_stay_apart),   cmocka_unit_test(gradients_of_others_stay),
        cmocka_unit_test(readers_of_updated_ids_stay),
        cmocka_unit_test(rows_of_tables_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
