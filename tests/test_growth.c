/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as long or as wide as memory allows: what passes and plans do with them takes no stack by their depth, and
 * what is tried here no work by the square of their size. Stack is counted in what a thread has; work is counted
 * without a clock, or is the CPU time of two sizes. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "graphi/graphi.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fixture.h"

enum { LINKS = 20000, ELEMENTS = 64 };

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    return g;
}

/* --- depth --- */

/* A plan of the graph, made by a thread with the least stack that one needs for an execution (run.h). */
struct making {
    const graphi_graph *graph;
    graphi_plan *plan;
    graphi_status status;
    char message[512];
};

static void *make_plan(void *argument)
{
    struct making *m = argument;
    m->status = graphi_plan_create(m->graph, machine, NULL, &m->plan);
    snprintf(m->message, sizeof m->message, "%s", graphi_message());
    return NULL;
}

static graphi_plan *plan_on_small_stack(const graphi_graph *graph)
{
    enum { STACK = 256 << 10 };
    struct making m = {.graph = graph};
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, make_plan, &m), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    if (m.status != GRAPHI_OK)
        fail_msg("%s", m.message);
    return m.plan;
}

static graphi_graph *chain(void)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_parameter(g, "p", GRAPHI_F32, 1, (int64_t[]){ELEMENTS}, NULL);
    for (int i = 0; i < LINKS; i++)
        x = graphi_tanh(g, x);
    const graphi_optimizer sgd = {.learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)};
    check_ok(graphi_minimize(g, graphi_reduce_sum(g, x, NULL, 0, 0), &sgd));
    return g;
}

/* Views of views of a parameter that the graph updates: who reads the old content is asked through all of them. */
static graphi_graph *views_of_views(int links)
{
    graphi_graph *g = new_graph();
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 1, (int64_t[]){links + 1}, NULL), x = p;
    for (int i = 0; i < links; i++)
        x = graphi_slice(g, x, 0, 0, links - i);
    graphi_output(g, "y", graphi_tanh(g, x));
    graphi_assign(g, p, graphi_neg(g, p));
    return g;
}

static graphi_graph *views(void) { return views_of_views(LINKS); }

/* Concatenations in concatenations, which all lie in the bytes of the outermost: its writers are asked through all. */
static graphi_graph *parts(void)
{
    enum { DEPTH = LINKS / 2 };
    graphi_graph *g = new_graph();
    graphi_value in = graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){DEPTH}), x = GRAPHI_NONE;
    for (int i = 0; i < DEPTH; i++) {
        graphi_value part = graphi_tanh(g, graphi_slice(g, in, 0, i, i + 1));
        x = i ? graphi_concat(g, 2, (graphi_value[]){x, part}, 0) : part;
    }
    graphi_output(g, "y", graphi_reduce_sum(g, x, NULL, 0, 0));
    return g;
}

/* Regions in regions, as deep as they may be. */
static graphi_graph *nested_regions(int depth, graphi_graph *g)
{
    graphi_graph *inner = NULL;
    for (int i = 0; i <= depth; i++) {
        graphi_graph *body = i < depth ? new_graph() : g;
        graphi_value x = i < depth ? graphi_input(body, "x", GRAPHI_F32, 1, (int64_t[]){ELEMENTS})
                                   : graphi_parameter(body, "p", GRAPHI_F32, 1, (int64_t[]){ELEMENTS}, NULL);
        graphi_value y = graphi_tanh(body, x);
        if (inner)
            y = graphi_region(body, inner, 1, &y);
        graphi_output(body, "y", y);
        inner = body;
    }
    return g;
}

enum { MOST_NESTED = 100 };

static graphi_graph *nested(void)
{
    graphi_graph *g = nested_regions(MOST_NESTED, new_graph());
    const graphi_optimizer sgd = {.learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)};
    check_ok(graphi_minimize(g, graphi_reduce_sum(g, graphi_find(g, "y"), NULL, 0, 0), &sgd));
    return g;
}

static void regions_are_nested_so_deep_and_no_deeper(void **state)
{
    graphi_graph *g = nested_regions(MOST_NESTED + 1, new_graph());
    assert_int_equal(graphi_graph_status(g), GRAPHI_UNSUPPORTED);
    assert_non_null(strstr(graphi_message(), "expected fewer than 100"));
    graphi_graph_destroy(g);
}

/* A recursion over the graph would end the process where the graph is long enough: what is made again in the backward
 * pass, who reads a parameter, who writes a value. */
static void plans_take_no_stack_by_depth(void **state)
{
    static graphi_graph *(*const graphs[])(void) = {chain, views, parts, nested};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        graphi_graph *g = graphs[i]();
        check_ok(graphi_graph_status(g));
        graphi_plan_destroy(plan_on_small_stack(g));
        graphi_graph_destroy(g);
    }
}

/* --- work --- */

/* Nodes of one kind that read one value, told apart by their attributes alone: at one place in the table of common
 * subexpressions each would be held against all before it. */
static void nodes_that_differ_are_not_compared(void **state)
{
    enum { NODES = 1000 };
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){NODES + 1});
    for (int i = 0; i < NODES; i++)
        graphi_slice(g, x, 0, i, i + 1);
    graphi_slice(g, x, 0, 7, 8);
    struct value_map map = {0};
    static uint64_t hash[NODES + 1];
    for (int i = 0; i <= NODES; i++)
        hash[i] = cse_hash(&map, graph_node(g, i));
    assert_true(hash[NODES] == hash[7]);
    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < i; k++)
            assert_true(hash[i] != hash[k]);
    graphi_graph_destroy(g);
}

/* Least CPU time of three plans. */
static double seconds_of_views(int links)
{
    double least = HUGE_VAL;
    graphi_graph *g = views_of_views(links);
    for (int i = 0; i < 3; i++) {
        graphi_plan *plan;
        struct timespec begin, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        check_ok(graphi_plan_create(g, machine, NULL, &plan));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        least = fmin(least, (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
        graphi_plan_destroy(plan);
    }
    graphi_graph_destroy(g);
    return least;
}

/* Whose bytes a view has, asked of each through all before it: 40,000 views took 5 seconds, four times those of 20,000.
 * Four times as many may take 4.5 times as long, not 15 times. */
static void views_of_views_take_no_square_of_work(void **state)
{
    const double few = seconds_of_views(LINKS / 2), many = seconds_of_views(LINKS * 2);
    if (many > 9 * few)
        fail_msg("%.3f s for %d views, %.3f s for %d", many, LINKS * 2, few, LINKS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_take_no_stack_by_depth),
        cmocka_unit_test(regions_are_nested_so_deep_and_no_deeper),
        cmocka_unit_test(nodes_that_differ_are_not_compared),
        cmocka_unit_test(views_of_views_take_no_square_of_work),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
