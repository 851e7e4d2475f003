/* SPDX-License-Identifier: Apache-2.0 */
/* What all decisions of a schedule must not depend on, and what the simulation says that they cost. */
#include "base/clock.h"
#include "dag.h"
#include "engine/compile/plan.h"
#include "graphi/models.h"
#include "graphi/simulate.h"
#include "schedule/decided.h"
#include "schedule/setting_canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

/* Settings of one identity stand for each other in tuning, in stored plans and in rows. Splits of strategies 3 and 4
 * did, and ordered operations of a class by levels at the width of a split that they do not have. */
static void settings_of_one_identity_decide_alike(void **state)
{
    static const int executors[] = {68, 34, 17, 4, 1};
    enum { SPLITS = sizeof executors / sizeof *executors };
    graphi_machine *smt;
    graphi_graph *g;
    graphi_plan *plan, *there;
    check_ok(graphi_model_create("googlenet", &(graphi_model_options){.task = "bench", .size = "small"}, &g));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_machine_load("machines/xeon-phi-7250-smt.json", 0, &smt));
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        uint64_t identity[SPLITS], decisions[SPLITS];
        int alike = 0;
        for (int i = 0; i < SPLITS; i++) {
            graphi_setting setting = {.policy = (graphi_policy)policy,
                                      .executors = executors[i],
                                      .width = 68 / executors[i],
                                      .light = GRAPHI_OFF};
            graphi_simulation simulation;
            check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting, .machine = smt}, &there));
            check_ok(graphi_plan_simulate(there, NULL, &simulation));
            identity[i] = setting_hash(0, (graphi_setting[]){graphi_decision_setting(&there->setting)});
            decisions[i] = simulation.decisions;
            graphi_plan_destroy(there);
            for (int k = 0; k < i; k++) {
                assert_true(identity[k] != identity[i] || decisions[k] == decisions[i]);
                alike += identity[k] == identity[i];
            }
        }
        bool teams = policy >= GRAPHI_POLICY_S1 && policy <= GRAPHI_POLICY_S1234;
        assert_int_equal(alike, teams || policy == GRAPHI_POLICY_SEQUENTIAL ? SPLITS * (SPLITS - 1) / 2 : 0);
    }
    graphi_machine_destroy(smt);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* The first step, which places all that needs nothing, counted as often as the steps it was a sample of: placing took
 * longer than the simulation that it is a part of. */
static void deciding_is_a_part_of_the_simulation(void **state)
{
    struct dag *g = dag_plain(500, 0);
    g->curves[0] = dag_curve(1e6, 0, 1);
    dag_finish(g);
    graphi_machine large = dag_machine(1024, 0);
    large.schedule_ns = 1000; /* they begin and end one after the other: 500 steps that have nothing to place */
    graphi_setting setting = {.policy = GRAPHI_POLICY_MALLEABLE, .executors = 1024, .width = 1};
    struct schedule *schedule;
    struct simulation s;
    bool less = false;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &large), &schedule), GRAPHI_OK);
    for (int i = 0; i < 20 && !less; i++) { /* an interruption in a step that is timed counts for others, too */
        int64_t begin = clock_ns();
        assert_int_equal(schedule_simulate(schedule, NULL, NULL, NULL, &s), GRAPHI_OK);
        less = s.deciding_ns <= (double)(clock_ns() - begin);
        assert_true(s.deciding_ns > 0);
    }
    assert_true(less);
    schedule_destroy(schedule);
    free(large.core);
    dag_free(g);
}

enum { DECIDING_NS = 200000 };

static int slow_place(struct schedule *schedule, int32_t task)
{
    clock_spin(DECIDING_NS);
    return policy_critical_path.place(schedule, task);
}

static int64_t slow_key(struct schedule *schedule, int32_t task)
{
    clock_spin(DECIDING_NS);
    return policy_critical_path.key(schedule, task);
}

/* Of few steps only the first would count: what the others decide would take no time. Nor would what they do with those
 * that become ready, which are all but the first of the chain. */
static void deciding_counts_in_short_simulations(void **state)
{
    for (int tasks = 2; tasks <= 15; tasks++) {
        struct dag *g = dag_plain(tasks, 1);
        dag_finish(g);
        graphi_machine one = dag_machine(1, 0);
        graphi_setting setting = {.executors = 1, .width = 1, .depth = 1, .light = GRAPHI_OFF};
        struct schedule *schedule;
        struct simulation s;
        assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &one), &schedule), GRAPHI_OK);
        struct policy slow = *schedule->policy;
        slow.place = slow_place;
        slow.key = slow_key;
        schedule->policy = &slow;
        assert_int_equal(schedule_simulate(schedule, NULL, NULL, NULL, &s), GRAPHI_OK);
        assert_true(s.deciding_ns >= 0.9 * (2 * tasks - 1) * DECIDING_NS);
        schedule_destroy(schedule);
        free(one.core);
        dag_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_of_one_identity_decide_alike),
        cmocka_unit_test(deciding_is_a_part_of_the_simulation),
        cmocka_unit_test(deciding_counts_in_short_simulations),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
