/* SPDX-License-Identifier: Apache-2.0 */
/* What a static driver decides in advance. That executions heed it (test_scheduler, test_identity) is tested with the
 * other drivers. */
#include "dag.h"
#include "schedule/setting_canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { TASKS = 400 };

static struct simulation in_virtual_time(const struct dag *dag, const graphi_machine *machine, int executors,
                                         struct task_record *records)
{
    const graphi_setting setting = {.driver = GRAPHI_DRIVER_STATIC, .executors = executors, .width = 1, .light = -1};
    struct schedule *schedule;
    struct simulation simulation;
    assert_int_equal(schedule_create(&dag->tasks, &setting, machine, &schedule), GRAPHI_OK);
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

/* Policies that place tasks, or form teams, as the execution goes would lose what they are for. */
static void what_decides_on_the_way_has_another_driver(void **state)
{
    (void)state;
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        const bool orders = policy == GRAPHI_POLICY_CRITICAL_PATH || policy == GRAPHI_POLICY_FIFO ||
                            policy == GRAPHI_POLICY_RANDOM;
        for (int width = 1; width <= 2; width++) {
            const graphi_setting asked = {.policy = (graphi_policy)policy,
                                          .driver = GRAPHI_DRIVER_STATIC,
                                          .executors = 2,
                                          .width = width,
                                          .depth = 3,
                                          .join = 1},
                                 r = setting_canonical(&asked);
            assert_int_equal(r.driver, orders ? GRAPHI_DRIVER_STATIC : GRAPHI_DRIVER_COMBINING);
            assert_true(!orders || (r.depth == 1 && r.join == (width == 1 ? 1 : -1)));
        }
    }
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
            .driver = GRAPHI_DRIVER_STATIC, .executors = 4, .width = 1, .light = -1, .join = join ? 1 : -1};
        struct schedule *schedule;
        struct simulation simulation;
        assert_int_equal(schedule_create(&dag->tasks, &setting, &machine, &schedule), GRAPHI_OK);
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
        cmocka_unit_test(what_decides_on_the_way_has_another_driver),
        cmocka_unit_test(who_waits_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
