/* SPDX-License-Identifier: Apache-2.0 */
/* Rough costs of the scheduler, printed by `test_scheduler --bench`: real empty tasks on two workers, and virtual time.
 */
#ifndef TESTS_SCHEDULER_BENCH_H
#define TESTS_SCHEDULER_BENCH_H

#include "schedule/decided.h"
#include "machine/parking.h"

struct delay {
    int64_t ns;
};

static graphi_status delay_task(void *context, int32_t task, struct team *team, int member, int width)
{
    const struct delay *delay = context;
    if (delay->ns)
        for (int64_t end = clock_ns() + delay->ns; clock_ns() < end;)
            cpu_relax();
    return GRAPHI_OK;
}

static void bench_real(const struct dag *dag, const char *name, graphi_setting setting, int64_t ns)
{
    graphi_machine *machine;
    struct schedule *schedule;
    struct lease lease = {0};
    if (graphi_machine_create(0, &machine) ||
        schedule_create(&dag->tasks, setting_decide(&setting, machine), &schedule))
        return;
    struct lease_options options = setting_decide(&setting, machine).lease;
    if (lease_take(machine, &options, &lease))
        return;
    struct delay delay = {ns};
    double best = 1e18;
    int count = dag->tasks.count;
    for (int i = 0; i < (ns > 1000 ? 2 : 9); i++) {
        int64_t start = clock_ns();
        schedule_run(schedule, &lease, delay_task, &delay, NULL);
        double t = (double)(clock_ns() - start) / count;
        best = t < best ? t : best;
    }
    printf("%-40s %8.1f ns an operation\n", name, best);
    lease_release(&lease);
    schedule_destroy(schedule);
    graphi_machine_destroy(machine);
}

static void bench_virtual(const struct dag *dag, graphi_policy policy, int cores, int width)
{
    graphi_machine machine = dag_machine(cores, 0);
    machine.wake_ns = 100;
    machine.schedule_ns = 40;
    machine.atomic_ns = 10;
    machine.lock_ns = 20;
    graphi_setting setting = {.policy = policy, .executors = cores / width, .width = width, .light = GRAPHI_OFF};
    struct schedule *schedule;
    if (schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule))
        return;
    struct simulation simulation;
    clock_t start = clock(); /* of the CPU: the machine may be shared */
    schedule_simulate(schedule, NULL, NULL, NULL, &simulation);
    printf("virtual %-14s %5d cores width %2d %8.0f ns an operation, makespan %.0f us\n", graphi_policy_name(policy),
           cores, width, (double)(clock() - start) * (1e9 / CLOCKS_PER_SEC) / dag->tasks.count,
           simulation.makespan_ns / 1e3);
    schedule_destroy(schedule);
    free(machine.core);
}

int bench(void)
{
    struct dag *empty = dag_random_graph(1, 100000, 16, 0, 16);
    graphi_setting s = {.executors = 2, .width = 1, .inlining = GRAPHI_OFF, .driver = GRAPHI_DRIVER_COMBINING};
    bench_real(empty, "empty, combining", s, 0);
    s.depth = 4;
    bench_real(empty, "empty, combining, depth 4", s, 0);
    s.depth = 1;
    s.inlining = GRAPHI_DEFAULT;
    bench_real(empty, "empty, combining, inline", s, 0);
    s.policy = GRAPHI_POLICY_SEQUENTIAL;
    s.executors = 1;
    bench_real(empty, "empty, sequential", s, 0);
    s.policy = GRAPHI_POLICY_NAIVE;
    s.executors = 2;
    s.inlining = GRAPHI_OFF;
    bench_real(empty, "empty, naive", s, 0);
    dag_free(empty);
    struct dag *busy = dag_random_graph(1, 100000, 16, 200, 0);
    for (int i = 0; i < DAG_CURVES; i++)
        busy->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {1000}, .best = 1};
    graphi_setting c = {.executors = 2, .width = 1, .inlining = GRAPHI_OFF, .driver = GRAPHI_DRIVER_COMBINING};
    bench_real(busy, "1 us, combining (bound 500)", c, 1000);
    c.depth = 2;
    bench_real(busy, "1 us, combining, depth 2 (bound 500)", c, 1000);
    dag_free(busy);
    struct dag *wide = dag_random_graph(2, 50000, 100, 10000, 0);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        bench_virtual(wide, (graphi_policy)policy, 68, 1);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        bench_virtual(wide, (graphi_policy)policy, 1024, 1);
    bench_virtual(wide, GRAPHI_POLICY_CRITICAL_PATH, 64, 8);
    dag_free(wide);
    return 0;
}

#endif
