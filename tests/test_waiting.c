/* SPDX-License-Identifier: Apache-2.0 */
/* `graphi bench waiting`: what others had of the cores, on planted CPU times, and whose executions count, on a graph of
 * one operation. No wall time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What a benchmark decides is private to its file. */
int waiting_main(int argc, char **argv);
#define main waiting_main
#include "waiting.c"
#undef main

#include "fixture.h"

/* --- what others had --- */

/* Two executors of one thread: steps of 10 ms under the setting, in which this process computed so long. */
static double others_of(graphi_decision setting, int cores, double cpu_ms)
{
    struct parts p = {0};
    setting.executors = 2;
    setting.width = 1;
    parts_count(&p, &setting, cores, 10, 1e-3 * cpu_ms);
    return parts_others(&p);
}

/* A thread that polls beside the executors made up for what others had of theirs: of a quarter of all nothing was
 * told. */
static void threads_beside_executors_count(void **state)
{
    static const graphi_decision shared = {.driver = GRAPHI_DRIVER_COMBINING, .light = false},
                                dedicated = {.driver = GRAPHI_DRIVER_DEDICATED, .light = false},
                                light = {.driver = GRAPHI_DRIVER_COMBINING, .light = true},
                                both = {.driver = GRAPHI_DRIVER_DEDICATED, .light = true};
    assert_float_equal(others_of(shared, 4, 15), 0.25, 1e-9);
    assert_float_equal(others_of(dedicated, 4, 22.5), 0.25, 1e-9);
    assert_float_equal(others_of(light, 4, 22.5), 0.25, 1e-9);
    assert_float_equal(others_of(both, 4, 30), 0.25, 1e-9);
    assert_float_equal(others_of(dedicated, 2, 15), 0.25, 1e-9); /* shares a core of the two */
    assert_float_equal(others_of(both, 3, 30), 0, 1e-9);
}

/* --- whose executions count --- */

static uint64_t executions_of(const struct contender *c)
{
    graphi_run_info info;
    graphi_run_get_info(c->run, &info);
    return info.executions;
}

static void pair_open(const graphi_graph *graph, graphi_state *weights, struct pair *pair)
{
    *pair = (struct pair){.network = {.name = "one", .size = "small"}};
    for (int row = 0; row < ROWS; row++) {
        check_ok(graphi_plan_create(graph, machine, NULL, &pair->list[row].plan));
        check_ok(graphi_run_create(pair->list[row].plan, weights, &pair->list[row].run));
    }
}

/* In its first turn a short step ran once, after the other row had emptied the caches. */
static void short_steps_run_twice_a_turn(void **state)
{
    static struct pair pair;
    struct bench bench = {.options = {.quiet = true, .seconds = 1e-3}, .about = {.cores = 1}};
    graphi_graph *graph;
    graphi_state *weights;
    check_ok(graphi_graph_create(&graph));
    graphi_delay(graph, 0, NULL, 1000);
    check_ok(graphi_state_create(graph, 1, &weights));
    pair_open(graph, weights, &pair);
    assert_int_equal(measure(&bench, &pair), GRAPHI_OK);
    for (int row = 0; row < ROWS; row++) {
        struct contender *c = &pair.list[row];
        struct parts *p = &pair.parts[row];
        const int each = c->first_ms <= BENCH_LONG_MS ? 2 : 1; /* a busy machine may make it long */
        assert_true(c->first_ms > 0 && p->rounds >= FEWEST);
        assert_int_equal(executions_of(c), 1 + each * p->rounds);
        const uint64_t before = executions_of(c);
        c->first_ms = BENCH_LONG_MS + 1;
        p->rounds = 0;
        assert_int_equal(parts_add(c, true, 1, p), GRAPHI_OK);
        assert_int_equal(executions_of(c), before + 1);
        contender_close(c);
    }
    graphi_state_destroy(weights);
    graphi_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_beside_executors_count),
        cmocka_unit_test(short_steps_run_twice_a_turn),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
