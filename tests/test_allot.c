/* SPDX-License-Identifier: Apache-2.0 */
/* Widths found by search (engine/choose/allot.c), in virtual time and on the workers at hand. */
#include "schedule/decided.h"
#include "engine/choose/allotment.h"
#include "engine/choose/planning.h"
#include "graphi/models.h"
#include "graphi/simulate.h"
#include "machine/machine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dag.h"
#include "fixture.h"
#include "simulated.h"

static graphi_plan *plan_for(const char *network)
{
    graphi_graph *g;
    graphi_plan *plan;
    check_ok(graphi_model_create(network, &(graphi_model_options){.size = "small"}, &g));
    graphi_plan_options options = {
        .setting = {.policy = GRAPHI_POLICY_MALLEABLE, .executors = phi->cores, .width = 1, .light = GRAPHI_OFF},
        .arena_target = INT64_MAX / 4};
    check_ok(graphi_plan_create(g, phi, &options, &plan));
    graphi_graph_destroy(g);
    return plan;
}

/* Without it the search could keep widths that are no better than what the policy decides by itself, predict another
 * time than the simulation gives, or state a bound that a schedule breaks. */
static void searched_widths_are_shorter_and_above_both_bounds(void **state)
{
    static const char *const networks[] = {"lstm", "pathnet", "dcgan"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        graphi_plan *plan = plan_for(networks[i]);
        struct simulation with, without;
        assert_non_null(plan->allotment);
        check_ok(plan_simulate(plan, NULL, &with));
        plan->tasks.allotment = NULL;
        check_ok(plan_simulate(plan, NULL, &without));
        assert_true(with.makespan_ns < without.makespan_ns);
        assert_true(with.makespan_ns == plan->predicted_ns);
        assert_true(plan->widths_bound_ns >= plan->lower_bound_ns);
        assert_true(with.makespan_ns >= plan->widths_bound_ns);
        graphi_plan_destroy(plan);
    }
}

/* A search that depends on the clock or on addresses would give another plan each time. */
static void the_search_repeats(void **state)
{
    graphi_plan *a = plan_for("pathnet"), *b = plan_for("pathnet");
    for (int32_t t = 0; t < a->compiled->tasks; t++) {
        assert_int_equal(a->allotment->width[t], b->allotment->width[t]);
        assert_true(a->allotment->key[t] == b->allotment->key[t]);
        assert_in_range(a->allotment->width[t], 1, phi->cores);
    }
    graphi_plan_destroy(a);
    graphi_plan_destroy(b);
}

static int by_start(const void *a, const void *b)
{
    const struct task_record *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Measuring would time teams that curves prefer, or operations beside each other, in place of those that it wants. */
static void given_widths_are_those_that_run(void **state)
{
    static const uint16_t widths[] = {1, 4, 20};
    graphi_plan *plan = plan_for("pathnet"), *given;
    const size_t tasks = (size_t)plan->compiled->tasks;
    for (int spread = 0; spread < 2; spread++) {
        struct allotment *allotment = allotment_create(tasks, 1);
        struct task_record *records = calloc(tasks, sizeof *records);
        struct simulation simulation;
        graphi_setting setting = graphi_decision_setting(&plan->setting);
        setting.inlining = GRAPHI_OFF;
        allotment->alone = true;
        allotment->spread = spread;
        for (size_t t = 0; t < tasks; t++) {
            allotment->width[t] = widths[t % 3];
            allotment->key[t] = plan->level[t];
        }
        const struct plan_parts parts = {.machine = phi, .setting = &setting, .allotment = allotment};
        check_ok(plan_make(plan->compiled, &parts, &given));
        assert_ptr_equal(given->allotment, allotment);
        check_ok(plan_simulate(given, records, &simulation));
        assert_true(given->predicted_ns == simulation.makespan_ns);
        for (size_t t = 0; t < tasks; t++) {
            assert_int_equal(records[t].width, widths[t % 3]);
            assert_true(records[t].width == 1 || records[t].spread == spread);
        }
        qsort(records, tasks, sizeof *records, by_start);
        for (size_t i = 1; i < tasks; i++)
            assert_true(records[i].start_ns >= records[i - 1].end_ns - 1);
        free(records);
        graphi_plan_destroy(given);
    }
    graphi_plan_destroy(plan);
}

/* The rules for workers that are too few or too many could leave a task behind, or start one twice: every combination
 * runs all tasks, each after its predecessors. */
static void every_rule_runs_every_task_once(void **state)
{
    graphi_plan *plan = plan_for("dcgan");
    struct task_record *records = calloc((size_t)plan->compiled->tasks, sizeof *records);
    for (int rules = 0; rules < 12; rules++) {
        struct simulation simulation;
        plan->allotment->in_order = false;
        plan->allotment->fill = (enum fill)(rules / 4);
        plan->allotment->narrower = rules & 1;
        plan->allotment->wider = rules & 2;
        for (int32_t t = 0; t < plan->compiled->tasks; t++)
            records[t].end_ns = -1;
        check_ok(plan_simulate(plan, records, &simulation));
        for (int32_t t = 0; t < plan->compiled->tasks; t++) {
            assert_true(records[t].end_ns >= 0);
            for (int32_t e = plan->compiled->edges_begin[t]; e < plan->compiled->edges_begin[t + 1]; e++)
                assert_true(records[plan->compiled->edges[e]].start_ns >= records[t].end_ns - 1);
        }
    }
    free(records);
    graphi_plan_destroy(plan);
}

/* What happens while the workers are too few: A, B and C have three of four until 10, 20 and 30 us, D wants three, E
 * one. D waits for B's end, or takes the one that is idle if it ends no later then than at its width; E gets that one
 * if it may start before D, of gaps only if it ends before B. A rule that sees another end would waste workers, or D's
 * time. */
static void rules_look_at_what_ends_when(void **state)
{
    static const struct {
        double alone_ns, last_ns; /* D on one worker, 5 us on three; E */
        bool narrower;
        enum fill fill;
        int64_t start, last; /* of D and of E, -1: after D */
        int width;
    } cases[] = {{24000, 90000, true, FILL_NONE, 0, -1, 1},       {26000, 90000, true, FILL_NONE, 20000, -1, 3},
                 {24000, 90000, false, FILL_NONE, 20000, -1, 3},  {90000, 15000, false, FILL_NONE, 20000, -1, 3},
                 {90000, 15000, false, FILL_GAPS, 20000, 0, 3},   {90000, 25000, false, FILL_GAPS, 20000, -1, 3},
                 {90000, 25000, false, FILL_ANY, 25000, 0, 3}};
    enum { A, B, C, D, E, TASKS };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double ns[TASKS] = {10000, 20000, 30000, cases[i].alone_ns, cases[i].last_ns};
        uint16_t width[TASKS] = {1, 1, 1, 3, 1};
        int64_t key[TASKS] = {5, 4, 3, 2, 1};
        struct allotment allotment = {
            .width = width, .key = key, .fill = cases[i].fill, .narrower = cases[i].narrower};
        struct dag *g = dag_plain(TASKS, 0);
        struct task_record records[TASKS];
        struct schedule *schedule;
        struct simulation simulation;
        for (int t = 0; t < TASKS; t++) {
            g->curves[t] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {ns[t]}, .best = 1};
            dag_set_class(g, t, t);
        }
        g->curves[D] = (struct cost_curve){.samples = 2, .width = {1, 3}, .ns = {ns[D], 5000}, .best = 3};
        dag_finish(g);
        g->tasks.allotment = &allotment;
        graphi_machine four = dag_machine(4, 0);
        const graphi_setting setting = {
            .policy = GRAPHI_POLICY_MALLEABLE, .executors = 4, .width = 1, .light = GRAPHI_OFF, .inlining = GRAPHI_OFF};
        check_ok(schedule_create(&g->tasks, setting_decide(&setting, &four), &schedule));
        check_ok(schedule_simulate(schedule, NULL, NULL, records, &simulation));
        assert_int_equal(records[D].width, cases[i].width);
        assert_in_range(records[D].start_ns, cases[i].start, cases[i].start + 10);
        assert_true(cases[i].last < 0 ? records[E].start_ns > records[D].start_ns : records[E].start_ns <= 10);
        schedule_destroy(schedule);
        free(four.core);
        dag_free(g);
    }
}

/* Alone with the worker that A leaves, B would take four times as long as on all of them, which A gives back soon. C,
 * which B needs, is there so that B comes while A runs. */
static void lone_tasks_wait_for_workers_that_end_soon(void **state)
{
    enum { A, C, B, TASKS };
    struct dag *g = dag_plain(TASKS, 0);
    struct task_record records[TASKS];
    struct schedule *schedule;
    struct simulation simulation;
    g->curves[A] = (struct cost_curve){.samples = 2, .width = {1, 3}, .ns = {30000, 10000}, .best = 3};
    g->curves[C] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {1000}, .best = 1};
    g->curves[B] = (struct cost_curve){.samples = 2, .width = {1, 4}, .ns = {100000, 25000}, .best = 4};
    for (int t = 0; t < TASKS; t++)
        dag_set_class(g, t, t);
    g->inputs[B][g->inputs_count[B]++] = C;
    dag_finish(g);
    graphi_machine four = dag_machine(4, 0);
    const graphi_setting setting = {
        .policy = GRAPHI_POLICY_MALLEABLE, .executors = 4, .width = 1, .light = GRAPHI_OFF, .inlining = GRAPHI_OFF};
    check_ok(schedule_create(&g->tasks, setting_decide(&setting, &four), &schedule));
    check_ok(schedule_simulate(schedule, NULL, NULL, records, &simulation));
    assert_true(records[A].width == 3 && records[A].start_ns < records[C].end_ns);
    assert_true(records[B].width == 4 && records[B].start_ns >= records[A].end_ns);
    schedule_destroy(schedule);
    free(four.core);
    dag_free(g);
}

/* A task overtakes another although the order was found before the run, or the order leaves one behind: with keys that
 * count down along the array all tasks that are not tiny start in its order. */
static void tasks_start_in_the_order_found(void **state)
{
    graphi_plan *plan = plan_for("dcgan");
    int32_t tasks = plan->compiled->tasks, last = -1;
    struct task_record *records = calloc((size_t)tasks, sizeof *records);
    struct simulation simulation;
    int64_t key = 0;
    for (int32_t t = tasks - 1; t >= 0; t--)
        plan->allotment->key[t] = plan->tasks.flags[t] & TASK_INLINE ? INT64_MAX : ++key;
    plan->allotment->in_order = true;
    for (int twice = 0; twice < 2; twice++, last = -1) {
        check_ok(plan_simulate(plan, records, &simulation));
        for (int32_t t = 0; t < tasks; t++) {
            assert_true(records[t].end_ns > 0);
            if (plan->tasks.flags[t] & TASK_INLINE)
                continue;
            assert_true(last < 0 || records[t].start_ns >= records[last].start_ns - 1000); /* messages of one step */
            last = t;
        }
    }
    free(records);
    graphi_plan_destroy(plan);
}

/* Other searches could be given widths that no machine has, or makespans below the bound that holds for widths. */
static void given_widths_obey_the_bound_and_are_checked(void **state)
{
    enum { MOST = 512 };
    graphi_plan *plan = plan_for("dcgan");
    graphi_simulator *simulator;
    int width[MOST];
    double priority[MOST] = {0}, before = 0, ms;
    assert_in_range(plan->compiled->curves, 1, MOST);
    check_ok(graphi_simulator_create(plan, NULL, &simulator));
    for (int round = 0; round < 2; round++)
        for (int w = 1; w <= phi->cores; w *= 2) {
            for (int c = 0; c < MOST; c++)
                width[c] = w;
            check_ok(graphi_simulator_run(simulator, width, priority, 7, &ms));
            assert_true(ms * 1e6 >= plan->widths_bound_ns);
            assert_true(w > 1 || !round || ms == before);
            before = w == 1 ? ms : before;
        }
    assert_int_equal(graphi_simulator_run(simulator, width, priority, 12, &ms), GRAPHI_USAGE);
    width[0] = phi->cores + 1;
    assert_int_equal(graphi_simulator_run(simulator, width, priority, 0, &ms), GRAPHI_USAGE);
    graphi_simulator_destroy(simulator);
    graphi_plan_destroy(plan);
}

/* Lists of a static driver, the default where operations are short, would be those of the first widths for good. */
static void given_widths_are_each_heeded(void **state)
{
    enum { MOST = 64 };
    graphi_machine *four;
    graphi_graph *g;
    graphi_plan *plan;
    graphi_simulator *simulator;
    int width[MOST];
    double priority[MOST] = {0}, ms[2][2];
    check_ok(graphi_machine_load("machines/e5-2650v4-x2.json", 4, &four));
    check_ok(graphi_graph_create(&g));
    const graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){64, 64});
    graphi_value y = x;
    for (int i = 0; i < 10; i++)
        y = graphi_matmul(g, graphi_matmul(g, x, y, 0, 0), y, 0, 0);
    graphi_output(g, "y", y);
    check_ok(graphi_plan_create(g, four, NULL, &plan));
    assert_in_range(plan->compiled->curves, 1, MOST);
    for (int round = 0; round < 2; round++) {
        check_ok(graphi_simulator_create(plan, NULL, &simulator));
        for (int i = 0; i < 2; i++) {
            const int w = i == round ? 1 : 2;
            for (int c = 0; c < MOST; c++)
                width[c] = w;
            check_ok(graphi_simulator_run(simulator, width, priority, 5, &ms[round][w - 1]));
        }
        graphi_simulator_destroy(simulator);
    }
    assert_true(ms[0][0] != ms[0][1]);
    assert_memory_equal(ms[0], ms[1], sizeof ms[0]);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    graphi_machine_destroy(four);
}

/* A static driver would search in vain, since it repeats what it decided for the first widths. */
static void a_static_driver_has_the_widths_searched(void **state)
{
    graphi_plan *plan = plan_for("lstm"), *changed[2];
    struct simulation simulation;
    for (int i = 0; i < 2; i++) {
        graphi_setting setting = graphi_decision_setting(&plan->setting);
        setting.driver = i ? GRAPHI_DRIVER_STATIC : GRAPHI_DRIVER_COMBINING;
        check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting}, &changed[i]));
        assert_int_equal(changed[i]->setting.driver, setting.driver);
        assert_non_null(changed[i]->allotment);
        check_ok(plan_simulate(changed[i], NULL, &simulation));
        assert_true(changed[i]->predicted_ns == simulation.makespan_ns);
    }
    for (int32_t t = 0; t < plan->compiled->tasks; t++)
        assert_int_equal(changed[1]->allotment->width[t], changed[0]->allotment->width[t]);
    graphi_plan_destroy(changed[0]);
    graphi_plan_destroy(changed[1]);
    graphi_plan_destroy(plan);
}

/* The search of single tasks could miss what moving whole classes finds: one width and one priority for each class,
 * drawn at random as often as the search simulates the graph, must not be shorter. */
static void random_classes_are_not_shorter(void **state)
{
    enum { MOST = 64 };
    graphi_plan *plan = plan_for("lstm");
    graphi_simulator *simulator;
    int width[MOST], classes = plan->compiled->curves;
    double priority[MOST], ms, best = INFINITY;
    uint64_t draw = 17;
    assert_in_range(classes, 1, MOST);
    check_ok(graphi_simulator_create(plan, NULL, &simulator));
    for (int64_t left = plan->searched; left > 0; left -= plan->compiled->tasks) {
        for (int c = 0; c < classes; c++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            width[c] = (int)exp2((double)(draw >> 40) / (1 << 24) * log2(phi->cores));
            priority[c] = ((double)(draw >> 20 & 1023) / 1024 - 0.5) / 4 * plan->predicted_ns / 1e6;
        }
        check_ok(graphi_simulator_run(simulator, width, priority, (int)((draw >> 33) % 12), &ms));
        best = ms < best ? ms : best;
    }
    assert_true(plan->predicted_ns <= 1e6 * best);
    graphi_simulator_destroy(simulator);
    graphi_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searched_widths_are_shorter_and_above_both_bounds),
        cmocka_unit_test(the_search_repeats),
        cmocka_unit_test(given_widths_are_those_that_run),
        cmocka_unit_test(given_widths_obey_the_bound_and_are_checked),
        cmocka_unit_test(given_widths_are_each_heeded),
        cmocka_unit_test(a_static_driver_has_the_widths_searched),
        cmocka_unit_test(random_classes_are_not_shorter),
        cmocka_unit_test(every_rule_runs_every_task_once),
        cmocka_unit_test(rules_look_at_what_ends_when),
        cmocka_unit_test(lone_tasks_wait_for_workers_that_end_soon),
        cmocka_unit_test(tasks_start_in_the_order_found),
    };
    return cmocka_run_group_tests(tests, open_phi, close_machines);
}
