/* SPDX-License-Identifier: Apache-2.0 */
/* graphi.txt 7.4: on a 4-layer LSTM with 8 executors, critical path first starts cells in diagonal order (layer l, step
 * t in the order of l + t), the order that is written by hand for graphics processors. In virtual time, so it repeats.
 */
#include "base/memory.h"
#include "graph/op.h"
#include "graphi/models.h"
#include "machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "simulated.h"

enum { LAYERS = 4, STEPS = 20 };

/* When the recurrent part of every cell starts: the first forward operation in its scope that waits for the previous
 * cell. */
struct starts {
    int64_t last[LAYERS][STEPS]; /* latest start of a forward operation of the cell */
    int cells;
};

static struct starts simulate(graphi_policy policy)
{
    graphi_graph *g;
    graphi_plan *plan;
    struct simulation simulation;
    struct starts starts = {.cells = 0};
    check_ok(graphi_model_create("lstm", &(graphi_model_options){.size = "medium", .steps = STEPS}, &g));
    graphi_plan_options options = {
        .setting = {.policy = policy, .executors = 8, .width = 8}, .arena_target = INT64_MAX / 4, .disable = "stages"};
    check_ok(graphi_plan_create(g, phi, &options, &plan));
    const struct compiled *c = plan->compiled;
    struct task_record *records = mem_zalloc_array((size_t)c->tasks, sizeof *records);
    check_ok(plan_simulate(plan, records, &simulation));
    for (int32_t t = 0; t < c->tasks; t++) {
        int layer, step;
        char name[200];
        node_text(c->graph, c->task[t].node, name, sizeof name);
        const char *scope = strstr(name, "layer");
        if (c->flags[t] & TASK_BACKWARD || !scope || sscanf(scope, "layer%d/t%d", &layer, &step) != 2)
            continue;
        assert_in_range(layer, 0, LAYERS - 1);
        assert_in_range(step, 0, STEPS - 1);
        starts.cells += !starts.last[layer][step];
        if (records[t].start_ns > starts.last[layer][step])
            starts.last[layer][step] = records[t].start_ns + 1;
    }
    mem_free(records);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    return starts;
}

/* A diagonal takes 200 us; an executor that becomes free while the last products of one run may start the next one
 * first. */
enum { TIE_NS = 10000 };

/* Pairs of cells with l + t smaller in one by `apart` or more that start in the other order. */
static int inversions(const struct starts *s, int apart)
{
    int count = 0;
    for (int a = 0; a < LAYERS * STEPS; a++)
        for (int b = 0; b < LAYERS * STEPS; b++) {
            int la = a / STEPS, ta = a % STEPS, lb = b / STEPS, tb = b % STEPS;
            count += la + ta + apart <= lb + tb && s->last[la][ta] > s->last[lb][tb] + TIE_NS;
        }
    return count;
}

/* Without it the critical-path order could be anything that respects the data. */
static void critical_path_first_gives_the_diagonal(void **state)
{
    struct starts s = simulate(GRAPHI_POLICY_CRITICAL_PATH);
    assert_int_equal(s.cells, LAYERS * STEPS);
    assert_int_equal(inversions(&s, 1), 0);
}

/* docs/simulator.md says that a queue keeps the diagonal by itself, so that the test above tells critical path first
 * from random order alone. */
static void order_of_readiness_does_too(void **state)
{
    struct starts naive = simulate(GRAPHI_POLICY_NAIVE), fifo = simulate(GRAPHI_POLICY_FIFO);
    assert_int_equal(inversions(&naive, 1), 0);
    assert_int_equal(inversions(&fifo, 1), 0);
}

/* Without it the first test might hold for any order. */
static void random_order_does_not(void **state)
{
    struct starts s = simulate(GRAPHI_POLICY_RANDOM);
    assert_true(inversions(&s, 1) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(critical_path_first_gives_the_diagonal),
        cmocka_unit_test(order_of_readiness_does_too),
        cmocka_unit_test(random_order_does_not),
    };
    return cmocka_run_group_tests(tests, open_phi, close_machines);
}
