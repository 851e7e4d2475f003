/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of several plans in one memory (graphi_run_beside). */
#include "graphi/graphi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

static const graphi_setting serially = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1};

/* A parameter that is read and updated. */
static graphi_graph *training(void)
{
    static const int64_t matrix[] = {32, 48};
    static const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, matrix),
                 p = graphi_parameter(g, "p", GRAPHI_F32, 2, matrix, &uniform);
    graphi_output(g, "z", graphi_tanh(g, graphi_mul(g, p, x)));
    graphi_output(g, "w", graphi_assign(g, p, graphi_add(g, p, x)));
    return g;
}

static graphi_plan *plan_of(const graphi_graph *g, const graphi_plan_options *options)
{
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, options, &plan));
    return plan;
}

/* Settings that are compared in one memory: each would compute with what another was fed, or free what another still
 * uses. */
static void runs_beside_share_memory(void **state)
{
    static float x[32 * 48], first[32 * 48], again[32 * 48];
    for (int i = 0; i < 32 * 48; i++)
        x[i] = (float)i / 1000;
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    graphi_graph *g = training();
    const graphi_plan_options forward = {.setting = serially, .no_updates = true, .outputs = "z"};
    const graphi_plan_options whole = {.setting = serially};
    graphi_plan *plan = plan_of(g, &forward), *wrong = plan_of(g, &whole), *wide;
    graphi_setting setting = {.policy = GRAPHI_POLICY_FIFO, .executors = info.cores, .width = 1};
    graphi_state *s;
    graphi_run *run[3], *none = NULL;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting}, &wide));
    check_ok(graphi_run_create(plan, s, &run[0]));
    check_ok(graphi_run_beside(run[0], wide, &run[1]));
    check_ok(graphi_run_beside(run[1], plan, &run[2]));
    check_ok(graphi_run_set(run[1], "x", GRAPHI_F32, x, sizeof x));
    for (int i = 0; i < 3; i++) {
        check_ok(graphi_run_execute(run[i]));
        check_ok(graphi_run_get(run[i], "z", GRAPHI_F32, i ? again : first, sizeof first));
        assert_true(i == 0 || memcmp(first, again, sizeof first) == 0);
    }
    assert_int_equal(graphi_run_beside(run[0], wrong, &none), GRAPHI_INVALID);
    assert_null(none);
    for (int i = 2; i >= 0; i--)
        graphi_run_destroy(run[i]);
    graphi_state_destroy(s);
    graphi_plan_destroy(wide);
    graphi_plan_destroy(wrong);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_beside_share_memory),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
