/* SPDX-License-Identifier: Apache-2.0 */
/* What a static driver decides in advance. That executions heed it (test_scheduler, test_identity) is tested with the
 * other drivers. */
#include "dag.h"
#include "schedule/decided.h"
#include "schedule/setting_canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { TASKS = 400 };

static struct simulation in_virtual_time(const struct dag *dag, const graphi_machine *machine, int executors,
                                         struct task_record *records)
{
    const graphi_setting setting = {
        .driver = GRAPHI_DRIVER_STATIC, .executors = executors, .width = 1, .light = GRAPHI_OFF};
    struct schedule *schedule;
    struct simulation simulation;
    assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, machine), &schedule), GRAPHI_OK);
    assert_int_equal(schedule_simulate(schedule, NULL, NULL, records, &simulation), GRAPHI_OK);
    schedule_destroy(schedule);
    return simulation;
}

static int led(const struct task_record *records, int worker)
{
    int count = 0;
    for (int i = 0; i < TASKS; i++)
        count += records[i].leader == worker;
    return count;
}

/* Tasks of microseconds would lie with one executor, or empty ones wait for each other's messages. */
static void what_pays_is_shared_out(void **state)
{
    (void)state;
    static struct task_record records[TASKS];
    graphi_machine machine = dag_machine(2, 0);
    machine.wake_ns = 100;
    for (int ns = 0; ns <= 2000; ns += 2000) {
        struct dag *dag = dag_random_graph(3, TASKS, 16, ns, 0);
        const double alone = in_virtual_time(dag, &machine, 1, records).makespan_ns,
                     makespan = in_virtual_time(dag, &machine, 2, records).makespan_ns;
        if (ns) {
            assert_true(led(records, 0) > TASKS / 4 && led(records, 1) > TASKS / 4);
            assert_true(makespan < 0.6 * alone);
        } else {
            assert_int_equal(led(records, 0), TASKS);
        }
        dag_free(dag);
    }
    free(machine.core);
}

/* A task would begin before its predecessors' results are there, or two at once on an executor. */
static void messages_take_their_time(void **state)
{
    (void)state;
    static struct task_record records[TASKS];
    graphi_machine machine = dag_machine(4, 0);
    machine.wake_ns = 700;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct dag *dag = dag_random_graph(seed, TASKS, 1 + (int)seed, 2000, 3);
        const struct tasks *t = &dag->tasks;
        in_virtual_time(dag, &machine, 4, records);
        for (int32_t i = 0; i < TASKS; i++)
            for (int32_t e = t->edges_begin[i]; e < t->edges_begin[i + 1]; e++) {
                const struct task_record *next = &records[t->edges[e]];
                assert_true(next->start_ns + 1 >= records[i].end_ns + (next->leader != records[i].leader ? 700 : 0));
            }
        for (int i = 0; i < TASKS; i++)
            for (int k = 0; k < i; k++)
                assert_false(records[i].leader == records[k].leader && dag_overlap(&records[i], &records[k]));
        dag_free(dag);
    }
    free(machine.core);
}

/* Loops without a step have nothing to decide in advance, and executors of a pass of their own would change. */
static void what_has_no_steps_has_another_driver(void **state)
{
    (void)state;
    const graphi_setting phases = {
        .driver = GRAPHI_DRIVER_STATIC, .executors = 2, .width = 1, .backward_executors = 1};
    assert_int_equal(setting_canonical(&phases).driver, GRAPHI_DRIVER_COMBINING);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        const bool steps = policy != GRAPHI_POLICY_NAIVE && policy != GRAPHI_POLICY_SEQUENTIAL;
        for (int width = 1; width <= 2; width++) {
            const graphi_setting asked = {.policy = (graphi_policy)policy,
                                          .driver = GRAPHI_DRIVER_STATIC,
                                          .executors = 2,
                                          .width = width,
                                          .depth = 3,
                                          .join = GRAPHI_ON},
                                 r = setting_canonical(&asked);
            assert_int_equal(r.driver, steps ? GRAPHI_DRIVER_STATIC : GRAPHI_DRIVER_COMBINING);
            assert_true(!steps || r.depth == 1);
            assert_true(policy != GRAPHI_POLICY_FIFO || r.join == (width == 1 ? 1 : -1));
        }
    }
}

static graphi_status nothing(void *context, int32_t task, struct team *team, int member, int width)
{
    (void)context, (void)task, (void)team, (void)member, (void)width;
    return GRAPHI_OK;
}

/* The teams of an execution of the setting in virtual time, and its makespan; of one on this machine, if `lease` is
 * given. */
static double teams_of(const struct dag *dag, const graphi_machine *machine, const graphi_setting *setting,
                     struct lease *lease, struct task_record *records)
{
    struct schedule *schedule;
    struct simulation simulation = {0};
    memset(records, 0, TASKS * sizeof *records);
    assert_int_equal(schedule_create(&dag->tasks, setting_decide(setting, machine), &schedule), GRAPHI_OK);
    assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
    assert_int_equal(lease ? schedule_run(schedule, lease, nothing, NULL, records)
                           : schedule_simulate(schedule, NULL, NULL, records, &simulation),
                     GRAPHI_OK);
    schedule_destroy(schedule);
    return simulation.makespan_ns;
}

/* A static driver would place or widen a task otherwise than its policy does, in virtual time or on the machine; its
 * lists would wait for what is known, so that they take longer than deciding. */
static void what_a_policy_decides_is_repeated(void **state)
{
    (void)state;
    static const graphi_policy policies[] = {GRAPHI_POLICY_ASYMMETRIC, GRAPHI_POLICY_LOCALITY, GRAPHI_POLICY_S1,
                                             GRAPHI_POLICY_S12,        GRAPHI_POLICY_S123,     GRAPHI_POLICY_S1234,
                                             GRAPHI_POLICY_MALLEABLE};
    static struct task_record decided[TASKS], repeated[2][TASKS];
    graphi_machine machine = dag_machine(4, 0);
    machine.wake_ns = 200;
    struct lease lease;
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        struct dag *dag = dag_random_graph(40 + p, TASKS, 5, 3000, 4);
        graphi_setting setting = {
            .policy = policies[p], .executors = 4, .width = 1, .light = GRAPHI_OFF, .join = GRAPHI_OFF};
        setting.driver = GRAPHI_DRIVER_COMBINING;
        setting.depth = 1;
        const double makespan = teams_of(dag, &machine, &setting, NULL, decided);
        setting.driver = GRAPHI_DRIVER_STATIC;
        struct lease_options options = setting_decide(&setting, &machine).lease;
        options.pin = false;
        assert_int_equal(lease_take(&machine, &options, &lease), GRAPHI_OK);
        assert_true(teams_of(dag, &machine, &setting, NULL, repeated[0]) <= 1.001 * makespan);
        teams_of(dag, &machine, &setting, &lease, repeated[1]);
        lease_release(&lease);
        int differ = 0;
        for (int i = 0; i < 2; i++)
            for (int t = 0; t < TASKS; t++) {
                assert_int_equal(repeated[i][t].leader, decided[t].leader);
                assert_int_equal(repeated[i][t].width, decided[t].width);
                differ += decided[t].leader != decided[0].leader || decided[t].width != decided[0].width;
            }
        assert_true(differ > 0);
        dag_free(dag);
    }
    free(machine.core);
}

/* One task of sixteen shares and nothing beside it: those without a list join it, in virtual time as on the machine
 * (test_join). */
static void who_waits_joins(void **state)
{
    (void)state;
    static struct task_record records[1];
    graphi_machine machine = dag_machine(4, 0);
    struct dag *dag = dag_random_graph(1, 1, 1, 1e6, 0);
    dag->shares[0] = 16;
    double makespan[2];
    for (int join = 0; join <= 1; join++) {
        const graphi_setting setting = {
            .driver = GRAPHI_DRIVER_STATIC, .executors = 4, .width = 1, .light = GRAPHI_OFF, .join = join ? 1 : -1};
        struct schedule *schedule;
        struct simulation simulation;
        assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
        assert_int_equal(schedule_simulate(schedule, NULL, NULL, records, &simulation), GRAPHI_OK);
        makespan[join] = simulation.makespan_ns;
        schedule_destroy(schedule);
    }
    assert_true(makespan[1] < 0.6 * makespan[0]);
    dag_free(dag);
    free(machine.core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_pays_is_shared_out),
        cmocka_unit_test(messages_take_their_time),
        cmocka_unit_test(what_has_no_steps_has_another_driver),
        cmocka_unit_test(what_a_policy_decides_is_repeated),
        cmocka_unit_test(who_waits_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
