/* SPDX-License-Identifier: Apache-2.0 */
/* Plans made of others (engine/choose/change.c). */
#include "base/file.h"
#include "base/memory.h"
#include "engine/compile/plan.h"
#include "graphi/ops.h"
#include "graphi/simulate.h"
#include "machine/machine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

static graphi_graph *pathnet(void)
{
    graphi_graph *g;
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.task = "bench", .size = "small", .batch = 2}, &g));
    return g;
}

/* What a model says of each class of a plan: widths are worth it. */
static graphi_curves *curves_on_phi(const graphi_plan *plan)
{
    const graphi_climb climb = {.samples = 2, .width = {1, 4}, .compact_ns = {9e6, 1e6}};
    graphi_curves *curves;
    graphi_class class;
    check_ok(graphi_curves_open(phi, NULL, &curves));
    for (int k = 0; graphi_plan_class_at(plan, k, &class); k++)
        check_ok(graphi_curves_add(curves, class.key, "model", &climb));
    return curves;
}

/* Where nothing changes another plan would be raced, or stored as another. */
static void no_change_is_the_same_plan(void **state)
{
    graphi_graph *g = pathnet();
    graphi_plan *plan, *copy, *empty;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_plan_with(plan, NULL, &copy));
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.machine = machine}, &empty));
    graphi_plan_info a, b, c;
    graphi_plan_get_info(plan, &a);
    graphi_plan_get_info(copy, &b);
    graphi_plan_get_info(empty, &c);
    assert_true(a.hash == b.hash && a.hash == c.hash);
    graphi_plan_destroy(empty);
    graphi_plan_destroy(copy);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Of what is changed at once one would be forgotten, or curves be taken for those of the machine that is left. */
static void a_plan_is_changed_at_once(void **state)
{
    graphi_graph *g = pathnet();
    graphi_plan *here, *there, *known, *both = NULL;
    check_ok(graphi_plan_create(g, machine, NULL, &here));
    graphi_curves *curves = curves_on_phi(here);
    const graphi_setting setting = {.policy = GRAPHI_POLICY_S1, .executors = 68, .width = 1, .light = GRAPHI_OFF};
    const graphi_plan_change move = {.machine = phi},
                             change = {.setting = &setting, .curves = curves, .model = "model"},
                             all = {.setting = &setting, .machine = phi, .curves = curves, .model = "model"},
                             nothing_known = {.model = "model"};
    assert_int_equal(graphi_plan_with(here, &change, &both), GRAPHI_REFUSED);
    assert_int_equal(graphi_plan_with(here, &nothing_known, &both), GRAPHI_INVALID);
    assert_null(both);
    check_ok(graphi_plan_with(here, &move, &there));
    check_ok(graphi_plan_with(there, &change, &known));
    check_ok(graphi_plan_with(here, &all, &both));
    graphi_simulation one, other;
    check_ok(graphi_plan_simulate(known, NULL, &one));
    check_ok(graphi_plan_simulate(both, NULL, &other));
    assert_true(one.decisions == other.decisions && one.makespan_ms == other.makespan_ms);
    assert_int_equal(other.setting.policy, GRAPHI_POLICY_S1);
    assert_non_null(strstr(both->why.data, "classes are those of model, from memory"));
    graphi_plan_destroy(both);
    graphi_plan_destroy(known);
    graphi_plan_destroy(there);
    graphi_plan_destroy(here);
    graphi_curves_close(curves);
    graphi_graph_destroy(g);
}

/* A setting, a machine and the plan whose times count are each forgotten where another is given. */
static void simulations_take_all_options(void **state)
{
    graphi_graph *g = pathnet();
    graphi_plan *here, *there, *truth;
    check_ok(graphi_plan_create(g, machine, NULL, &here));
    graphi_curves *curves = curves_on_phi(here);
    const graphi_setting setting = {.policy = GRAPHI_POLICY_FIFO, .executors = 17, .width = 4, .light = GRAPHI_OFF};
    check_ok(graphi_plan_with(here, &(graphi_plan_change){.setting = &setting, .machine = phi}, &there));
    check_ok(graphi_plan_with(there, &(graphi_plan_change){.curves = curves, .model = "model"}, &truth));
    const graphi_simulate_options own = {.truth = truth},
                                  all = {.setting = &setting, .machine = phi, .truth = truth};
    graphi_simulation one, other, untouched = {.operations = -1};
    check_ok(graphi_plan_simulate(there, &own, &one));
    check_ok(graphi_plan_simulate(here, &all, &other));
    assert_true(one.decisions == other.decisions && one.makespan_ms == other.makespan_ms);
    assert_int_equal(graphi_plan_simulate(here, &own, &untouched), GRAPHI_INVALID);
    assert_int_equal(untouched.operations, -1);
    graphi_plan_destroy(truth);
    graphi_plan_destroy(there);
    graphi_plan_destroy(here);
    graphi_curves_close(curves);
    graphi_graph_destroy(g);
}

static void expect_in_file(const char *path, const char *words)
{
    void *text;
    size_t size;
    check_ok(file_read(path, 1 << 24, &text, &size));
    if (!strstr(text, words))
        fail_msg("found no '%s' in %s, expected it", words, path);
    mem_free(text);
}

/* Bounds of the time that a model expects would stand over, or below, a step that other durations made. */
static void bounds_are_of_the_time_that_passes(void **state)
{
    struct folder folder;
    graphi_graph *g = pathnet();
    graphi_plan *plan, *there, *misled;
    char prefix[1024], page[1032], words[96], *text;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_curves *curves = curves_on_phi(plan);
    const graphi_setting setting = {
        .policy = GRAPHI_POLICY_MALLEABLE, .executors = 68, .width = 1, .light = GRAPHI_OFF};
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting, .machine = phi}, &there));
    check_ok(graphi_plan_with(there, &(graphi_plan_change){.curves = curves, .model = "model"}, &misled));
    folder_make(&folder);
    snprintf(prefix, sizeof prefix, "%s", folder_name(&folder, "time"));
    snprintf(page, sizeof page, "%s.html", prefix);
    graphi_simulation told;
    check_ok(graphi_plan_simulate(misled, &(graphi_simulate_options){.truth = there, .timeline = prefix}, &told));
    assert_true(misled->lower_bound_ns > 2 * there->lower_bound_ns);
    assert_true(told.lower_bound_ms == there->lower_bound_ns / 1e6);
    assert_true(told.widths_bound_ms == there->widths_bound_ns / 1e6 && told.widths_bound_ms <= told.makespan_ms);
    snprintf(words, sizeof words, "\"bound\":%lld,\"critical\":%lld", (long long)there->lower_bound_ns,
             (long long)there->critical_path_ns);
    expect_in_file(page, words);
    check_ok(graphi_plan_explain(misled, true, &text));
    snprintf(words, sizeof words, "lower bound %.3f ms, by the model step ", there->lower_bound_ns / 1e6);
    assert_non_null(strstr(text, words));
    graphi_free(text);
    folder_remove(&folder);
    graphi_plan_destroy(misled);
    graphi_plan_destroy(there);
    graphi_plan_destroy(plan);
    graphi_curves_close(curves);
    graphi_graph_destroy(g);
}

/* Delays of so many ns, one after the other or all side by side. */
static graphi_graph *delays(int count, bool chained, int64_t ns)
{
    graphi_graph *g;
    graphi_value y = GRAPHI_NONE;
    check_ok(graphi_graph_create(&g));
    for (int i = 0; i < count; i++) {
        char name[16];
        y = graphi_delay(g, chained && i, &y, ns);
        snprintf(name, sizeof name, "%d", i);
        graphi_output(g, name, y);
    }
    return g;
}

/* A delay was a nanosecond longer than asked for, and the longest ones were cut in silence. */
static void delays_take_what_was_asked_for(void **state)
{
    static const int64_t ns[] = {1, 1000, INT64_C(100000000000000)};
    graphi_plan *plan = NULL;
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
        graphi_graph *g = delays(3, true, ns[i]);
        check_ok(graphi_plan_create(g, phi, NULL, &plan));
        if (fabs(plan->critical_path_ns - 3 * (double)ns[i]) > 1e-3)
            fail_msg("found %.9g ns of three delays of %lld, expected their sum", plan->critical_path_ns,
                     (long long)ns[i]);
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
    graphi_graph *g = delays(1, true, ns[2] + 1);
    plan = NULL;
    assert_int_equal(graphi_plan_create(g, phi, NULL, &plan), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "expected 0 to 100000000000000"));
    assert_null(plan);
    graphi_graph_destroy(g);
}

/* What a setting has for a backward pass that there is not changed the executors of the forward one; and the way of a
 * message was no part of what scheduling took. */
static void settings_do_what_they_say(void **state)
{
    graphi_graph *g = delays(40, false, 20000);
    graphi_setting setting = {.executors = 3, .width = 4, .light = GRAPHI_ON, .driver = GRAPHI_DRIVER_COMBINING};
    graphi_plan *plan, *other;
    graphi_simulation one, two;
    check_ok(graphi_plan_create(g, phi, &(graphi_plan_options){.setting = setting}, &plan));
    setting.backward_executors = 4;
    check_ok(graphi_plan_create(g, phi, &(graphi_plan_options){.setting = setting}, &other));
    assert_int_equal(other->setting.backward_executors, 0);
    assert_int_equal(other->setting.light, 1);
    check_ok(graphi_plan_simulate(plan, NULL, &one));
    check_ok(graphi_plan_simulate(other, NULL, &two));
    assert_true(one.makespan_ms == two.makespan_ms && one.decisions == two.decisions);
    assert_true(phi->wake_ns > 0 && one.scheduling_ms * 1e6 >= 3 * phi->wake_ns + 40 * phi->schedule_ns);
    graphi_plan_destroy(other);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_change_is_the_same_plan),
        cmocka_unit_test(a_plan_is_changed_at_once),
        cmocka_unit_test(simulations_take_all_options),
        cmocka_unit_test(bounds_are_of_the_time_that_passes),
        cmocka_unit_test(delays_take_what_was_asked_for),
        cmocka_unit_test(settings_do_what_they_say),
    };
    return cmocka_run_group_tests(tests, open_machines, close_machines);
}
