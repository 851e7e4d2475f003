/* SPDX-License-Identifier: Apache-2.0 */
/* What traces tell: sums and critical path of timelines made by hand, waiting within teams as it was planted, averages
 * over executions. */
#include "schedule/decided.h"
#include "dag.h"

#include "base/clock.h"
#include "engine/show/timeline.h"
#include "engine/show/timeline_sum.h"
#include "machine/parking.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"

/* --- by hand --- */

enum { MOST_LANES = 3 };

struct expected {
    int64_t busy, starved, scheduling, team, operations;
};

static void sums_are(const struct timeline *timeline, int64_t span, const struct expected *expected)
{
    struct timeline_lane lane[MOST_LANES];
    struct timeline_totals totals;
    struct expected all = {0};
    check_ok(timeline_sum(timeline, lane, &totals));
    assert_int_equal(totals.span_ns, span);
    for (int m = 0; m < timeline->lanes; m++) {
        assert_int_equal(lane[m].busy_ns, expected[m].busy);
        assert_int_equal(lane[m].starved_ns, expected[m].starved);
        assert_int_equal(lane[m].scheduling_ns, expected[m].scheduling);
        assert_int_equal(lane[m].team_ns, expected[m].team);
        assert_int_equal(lane[m].operations, expected[m].operations);
        all.busy += lane[m].busy_ns;
        all.starved += lane[m].starved_ns;
        all.scheduling += lane[m].scheduling_ns;
        all.team += lane[m].team_ns;
    }
    double whole = (double)span * timeline->lanes;
    assert_int_equal(all.busy + all.starved + all.scheduling + all.team, span * timeline->lanes);
    assert_float_equal(totals.busy, (double)all.busy / whole, 1e-9);
    assert_float_equal(totals.starved, (double)all.starved / whole, 1e-9);
    assert_float_equal(totals.scheduling, (double)all.scheduling / whole, 1e-9);
    assert_float_equal(totals.team, (double)all.team / whole, 1e-9);
}

/* An executor that idles while another's ring holds what is ready would be told that the graph has nothing to give,
 * since what it runs next itself became ready later. */
static void what_waits_in_another_ring_is_scheduling(void **state)
{
    const struct timeline_event event[] = {
        {.leader = 0, .width = 1, .ready_ns = 0, .start_ns = 0, .end_ns = 100},
        {.leader = 0, .width = 1, .ready_ns = 20, .start_ns = 100, .end_ns = 150},
        {.leader = 1, .width = 1, .ready_ns = 120, .start_ns = 130, .end_ns = 160},
    };
    const struct timeline timeline = {.lanes = 2, .count = 3, .events = event};
    sums_are(&timeline, 160,
             (const struct expected[]){{.busy = 150, .starved = 10, .operations = 2},
                                       {.busy = 30, .scheduling = 80 + 10, .starved = 20 + 20, .operations = 1}});
}

/* One late operation would make every idle lane of a wide machine wait for the scheduler. */
static void one_operation_can_occupy_one_lane(void **state)
{
    const struct timeline_event event[] = {
        {.leader = 1, .width = 1, .ready_ns = 40, .start_ns = 100, .end_ns = 120},
        {.leader = 0, .width = 1, .ready_ns = 0, .start_ns = 0, .end_ns = 100},
    };
    const struct timeline timeline = {.lanes = 3, .count = 2, .events = event};
    sums_are(&timeline, 120,
             (const struct expected[]){{.busy = 100, .starved = 20, .operations = 1},
                                       {.busy = 20, .scheduling = 30, .starved = 70, .operations = 1},
                                       {.scheduling = 30, .starved = 90}});
}

/* A team's waiting would count as busy, or be charged to neighbours of a leader whose team is others. */
static void members_wait_on_their_own_lanes(void **state)
{
    const uint16_t member[] = {2, 0};
    const int64_t worked[] = {60, 90};
    const struct timeline_event event[] = {
        {.leader = 2, .width = 2, .member = member, .worked_ns = worked, .ready_ns = 0, .start_ns = 10, .end_ns = 110},
        {.leader = 1, .width = 1, .ready_ns = 0, .start_ns = 0, .end_ns = 110},
    };
    const struct timeline timeline = {.lanes = 3, .count = 2, .events = event};
    assert_int_equal(timeline_team_wait(&event[0]), 40 + 10);
    assert_int_equal(timeline_team_wait(&event[1]), 0);
    sums_are(&timeline, 110,
             (const struct expected[]){{.busy = 90, .team = 10, .scheduling = 10},
                                       {.busy = 110, .operations = 1},
                                       {.busy = 60, .team = 40, .scheduling = 10, .operations = 1}});
}

/* What a member does while others of its team still work, under a static driver, would be waiting for them. */
static void members_that_go_on_wait_until_then(void **state)
{
    const int64_t worked[] = {100, 40};
    const struct timeline_event event[] = {
        {.leader = 0, .width = 2, .worked_ns = worked, .ready_ns = 0, .start_ns = 0, .end_ns = 100},
        {.leader = 1, .width = 1, .ready_ns = 0, .start_ns = 50, .end_ns = 150},
    };
    const struct timeline timeline = {.lanes = 2, .count = 2, .events = event};
    sums_are(&timeline, 150,
             (const struct expected[]){{.busy = 100, .starved = 50, .operations = 1},
                                       {.busy = 40 + 100, .team = 10, .operations = 1}});
}

/* Without it lanes had numbers alone, and which of them were one executor had to be counted. */
static void lanes_have_their_executors_names(void **state)
{
    static const struct {
        struct timeline timeline;
        int lane;
        const char *name;
    } cases[] = {{{.executors = 3, .team = 1}, 2, "executor 2"},
                 {{.executors = 3, .team = 4, .simulated = true}, 9, "executor 2.1 (simulated)"},
                 {{.executors = 3, .team = 4}, 12, "worker 12"},
                 {{.executors = 3, .team = 4, .light = 12}, 12, "light executor"},
                 {{.light = 4}, 3, "worker 3"},
                 {{.lanes = 1}, 0, "worker 0"}};
    char name[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        timeline_lane_name(&cases[i].timeline, cases[i].lane, name, sizeof name);
        assert_string_equal(name, cases[i].name);
    }
}

/* The chain would start at another end than the last, or follow an input that was there earlier. */
static void critical_path_follows_the_last_input(void **state)
{
    struct timeline_event event[] = {
        {.start_ns = 0, .end_ns = 10},  {.start_ns = 0, .end_ns = 30},  {.start_ns = 30, .end_ns = 45},
        {.start_ns = 10, .end_ns = 20}, {.start_ns = 45, .end_ns = 46},
    };
    const int32_t begin[] = {0, 0, 0, 2, 3, 5}, list[] = {0, 1, 0, 3, 2};
    const bool critical[] = {false, true, true, false, true};
    timeline_mark_critical(event, 5, begin, list);
    for (int i = 0; i < 5; i++)
        assert_int_equal(event[i].critical, critical[i]);
}

/* --- teams --- */

enum { PLANTED_NS = 3000000, TASKS = 12 };

/* The other member arrives at the barrier late, then the leader ends late: each by PLANTED_NS after the member that
 * waits is known to wait. */
static graphi_status late_shares(void *context, int32_t task, struct team *team, int member, int width)
{
    (void)context, (void)task;
    assert_int_equal(width, 2);
    while (member == 1 && atomic_load(&team->arrived) == 0)
        cpu_relax();
    if (member == 1)
        clock_spin(PLANTED_NS);
    team_barrier(team, member);
    while (member == 0 && atomic_load(&team->finished) == 0)
        cpu_relax();
    if (member == 0)
        clock_spin(PLANTED_NS);
    return GRAPHI_OK;
}

/* A schedule of its own for each test; two threads, wherever they run. */
struct pair {
    graphi_machine machine;
    struct dag *dag;
    struct schedule *schedule;
    struct lease lease;
    struct task_record records[TASKS];
};

static void pair_open(struct pair *p, graphi_policy policy, int tasks)
{
    *p = (struct pair){.machine = dag_machine(2, 0), .dag = dag_plain(tasks, 1)};
    dag_finish(p->dag);
    const graphi_setting setting = {
        .policy = policy, .executors = 1, .width = 2, .inlining = GRAPHI_OFF, .driver = GRAPHI_DRIVER_COMBINING};
    check_ok(schedule_create(&p->dag->tasks, setting_decide(&setting, &p->machine), &p->schedule));
    check_ok(lease_take(&p->machine, &(struct lease_options){.workers = 2}, &p->lease));
}

static void pair_close(struct pair *p)
{
    lease_release(&p->lease);
    schedule_destroy(p->schedule);
    dag_free(p->dag);
    free(p->machine.core);
}

/* One executor of all threads has nobody else to wait for, and would be called busy however unevenly its team works. */
static void late_shares_are_told(void **state)
{
    struct pair p;
    pair_open(&p, GRAPHI_POLICY_CRITICAL_PATH, 1);
    check_ok(schedule_trace_teams(p.schedule));
    check_ok(schedule_run(p.schedule, &p.lease, late_shares, NULL, p.records));
    const struct task_record *r = &p.records[0];
    const int64_t *worked = schedule_teams(p.schedule)->worked_ns, took = r->end_ns - r->start_ns;
    for (int member = 0; member < 2; member++)
        assert_in_range(worked[member], PLANTED_NS * 9 / 10, took - PLANTED_NS * 9 / 10);
    struct timeline_event event = {.width = 2, .worked_ns = worked, .start_ns = r->start_ns, .end_ns = r->end_ns};
    struct timeline_lane lane[2];
    struct timeline_totals totals;
    check_ok(timeline_sum(&(struct timeline){.lanes = 2, .count = 1, .events = &event}, lane, &totals));
    assert_true(lane[0].team_ns >= PLANTED_NS * 9 / 10 && lane[1].team_ns >= PLANTED_NS * 9 / 10);
    int64_t before[2] = {worked[0], worked[1]};
    check_ok(schedule_run(p.schedule, &p.lease, late_shares, NULL, NULL)); /* not traced: no watch runs */
    assert_memory_equal(before, worked, sizeof before);
    pair_close(&p);
}

static graphi_status nothing(void *context, int32_t task, struct team *team, int member, int width)
{
    return GRAPHI_OK;
}

/* Teams whose leader is not the first of their workers would be drawn on lanes that do not exist. */
static void free_teams_name_their_members(void **state)
{
    struct pair p;
    struct simulation simulation;
    pair_open(&p, GRAPHI_POLICY_S1, TASKS);
    check_ok(schedule_trace_teams(p.schedule));
    for (int simulated = 0; simulated < 2; simulated++) {
        memset(p.records, 0, sizeof p.records);
        check_ok(simulated ? schedule_simulate(p.schedule, NULL, NULL, p.records, &simulation)
                           : schedule_run(p.schedule, &p.lease, nothing, NULL, p.records));
        for (int t = 0; t < TASKS; t++) {
            const uint16_t *member = schedule_teams(p.schedule)->member + (size_t)t * schedule_teams(p.schedule)->row;
            assert_int_equal(p.records[t].width, 2);
            assert_int_equal(member[0], p.records[t].leader);
            assert_int_equal(member[0] + member[1], 1);
        }
    }
    pair_close(&p);
}

/* Without a scheduler an operation is ready when its turn comes: with 0 all the time that members of the team idle
 * while one of them runs a small operation would be scheduling. */
static void in_sequence_the_turn_makes_ready(void **state)
{
    struct pair p;
    pair_open(&p, GRAPHI_POLICY_SEQUENTIAL, TASKS);
    check_ok(schedule_run(p.schedule, &p.lease, nothing, NULL, p.records));
    for (int t = 0; t < TASKS; t++)
        assert_int_equal(p.records[t].ready_ns, t ? p.records[t - 1].end_ns : 0);
    pair_close(&p);
}

/* --- runs --- */

enum { DELAYS = 6, EXECUTIONS = 5, DELAY_NS = 500000 };

struct delays {
    graphi_machine *machine;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *values;
    graphi_run *run;
};

/* A chain, on one executor of two threads. */
static void delays_open(struct delays *d)
{
    *d = (struct delays){.machine = six_cores()};
    check_ok(graphi_graph_create(&d->graph));
    graphi_value y = graphi_input(d->graph, "x", GRAPHI_F32, 1, (int64_t[]){1});
    for (int i = 0; i < DELAYS; i++)
        y = graphi_delay(d->graph, 1, &y, DELAY_NS);
    graphi_output(d->graph, "y", y);
    const graphi_plan_options options = {.setting = {.executors = 1, .width = 2, .inlining = GRAPHI_OFF}};
    check_ok(graphi_plan_create(d->graph, d->machine, &options, &d->plan));
    check_ok(graphi_state_create(d->graph, 1, &d->values));
    check_ok(graphi_run_create(d->plan, d->values, &d->run));
    feed_zeros(d->graph, d->run);
}

static void delays_close(struct delays *d)
{
    graphi_run_destroy(d->run);
    graphi_state_destroy(d->values);
    graphi_plan_destroy(d->plan);
    graphi_graph_destroy(d->graph);
    graphi_machine_destroy(d->machine);
}

/* An operation that has one share keeps the rest of its team waiting, which the summary would call busy. */
static void summary_counts_waiting_in_teams(void **state)
{
    struct delays d;
    delays_open(&d);
    graphi_trace_summary sum;
    graphi_trace_operation operation;
    double waits = 0;
    check_ok(graphi_run_trace(d.run, true));
    check_ok(graphi_run_execute(d.run));
    check_ok(graphi_run_trace_summary(d.run, &sum));
    assert_int_equal(sum.operations, DELAYS);
    for (int i = 0; i < DELAYS; i++) {
        check_ok(graphi_run_trace_operation(d.run, i, &operation));
        assert_string_equal(operation.kind, "delay");
        assert_int_equal(operation.width, 2);
        assert_true(operation.duration_ms > 0.9e-6 * DELAY_NS);
        assert_true(operation.team_wait_ms > 0.4 * operation.duration_ms);
        assert_true(operation.team_wait_ms < 2 * operation.duration_ms - 0.9e-6 * DELAY_NS);
        waits += operation.team_wait_ms;
    }
    assert_float_equal(sum.team_fraction * 2 * sum.span_ms, waits, 1e-6);
    assert_float_equal(sum.busy_fraction + sum.scheduling_fraction + sum.waiting_fraction + sum.team_fraction, 1, 1e-9);
    assert_int_equal(graphi_run_trace_operation(d.run, DELAYS, &operation), GRAPHI_INVALID);
    assert_int_equal(graphi_run_trace_operation(d.run, -1, &operation), GRAPHI_INVALID);
    delays_close(&d);
}

/* Averages would be those of the last execution, of executions that were not traced, or of an earlier trace. */
static void durations_are_averaged_with_spread(void **state)
{
    struct delays d;
    delays_open(&d);
    graphi_trace_operation operation;
    double ms[DELAYS][EXECUTIONS];
    for (int again = 0; again < 2; again++) {
        check_ok(graphi_run_trace(d.run, true));
        for (int e = 0; e < EXECUTIONS; e++) {
            check_ok(graphi_run_execute(d.run));
            for (int i = 0; i < DELAYS; i++) {
                check_ok(graphi_run_trace_operation(d.run, i, &operation));
                ms[i][e] = operation.duration_ms;
                if (e == 0)
                    assert_float_equal(operation.deviation_ms, 0, 0);
            }
        }
        check_ok(graphi_run_trace(d.run, false));
        check_ok(graphi_run_execute(d.run));
    }
    for (int i = 0; i < DELAYS; i++) {
        double mean = 0, squares = 0;
        for (int e = 0; e < EXECUTIONS; e++)
            mean += ms[i][e] / EXECUTIONS;
        for (int e = 0; e < EXECUTIONS; e++)
            squares += (ms[i][e] - mean) * (ms[i][e] - mean);
        check_ok(graphi_run_trace_operation(d.run, i, &operation));
        assert_int_equal(operation.executions, EXECUTIONS);
        assert_float_equal(operation.mean_ms, mean, 1e-9);
        assert_float_equal(operation.deviation_ms, sqrt(squares / (EXECUTIONS - 1)), 1e-7);
        assert_true(operation.deviation_ms > 0);
    }
    delays_close(&d);
}

/* Half of the operations would be those of the execution that failed, under averages of none; results would be those of
 * two executions too. */
static void failed_executions_leave_no_trace(void **state)
{
    enum { ROWS = 4, KINDS = 3 };
    static const int32_t fine[ROWS] = {0, 2, 1, 0}, beyond[ROWS] = {0, KINDS, 1, 0};
    float loss;
    graphi_graph *g;
    graphi_plan *plan;
    graphi_state *values;
    graphi_run *run[2];
    graphi_trace_summary sum = {.operations = 77};
    graphi_trace_operation operation;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_tanh(g, graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){ROWS, KINDS}));
    graphi_value labels = graphi_input(g, "labels", GRAPHI_I32, 1, (int64_t[]){ROWS});
    graphi_output(g, "loss", graphi_softmax_cross_entropy(g, x, labels));
    const graphi_plan_options options = {.setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}};
    check_ok(graphi_plan_create(g, machine, &options, &plan));
    check_ok(graphi_state_create(g, 1, &values));
    check_ok(graphi_run_create(plan, values, &run[0]));
    check_ok(graphi_run_beside(run[0], plan, &run[1]));
    feed_zeros(g, run[0]);
    for (int i = 0; i < 2; i++) {
        check_ok(graphi_run_set(run[0], "labels", GRAPHI_I32, fine, sizeof fine));
        check_ok(graphi_run_trace(run[i], true));
        check_ok(graphi_run_execute(run[i]));
        check_ok(graphi_run_execute(run[i]));
        check_ok(graphi_run_get(run[i], "loss", GRAPHI_F32, &loss, sizeof loss));
        check_ok(graphi_run_set(run[0], "labels", GRAPHI_I32, beyond, sizeof beyond));
        assert_int_equal(graphi_run_execute(run[i]), GRAPHI_INVALID);
        assert_int_equal(graphi_run_trace_summary(run[i], &sum), GRAPHI_INVALID);
        assert_int_equal(sum.operations, 77);
        assert_int_equal(graphi_run_trace_operation(run[i], 0, &operation), GRAPHI_INVALID);
        for (int k = 0; k <= i; k++) { /* those of one memory */
            assert_int_equal(graphi_run_get(run[k], "loss", GRAPHI_F32, &loss, sizeof loss), GRAPHI_INVALID);
            assert_non_null(strstr(graphi_message(), "failed"));
        }
        check_ok(graphi_run_set(run[0], "labels", GRAPHI_I32, fine, sizeof fine));
        check_ok(graphi_run_execute(run[i]));
        check_ok(graphi_run_get(run[0], "loss", GRAPHI_F32, &loss, sizeof loss));
        check_ok(graphi_run_trace_operation(run[i], 0, &operation));
        assert_int_equal(operation.executions, 1);
        check_ok(graphi_run_trace(run[i], false));
        check_ok(graphi_run_set(run[0], "labels", GRAPHI_I32, beyond, sizeof beyond));
        assert_int_equal(graphi_run_execute(run[i]), GRAPHI_INVALID);
        check_ok(graphi_run_trace_summary(run[i], &sum)); /* of one that was traced */
        sum.operations = 77;
    }
    graphi_run_destroy(run[1]);
    graphi_run_destroy(run[0]);
    graphi_state_destroy(values);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_in_another_ring_is_scheduling),
        cmocka_unit_test(one_operation_can_occupy_one_lane),
        cmocka_unit_test(members_wait_on_their_own_lanes),
        cmocka_unit_test(members_that_go_on_wait_until_then),
        cmocka_unit_test(lanes_have_their_executors_names),
        cmocka_unit_test(critical_path_follows_the_last_input),
        cmocka_unit_test(late_shares_are_told),
        cmocka_unit_test(free_teams_name_their_members),
        cmocka_unit_test(in_sequence_the_turn_makes_ready),
        cmocka_unit_test(summary_counts_waiting_in_teams),
        cmocka_unit_test(durations_are_averaged_with_spread),
        cmocka_unit_test(failed_executions_leave_no_trace),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
