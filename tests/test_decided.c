/* SPDX-License-Identifier: Apache-2.0 */
/* From what is asked for to what is decided: choices, the way back, and what executions read (schedule/decided.h). */
#include "engine/choose/planning.h"
#include "graphi/models.h"
#include "machine/machine.h"
#include "schedule/setting_canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

static graphi_graph *graph;
static graphi_machine *eight;

static int open_all(void **state)
{
    check_ok(machine_from_synthetic("pack:1 core:8 pu:2", 0, 0, &eight));
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.task = "bench", .size = "small"}, &graph));
    return 0;
}

static int close_all(void **state)
{
    graphi_graph_destroy(graph);
    graphi_machine_destroy(eight);
    return 0;
}

static graphi_plan *under(graphi_setting setting)
{
    graphi_plan *plan;
    check_ok(graphi_plan_create(graph, eight, &(graphi_plan_options){.setting = setting}, &plan));
    return plan;
}

/* A word that is none of the three would be taken for one of them. */
static void choices_are_three(void **state)
{
    const graphi_choice none[] = {(graphi_choice)-2, (graphi_choice)2};
    for (int i = 0; i < 2; i++) {
        const graphi_setting refused[] = {
            {.inlining = none[i]}, {.light = none[i]}, {.join = none[i]}, {.pin = none[i]}, {.uniform = none[i]}};
        const char *const named[] = {"inlining", "light", "join", "pin", "uniform"};
        for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
            graphi_plan *plan = NULL;
            const graphi_plan_options options = {.setting = refused[k]};
            assert_int_equal(graphi_plan_create(graph, eight, &options, &plan), GRAPHI_USAGE);
            assert_null(plan);
            assert_non_null(strstr(graphi_message(), named[k]));
        }
    }
}

/* Each choice in the field of the decision that it is of. */
static void choices_are_decided(void **state)
{
    static const struct {
        graphi_choice choice;
        bool inlines, light, joins, join_off, pinned, must_pin;
    } rows[] = {{GRAPHI_DEFAULT, true, false, false, false, true, false},
                {GRAPHI_ON, true, true, true, false, true, true},
                {GRAPHI_OFF, false, false, false, true, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const graphi_choice c = rows[i].choice;
        graphi_plan *plan = under((graphi_setting){.driver = GRAPHI_DRIVER_COMBINING,
                                                   .executors = 4,
                                                   .width = 1,
                                                   .inlining = c,
                                                   .light = c,
                                                   .join = c,
                                                   .pin = c});
        const graphi_decision *d = &plan->setting;
        assert_int_equal(d->inlines, rows[i].inlines);
        assert_int_equal(d->light, rows[i].light);
        assert_int_equal(d->joins, rows[i].joins);
        assert_int_equal(d->join_off, rows[i].join_off);
        assert_int_equal(d->pinned, rows[i].pinned);
        assert_int_equal(d->must_pin, rows[i].must_pin);
        graphi_plan_destroy(plan);
    }
}

/* A plan made from the decision of another would be of another setting. */
static void a_decision_asked_for_is_the_same(void **state)
{
    static const graphi_setting asked[] = {
        {0},
        {.executors = 4, .width = 2, .inlining = GRAPHI_OFF, .pin = GRAPHI_OFF, .join = GRAPHI_OFF},
        {.executors = 4, .width = 1, .join = GRAPHI_ON, .light = GRAPHI_ON, .pin = GRAPHI_ON, .depth = 3},
        {.executors = 4, .width = 2, .driver = GRAPHI_DRIVER_DEDICATED, .backward_executors = 2},
        {.policy = GRAPHI_POLICY_S123, .executors = 8, .width = 1, .parameters = {{"candidates", 2}}},
        {.policy = GRAPHI_POLICY_S12, .executors = 4, .width = 2, .uniform = GRAPHI_ON},
        {.policy = GRAPHI_POLICY_RANDOM, .parameters = {{"seed", 5}}}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        graphi_plan *plan = under(asked[i]), *again;
        const graphi_setting own = graphi_decision_setting(&plan->setting);
        check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &own}, &again));
        const graphi_setting back = graphi_decision_setting(&again->setting);
        assert_int_equal(setting_hash(0, &own), setting_hash(0, &back));
        assert_int_equal(plan->setting.policy, again->setting.policy);
        assert_int_equal(plan->setting.executors, again->setting.executors);
        assert_int_equal(plan->setting.width, again->setting.width);
        assert_int_equal(plan->setting.uniform, again->setting.uniform);
        assert_int_equal(plan->setting.must_pin, again->setting.must_pin);
        assert_int_equal(plan->setting.join_off, again->setting.join_off);
        assert_memory_equal(plan->setting.parameters, again->setting.parameters, sizeof plan->setting.parameters);
        graphi_plan_destroy(again);
        graphi_plan_destroy(plan);
    }
}

/* What a lease is asked for, on eight cores of two hardware threads. */
static void leases_are_decided_with_the_plan(void **state)
{
    static const struct {
        graphi_setting asked;
        struct lease_options lease;
        int workers, siblings;
    } rows[] = {
        {{.executors = 4, .width = 2}, {.workers = 8, .groups = 4, .width = 2, .pin = true}, 8, 0},
        {{.executors = 3, .width = 2, .light = GRAPHI_ON}, {.workers = 7, .groups = 3, .width = 2, .pin = true}, 7, 0},
        {{.executors = 2, .width = 2, .driver = GRAPHI_DRIVER_DEDICATED, .pin = GRAPHI_OFF},
         {.workers = 4, .groups = 2, .width = 2, .caller_extra = true}, 4, 0},
        {{.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 8}, {.workers = 8, .pin = true}, 8, 0},
        {{.policy = GRAPHI_POLICY_S123, .executors = 8, .width = 1}, {.workers = 8, .pin = true}, 8, 0},
        {{.policy = GRAPHI_POLICY_S1234, .executors = 8, .width = 1, .uniform = GRAPHI_OFF},
         {.workers = 16, .siblings = true, .pin = true}, 8, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        graphi_plan *plan = under(rows[i].asked);
        const struct decided *d = &plan->decided;
        const struct lease_options *l = &d->lease, *e = &rows[i].lease;
        assert_ptr_equal(d->machine, eight);
        assert_int_equal(d->workers, rows[i].workers);
        assert_int_equal(d->siblings, rows[i].siblings);
        assert_int_equal(l->workers, e->workers);
        assert_int_equal(l->groups, e->groups);
        assert_int_equal(l->width, e->width);
        assert_int_equal(l->siblings, e->siblings);
        assert_int_equal(l->caller_extra, e->caller_extra);
        assert_int_equal(l->pin, e->pin);
        graphi_plan_destroy(plan);
    }
}

/* `on` asks for teams of one width; `off` for none, though they are weighed where keep-uniform asks for it. */
static void uniform_teams_are_a_request(void **state)
{
    for (int choice = GRAPHI_OFF; choice <= GRAPHI_ON; choice++) {
        graphi_plan *plan = under((graphi_setting){.policy = GRAPHI_POLICY_S12,
                                                   .executors = 8,
                                                   .width = 1,
                                                   .uniform = (graphi_choice)choice,
                                                   .parameters = {{"keep-uniform", 1}}});
        const bool weighed = strstr(plan->why.data, "widths of its own predicted") != NULL;
        assert_int_equal(weighed, choice == GRAPHI_DEFAULT);
        assert_true(plan->setting.uniform == (choice == GRAPHI_ON) || choice == GRAPHI_DEFAULT);
        assert_int_equal(plan->setting.policy, GRAPHI_POLICY_S12);
        graphi_plan_destroy(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_three),
        cmocka_unit_test(choices_are_decided),
        cmocka_unit_test(a_decision_asked_for_is_the_same),
        cmocka_unit_test(leases_are_decided_with_the_plan),
        cmocka_unit_test(uniform_teams_are_a_request),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
