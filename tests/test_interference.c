/* SPDX-License-Identifier: Apache-2.0 */
/* What strategy 3 learns from operations that slow each other down, and forgets, and what strategy 4 puts on siblings,
 * in virtual time: which durations pass is up to the test, whatever the curves say. */
#include "schedule/decided.h"
#include "dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static double co_running_is_slow(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    const struct dag *g = context;
    return curve_ns(&g->curves[g->curve_of[task]], seat.width) * (1 + count);
}

/* Pairs of kinds that slow each other down are kept apart from the second execution on. */
static void strategy_3_learns_interference(void **state)
{
    struct dag *g = dag_plain(24, 4);
    for (int i = 0; i < DAG_CURVES; i++)
        g->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {50000.0 + 1000 * i}, .best = 1};
    for (int t = 0; t < 24; t++)
        dag_set_class(g, t, t % 4);
    dag_finish(g);
    graphi_machine machine = dag_machine(4, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 4, .width = 1};
    struct schedule *schedule;
    struct simulation first, second;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    schedule_simulate(schedule, co_running_is_slow, g, NULL, &first);
    schedule_simulate(schedule, co_running_is_slow, g, NULL, &second);
    assert_true(second.mean_corunning < first.mean_corunning);
    schedule_destroy(schedule);
    free(machine.core);
    dag_free(g);
}

static double last_kind_is_slow_beside_the_first(void *context, int32_t task, struct seat seat, const int32_t *running,
                                                 int count)
{
    const struct dag *g = context;
    double ns = curve_ns(&g->curves[g->curve_of[task]], seat.width);
    for (int i = 0; i < count; i++)
        if (g->curve_of[task] == 3 && g->curve_of[running[i]] == 0)
            ns *= 4;
    return ns;
}

/* A decision to wait for a kind that disturbs, soon to end, would be taken again beside one that does not
 * disturb, where all else is alike. */
static void strategy_3_remembers_beside_whom_it_decided(void **state)
{
    enum { X, Y, LONG, DISTURBED, SHORT, CHAIN = 8, TASKS = CHAIN + 8 };
    static const double ns[] = {2000000, 2000000, 1980000, 50000, 20000};
    const int at = CHAIN + 2; /* X beside SHORT and then all of the chain; X, later Y, beside LONG and then the last */
    const int class[] = {X, LONG, DISTURBED, Y, LONG, DISTURBED};
    const int after[][2] = {{0, at - 1}, {0, at - 1}, {at + 1, -1}, {at, at + 2}, {at, at + 2}, {at + 4, -1}};
    struct dag *g = dag_plain(TASKS, 0);
    for (int i = 0; i < 5; i++)
        g->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {ns[i]}, .best = 1};
    for (int t = 0; t < TASKS; t++) {
        dag_set_class(g, t, t == 0 ? X : t == 1 ? SHORT : t < at ? DISTURBED : class[t - at]);
        if (t > 1 && t < at)
            g->inputs[t][g->inputs_count[t]++] = t - 1;
        for (int i = 0; i < 2 && t >= at; i++)
            if (after[t - at][i] >= 0)
                g->inputs[t][g->inputs_count[t]++] = after[t - at][i];
    }
    dag_finish(g);
    graphi_machine machine = dag_machine(2, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 2, .width = 1, .inlining = GRAPHI_OFF};
    struct task_record records[TASKS];
    struct schedule *schedule;
    struct simulation s;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    schedule_simulate(schedule, last_kind_is_slow_beside_the_first, g, records, &s);
    assert_true(dag_overlap(&records[at - 1], &records[0]) && dag_overlap(&records[at + 2], &records[at]));
    schedule_simulate(schedule, last_kind_is_slow_beside_the_first, g, records, &s);
    assert_false(dag_overlap(&records[at + 2], &records[at]));
    assert_true(dag_overlap(&records[at + 5], &records[at + 3]));
    schedule_destroy(schedule);
    free(machine.core);
    dag_free(g);
}

/* Operations that once disturbed each other would be kept apart for ever, since apart they cannot show that they no
 * longer do. */
static void strategy_3_forgets_interference(void **state)
{
    struct dag *g = dag_plain(24, 0);
    for (int i = 0; i < DAG_CURVES; i++)
        g->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {50000}, .best = 1};
    dag_finish(g);
    graphi_machine machine = dag_machine(4, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 4, .width = 1};
    struct schedule *schedule;
    struct simulation first, disturbed, later = {0};
    int executions = 0;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    schedule_simulate(schedule, co_running_is_slow, g, NULL, &first);
    schedule_simulate(schedule, co_running_is_slow, g, NULL, &disturbed);
    assert_true(disturbed.mean_corunning < first.mean_corunning);
    for (; executions < 500 && later.mean_corunning <= disturbed.mean_corunning; executions++)
        schedule_simulate(schedule, NULL, NULL, NULL, &later);
    assert_in_range(executions, 10, 499); /* slowly */
    schedule_destroy(schedule);
    free(machine.core);
    dag_free(g);
}

enum { WIDE, SMALL, NARROW, SHORT };

static double small_ones_outlast(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    const struct dag *g = context;
    return (g->curve_of[task] == SMALL ? 10 : 1) * curve_ns(&g->curves[g->curve_of[task]], seat.width);
}

/* Two threads on one core slow each other down whatever they run: what strategy 4 put on siblings, or beside one that
 * still runs at its end, would be kept apart on cores, too, from the next execution on. Eight small operations run on
 * siblings of one that has all cores, whose kind another one has beside which the ninth small one runs on a core. */
static void strategy_4_learns_nothing_of_siblings(void **state)
{
    enum { OWNER, SMALLS = 8, PARTNER, WAIT, LAST, TASKS };
    struct dag *g = dag_plain(TASKS, 0);
    g->curves[WIDE] = (struct cost_curve){.samples = 1, .width = {8}, .ns = {125000}, .best = 8};
    g->curves[SMALL] = g->curves[NARROW] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {20000}, .best = 1};
    g->curves[SHORT] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {15000}, .best = 1};
    for (int t = 0; t < TASKS; t++)
        dag_set_class(g, t, t == OWNER ? WIDE : t == PARTNER ? NARROW : t == WAIT ? SHORT : SMALL);
    g->kind[PARTNER] = g->kind[OWNER];
    g->inputs[PARTNER][g->inputs_count[PARTNER]++] = g->inputs[WAIT][g->inputs_count[WAIT]++] = OWNER;
    g->inputs[LAST][g->inputs_count[LAST]++] = WAIT;
    dag_finish(g);
    graphi_machine machine = dag_machine(8, 8);
    graphi_setting setting = {
        .policy = GRAPHI_POLICY_S1234, .executors = 8, .width = 1, .inlining = GRAPHI_OFF,
        .parameters = {{"tolerance", 64}}};
    struct task_record records[TASKS];
    struct schedule *schedule;
    struct simulation s;
    for (int outlast = 0; outlast < 2; outlast++) {
        static const char *const kinds[] = {"wide", "small", "", "short", "", ""};
        struct text learned = {0};
        assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
        for (int execution = 0; execution < 3; execution++) {
            schedule_simulate(schedule, outlast ? small_ones_outlast : NULL, g, records, &s);
            for (int t = 1; t <= SMALLS; t++)
                assert_true(records[t].leader >= 8 && dag_overlap(&records[t], &records[OWNER]));
            assert_true(records[PARTNER].leader < 8 && records[LAST].leader < 8);
            assert_true(outlast || dag_overlap(&records[PARTNER], &records[LAST]));
        }
        schedule->policy->learned(schedule, kinds, &learned);
        assert_true(!learned.data || !strstr(learned.data, outlast ? "beside" : "kept apart"));
        text_free(&learned);
        schedule_destroy(schedule);
    }
    free(machine.core);
    dag_free(g);
}

/* On a sibling of a core whose owner ends sooner an operation would go on there for nothing, at half of the speed. It
 * becomes ready while the owner has all cores, by a short one that is for a sibling. */
static void strategy_4_puts_nothing_on_siblings_that_outlasts(void **state)
{
    enum { OWNER, BRIEF, LAST, TASKS };
    for (int outlasts = 0; outlasts < 2; outlasts++) {
        struct dag *g = dag_plain(TASKS, 0);
        g->curves[OWNER] = (struct cost_curve){.samples = 1, .width = {8}, .ns = {100000}, .best = 8};
        g->curves[BRIEF] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {5000}, .best = 1};
        g->curves[LAST] = g->curves[BRIEF];
        g->curves[LAST].ns[0] = outlasts ? 200000 : 20000;
        for (int t = 0; t < TASKS; t++)
            dag_set_class(g, t, t);
        g->inputs[LAST][g->inputs_count[LAST]++] = BRIEF;
        dag_finish(g);
        graphi_machine machine = dag_machine(8, 8);
        graphi_setting setting = {.policy = GRAPHI_POLICY_S1234, .executors = 8, .width = 1, .inlining = GRAPHI_OFF};
        struct task_record records[TASKS];
        struct schedule *schedule;
        struct simulation s;
        assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
        schedule_simulate(schedule, NULL, NULL, records, &s);
        assert_true(records[BRIEF].leader >= 8 && dag_overlap(&records[BRIEF], &records[OWNER]));
        assert_int_equal(records[LAST].leader >= 8, !outlasts);
        assert_int_equal(dag_overlap(&records[LAST], &records[OWNER]), !outlasts);
        schedule_destroy(schedule);
        free(machine.core);
        dag_free(g);
    }
}

/* Operations that slow each other down would be kept apart although one has long to go: waiting for it takes longer
 * than running beside it. */
static void strategy_3_keeps_apart_only_where_waiting_ends_sooner(void **state)
{
    enum { LONG, SHORTS = 5, TASKS };
    struct dag *g = dag_plain(TASKS, 0);
    for (int i = 0; i < DAG_CURVES; i++)
        g->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {i ? 30000 : 400000}, .best = 1};
    for (int t = 0; t < TASKS; t++)
        dag_set_class(g, t, t != LONG);
    dag_finish(g);
    graphi_machine machine = dag_machine(2, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 2, .width = 1};
    static const char *const kinds[] = {"long", "short", "", "", "", ""};
    struct task_record records[TASKS];
    struct text learned = {0};
    struct schedule *schedule;
    struct simulation s;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    for (int execution = 0; execution < 4; execution++) {
        schedule_simulate(schedule, co_running_is_slow, g, records, &s);
        for (int t = LONG + 1; t < TASKS; t++)
            assert_true(dag_overlap(&records[t], &records[LONG]));
    }
    schedule->policy->learned(schedule, kinds, &learned);
    assert_non_null(strstr(learned.data, "long beside short"));
    assert_non_null(strstr(learned.data, "kept apart"));
    text_free(&learned);
    schedule_destroy(schedule);
    free(machine.core);
    dag_free(g);
}

static double all_is_slow(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    const struct dag *g = context;
    return 1.25 * curve_ns(&g->curves[g->curve_of[task]], seat.width);
}

/* Without it a machine that is slow for a while would be taken for operations that slow each other down, which then
 * never ran side by side again, so that nothing showed the mistake. */
static void strategy_3_forgives_a_slow_machine(void **state)
{
    struct dag *g = dag_plain(20, 0);
    for (int i = 0; i < DAG_CURVES; i++)
        g->curves[i] = (struct cost_curve){.samples = 2, .width = {1, 2}, .ns = {50000, 28000}, .best = 2};
    dag_finish(g);
    graphi_machine machine = dag_machine(2, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 2, .width = 1};
    struct schedule *schedule;
    struct simulation first, second, last;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    schedule_simulate(schedule, all_is_slow, g, NULL, &first);
    schedule_simulate(schedule, all_is_slow, g, NULL, &second);
    schedule_simulate(schedule, all_is_slow, g, NULL, &last);
    assert_true(second.mean_corunning < first.mean_corunning); /* taken for interference, */
    assert_true(last.mean_corunning == first.mean_corunning);  /* until an operation alone is as slow */
    schedule_destroy(schedule);
    free(machine.core);
    dag_free(g);
}

static double speed = 1;

static double as_slow_as_told(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    const struct dag *g = context;
    return speed * curve_ns(&g->curves[g->curve_of[task]], seat.width);
}

/* Without it averages of operations side by side would follow a machine that becomes slow sooner than those of
 * operations alone, and what ran side by side would be kept apart until the slower average has come after. */
static void strategy_3_is_not_misled_as_a_machine_becomes_slow(void **state)
{
    struct dag *g = dag_plain(21, 0); /* ten pairs and one alone */
    for (int i = 0; i < DAG_CURVES; i++)
        g->curves[i] = (struct cost_curve){.samples = 2, .width = {1, 2}, .ns = {50000, 28000}, .best = 2};
    dag_finish(g);
    graphi_machine machine = dag_machine(2, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 2, .width = 1};
    struct schedule *schedule;
    struct simulation first, later;
    assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    schedule_simulate(schedule, as_slow_as_told, g, NULL, &first);
    for (int i = 0; i < 12; i++) {
        speed = i < 3 ? 1 : 2.5;
        schedule_simulate(schedule, as_slow_as_told, g, NULL, &later);
        assert_true(later.mean_corunning == first.mean_corunning);
    }
    speed = 1;
    schedule_destroy(schedule);
    free(machine.core);
    dag_free(g);
}

static void send_nowhere(struct schedule *s, int slot, struct assignment assignment)
{
    (void)s, (void)slot, (void)assignment;
}

/* All that runs has ended; `ran` 0: a failure elsewhere came first. */
static void complete_all(struct schedule *s, int ran, int64_t end_ns)
{
    while (s->formed.count) {
        int slot = s->formed.leaders[0], at = s->formed.teams[slot].task;
        struct completion done = {.task = at, .first = -1, .ran = ran, .end_ns = end_ns};
        if (ran && at + 2 < s->tasks->count)
            done.first = done.last = at + 2;
        step_complete(s, slot, &done);
    }
}

/* An execution that fails would teach that operations which never began took less than no time. */
static void strategy_3_learns_nothing_of_what_never_ran(void **state)
{
    static const char *const kinds[] = {"a", "b", "c", "d", "e", "f"};
    struct dag *g = dag_plain(4, 2);
    g->curves[0] = (struct cost_curve){.samples = 2, .width = {1, 2}, .ns = {50000, 40000}, .best = 1};
    dag_finish(g);
    graphi_machine machine = dag_machine(2, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 2, .width = 1};
    struct text learned[2] = {{0}};
    for (int fails = 0; fails < 2; fails++) {
        struct schedule *s;
        assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &s), GRAPHI_OK);
        s->send = send_nowhere;
        step_reset(s);
        step_roots(s);
        step_dispatch(s);
        assert_int_equal(s->formed.count, 2);
        complete_all(s, 1, 100000);
        for (int wave = 0; wave < fails; wave++) {
            step_dispatch(s);
            assert_int_equal(s->formed.count, 2);
            complete_all(s, 0, 0);
        }
        step_reset(s);
        s->policy->learned(s, kinds, &learned[fails]);
        schedule_destroy(s);
    }
    assert_non_null(strstr(learned[0].data, "a beside a: 2.00 times as long as predicted"));
    assert_non_null(learned[1].data);
    assert_string_equal(learned[1].data, learned[0].data);
    for (int fails = 0; fails < 2; fails++)
        text_free(&learned[fails]);
    free(machine.core);
    dag_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategy_3_learns_interference),
        cmocka_unit_test(strategy_3_remembers_beside_whom_it_decided),
        cmocka_unit_test(strategy_3_forgets_interference),
        cmocka_unit_test(strategy_4_learns_nothing_of_siblings),
        cmocka_unit_test(strategy_4_puts_nothing_on_siblings_that_outlasts),
        cmocka_unit_test(strategy_3_keeps_apart_only_where_waiting_ends_sooner),
        cmocka_unit_test(strategy_3_forgives_a_slow_machine),
        cmocka_unit_test(strategy_3_is_not_misled_as_a_machine_becomes_slow),
        cmocka_unit_test(strategy_3_learns_nothing_of_what_never_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
