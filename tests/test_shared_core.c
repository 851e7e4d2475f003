/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver that has no core of its own (schedule/simulated_core.c), in virtual time. */
#include "schedule/decided.h"
#include "dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void play_with(const struct dag *g, graphi_setting setting, int cores, struct task_record *records)
{
    struct schedule *schedule;
    struct simulation simulation;
    graphi_machine machine = dag_machine(cores, 0);
    machine.wake_ns = 100;
    machine.schedule_ns = 1000;
    setting.driver = GRAPHI_DRIVER_DEDICATED;
    setting.depth = 1;
    setting.light = GRAPHI_OFF;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    assert_int_equal(schedule_simulate(schedule, NULL, NULL, records, &simulation), GRAPHI_OK);
    schedule_destroy(schedule);
    free(machine.core);
}

static void play(const struct dag *g, int executors, int width, int cores, struct task_record *records)
{
    play_with(g, (graphi_setting){.executors = executors, .width = width, .inlining = GRAPHI_OFF}, cores, records);
}

/* A dedicated driver costs as much where executors take all cores as on a core of its own. Beside the long operation 0
 * on the last of two cores it sees the end of 1 at its next turn, after five slices of 1.4 ms, and holds 0 up. */
static void a_driver_shares_the_last_core(void **state)
{
    struct dag *g = dag_plain(3, 0);
    g->curves[0] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {10e6}, .best = 1};
    g->curves[1] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {6e6}, .best = 1};
    dag_set_class(g, 1, 1);
    dag_set_class(g, 2, 1);
    g->inputs[2][g->inputs_count[2]++] = 1;
    dag_finish(g);
    for (int cores = 2; cores <= 3; cores++) {
        struct task_record r[3];
        play(g, 2, 1, cores, r);
        const bool shares = cores == 2;
        assert_int_equal(r[0].leader, 1);
        assert_int_equal(r[2].leader, 0);
        assert_in_range(r[2].start_ns, shares ? 7000000 : 6000000, shares ? 7010000 : 6010000);
        assert_in_range(r[0].end_ns - r[0].start_ns, shares ? 10003800 : 10000000, shares ? 10005200 : 10000000);
    }
    dag_free(g);
}

/* After an operation of a team on the shared core the step waits until its last worker has polled for 50 us and yields;
 * where nobody works there it comes at once. */
static void an_idle_worker_yields_to_the_driver(void **state)
{
    static const struct {
        int executors, width, cores, least_us, most_us;
    } cases[] = {{1, 2, 2, 50, 56}, {1, 2, 3, 0, 2}, {2, 1, 2, 1, 5}};
    struct dag *g = dag_plain(10, 1);
    g->curves[0] = (struct cost_curve){.samples = 2, .width = {1, 2}, .ns = {2e5, 1e5}, .best = 2};
    dag_finish(g);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task_record r[10];
        play(g, cases[i].executors, cases[i].width, cases[i].cores, r);
        for (int t = 1; t < 10; t++)
            assert_in_range(r[t].start_ns - r[t - 1].end_ns, 1000 * cases[i].least_us, 1000 * cases[i].most_us);
    }
    dag_free(g);
}

/* A driver whose turn had come would lose it, slice after slice, to operations that end while the threads change:
 * beside a chain of short ones, which the worker of the last of two cores runs one after the other, it sees the end of
 * 0 after five slices. */
static void short_operations_do_not_take_its_turn(void **state)
{
    enum { CHAIN = 30000 };
    struct dag *g = dag_plain(2 + CHAIN, 0);
    struct task_record *r = calloc(2 + CHAIN, sizeof *r);
    const double ns[] = {1000, 6e6, 40e6};
    for (int i = 0; i < 3; i++)
        g->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {ns[i]}, .best = 1};
    dag_set_class(g, 0, 1);
    dag_set_class(g, 1, 2);
    g->inputs[1][g->inputs_count[1]++] = 0;
    for (int t = 3; t < 2 + CHAIN; t++) {
        g->inputs[t][g->inputs_count[t]++] = t - 1;
        g->flags[t] = TASK_INLINE;
    }
    dag_finish(g);
    play_with(g, (graphi_setting){.executors = 2, .width = 1}, 2, r);
    assert_int_equal(r[2].leader, 1);
    assert_true(r[1 + CHAIN].inlined);
    assert_in_range(r[1].start_ns, 7000000, 7010000);
    free(r);
    dag_free(g);
}

/* Two steps, of which one follows the other at once, would hold up what runs on the core by a change of threads more
 * than one step that does the same: 2 ends while the step runs that sees the end of 1, or before. */
static void a_step_that_follows_another_has_the_core(void **state)
{
    int64_t took[2];
    for (int second = 0; second < 2; second++) {
        struct dag *g = dag_plain(5, 0);
        struct task_record r[5];
        const double ns[] = {10e6, 6e6, second ? 7.004e6 : 6e6};
        for (int i = 0; i < 3; i++)
            g->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {ns[i]}, .best = 1};
        dag_set_class(g, 1, 1);
        dag_set_class(g, 2, 2);
        for (int t = 3; t < 5; t++) {
            dag_set_class(g, t, 1);
            g->inputs[t][g->inputs_count[t]++] = t - 2;
        }
        dag_finish(g);
        play(g, 3, 1, 3, r);
        assert_int_equal(r[0].leader, 2);
        assert_true((r[2].end_ns > r[3].start_ns - 1100) == second); /* the step and the message took so long */
        took[second] = r[0].end_ns - r[0].start_ns;
        dag_free(g);
    }
    assert_in_range(took[1], took[0] - 10, took[0] + 10);
}

static struct cost_curve divided(double ns)
{
    return (struct cost_curve){.samples = 3, .width = {1, 2, 3}, .ns = {ns, ns / 2, ns / 3}, .best = 3};
}

/* Who joins on that core would cost the driver nothing: the last of three is at pieces of 0 when 1 ends, which its
 * executor began after a piece. The driver sees it at its next turn, after a slice of 1.4 ms, when this executor is at
 * its second piece since; with a core of its own it is seen during the first. */
static void who_joins_has_the_core(void **state)
{
    struct dag *g = dag_plain(3, 0);
    const graphi_setting setting = {.executors = 3, .width = 1, .join = GRAPHI_ON, .inlining = GRAPHI_OFF};
    g->curves[0] = divided(10e6);
    g->curves[1] = divided(0.6e6);
    for (int t = 0; t < 3; t++)
        g->shares[t] = t ? 1 : 32;
    dag_set_class(g, 1, 1);
    dag_set_class(g, 2, 1);
    g->inputs[2][g->inputs_count[2]++] = 1;
    dag_finish(g);
    for (int cores = 3; cores <= 4; cores++) {
        struct task_record r[3];
        play_with(g, setting, cores, r);
        assert_int_equal(r[0].leader, 0);
        const int64_t since = 1200 + 312500 + 600000, pieces = cores == 3 ? 2 : 1;
        assert_int_equal(r[1].end_ns, since);
        assert_in_range(r[2].start_ns, since + pieces * 312500, since + pieces * 312500 + 5000);
    }
    dag_free(g);
}

/* A leader on that core that waits for who joined would keep it as if it worked: 4 becomes ready after 0.9 ms, and 2
 * has done its half after 1. It polls for 50 us, as who has nothing to do, and the driver comes. */
static void a_leader_that_waits_yields(void **state)
{
    enum { FIRST, SECOND, OPEN, AFTER_FIRST, AFTER_SECOND, TASKS };
    static const double ns[TASKS] = {0.4e6, 0.9e6, 2e6, 5e6, 3e6};
    struct dag *g = dag_plain(TASKS, 0);
    struct task_record r[TASKS];
    for (int t = 0; t < TASKS; t++) {
        dag_set_class(g, t, t);
        g->curves[t] = divided(ns[t]);
        g->shares[t] = t == OPEN ? 2 : 1;
        if (t > OPEN)
            g->inputs[t][g->inputs_count[t]++] = g->largest[t] = t - AFTER_FIRST;
    }
    dag_finish(g);
    play_with(g, (graphi_setting){.policy = GRAPHI_POLICY_LOCALITY, .executors = 3, .width = 1, .join = GRAPHI_ON,
                                  .inlining = GRAPHI_OFF}, 3, r);
    assert_int_equal(r[OPEN].leader, 2);
    assert_in_range(r[OPEN].end_ns, 1400000, 1410000);
    assert_int_equal(r[AFTER_SECOND].leader, 1);
    assert_in_range(r[AFTER_SECOND].start_ns, 1050000, 1062000);
    assert_int_equal(r[AFTER_FIRST].leader, 0);
    assert_in_range(r[AFTER_FIRST].start_ns, 1400000, 1410000);
    dag_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_shares_the_last_core),
        cmocka_unit_test(an_idle_worker_yields_to_the_driver),
        cmocka_unit_test(short_operations_do_not_take_its_turn),
        cmocka_unit_test(a_step_that_follows_another_has_the_core),
        cmocka_unit_test(who_joins_has_the_core),
        cmocka_unit_test(a_leader_that_waits_yields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
