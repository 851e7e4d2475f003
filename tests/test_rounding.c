/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of a graph that round otherwise (rounding.c): what tuning may change of the bits, and what it may not. */
#include "engine/choose/planning.h"
#include "engine/compile/rounding.h"
#include "engine/run/run.h"
#include "graph/graph.h"
#include "graphi/models.h"
#include "graphi/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

enum { STEPS = 2, NETWORKS = 2 };
static struct folder folder;
static const char *path; /* in it */

/* Small enough for milliseconds; between them every form changes something. */
static graphi_graph *network(int which)
{
    graphi_graph *g;
    graphi_model_options options = {.size = "small", .batch = 4, .steps = 3, .units = 32};
    if (which == 1)
        options = (graphi_model_options){.size = "small", .batch = 1, .image = 64};
    check_ok(graphi_model_create(which == 1 ? "googlenet" : "lstm", &options, &g));
    return g;
}

static graphi_plan *compile(const graphi_graph *g, uint32_t forms, bool allow)
{
    graphi_plan *plan;
    check_ok(plan_compile(g, machine, &(graphi_plan_options){.allow_rounding = allow}, forms, &plan));
    return plan;
}

/* What some steps on pseudo-random inputs leave: float32 outputs and parameters, one array after the other. */
struct left {
    float *number;
    size_t count, begin[1024];
    int arrays;
};

static float *more(struct left *l, size_t count)
{
    l->number = realloc(l->number, (l->count + count) * sizeof *l->number);
    assert_in_range(l->arrays, 0, 1022);
    l->begin[l->arrays++] = l->count;
    l->begin[l->arrays] = l->count += count;
    return l->number + l->count - count;
}

static void feed(const graphi_graph *g, graphi_run *run, int step)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_INPUT, i, &port); i++) {
        float *data = calloc(1, port.bytes);
        for (int64_t k = 0; port.dtype == GRAPHI_F32 && k < (int64_t)(port.bytes / sizeof *data); k++)
            data[k] = port.rank ? (float)((k * 7919 + step * 31) % 201 - 100) / 100 : 0.01f;
        check_ok(graphi_run_set(run, port.name, port.dtype, data, port.bytes));
        free(data);
    }
}

static struct left left_by(const graphi_graph *g, const graphi_plan *plan)
{
    struct left l = {0};
    graphi_state *s;
    graphi_run *run;
    graphi_port port;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    for (int step = 0; step < STEPS; step++) {
        feed(g, run, step);
        check_ok(graphi_run_execute(run));
    }
    for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_OUTPUT, i, &port); i++)
        if (port.dtype == GRAPHI_F32)
            check_ok(graphi_run_get(run, port.name, port.dtype, more(&l, port.bytes / sizeof(float)), port.bytes));
    for (size_t i = 0; i < s->parameters.count; i++) {
        const struct parameter *p = s->parameters.data[i];
        memcpy(more(&l, p->bytes / sizeof(float)), p->data, p->bytes);
    }
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    return l;
}

/* Largest difference between two arrays, over the largest number in them. */
static double apart(const struct left *a, const struct left *b)
{
    double most = 0;
    for (int i = 0; i < a->arrays; i++) {
        double difference = 0, size = 1e-6;
        for (size_t k = a->begin[i]; k < a->begin[i + 1]; k++) {
            difference = fmax(difference, fabs(a->number[k] - b->number[k]));
            size = fmax(size, fabs(a->number[k]));
        }
        most = fmax(most, difference / size);
    }
    return most;
}

static bool same_bits(const graphi_graph *g, const graphi_plan *a, const graphi_plan *b)
{
    struct left x = left_by(g, a), y = left_by(g, b);
    bool same = x.count == y.count && memcmp(x.number, y.number, x.count * sizeof *x.number) == 0;
    free(x.number);
    free(y.number);
    return same;
}

/* A form that changed nothing anywhere would be tried for nothing, and one that computed something else would be found
 * by its users; without forms the flag alone must not alter a bit. */
static void forms_differ_in_rounding_alone(void **state)
{
    bool altered[ROUNDING_FORMS] = {false};
    for (int n = 0; n < NETWORKS; n++) {
        graphi_graph *g = network(n);
        graphi_plan *plain = compile(g, 0, false), *allowed = compile(g, 0, true);
        struct left expected = left_by(g, plain);
        assert_true(same_bits(g, plain, allowed));
        for (int form = 0; form < ROUNDING_FORMS; form++) {
            graphi_plan *plan = compile(g, rounding_with(0, form), true);
            if (plan->compiled->form != plain->compiled->form) {
                struct left found = left_by(g, plan);
                altered[form] = true;
                if (!(apart(&expected, &found) < 1e-3))
                    fail_msg("network %d in %s: results differ by %g", n, rounding_forms[form].name,
                             apart(&expected, &found));
                free(found.number);
            }
            graphi_plan_destroy(plan);
        }
        free(expected.number);
        graphi_plan_destroy(allowed);
        graphi_plan_destroy(plain);
        graphi_graph_destroy(g);
    }
    for (int form = 0; form < ROUNDING_FORMS; form++)
        if (!altered[form] && !rounding_forms[form].sequences) /* those: test_sequences */
            fail_msg("%s changes nothing on any network", rounding_forms[form].name);
}

/* On a busy machine a round of operations may take longer than its part of the time: then again. */
static graphi_plan *tune(const graphi_graph *g, bool allow, graphi_state *s)
{
    graphi_plan *plan = compile(g, 0, allow), *tuned = NULL;
    for (int i = 0; i < 5 && !(tuned && tuned->measured); i++) {
        graphi_plan_destroy(tuned);
        check_ok(graphi_plan_tune(plan, s, &(graphi_tune_options){.seconds = 0.3}, &tuned));
    }
    graphi_plan_destroy(plan);
    return tuned;
}

/* Tuning that was not allowed to may not alter a bit; allowed, it tells of every form what became of it, leaves the
 * parameters alone, and its plan gives the bits of the forms that it names, stored and loaded again too. */
static void tuning_alters_bits_only_when_allowed(void **state)
{
    graphi_graph *g = network(0);
    char before[65], after[65];
    graphi_state *s;
    check_ok(graphi_state_create(g, 1, &s));
    graphi_state_sha256(s, before);
    graphi_plan *plain = compile(g, 0, false), *tuned = tune(g, false, s);
    assert_int_equal(tuned->compiled->rounding, 0);
    assert_null(strstr(tuned->why.data, "--allow-rounding"));
    assert_true(same_bits(g, plain, tuned));
    graphi_plan_destroy(tuned);

    tuned = tune(g, true, s);
    graphi_state_sha256(s, after);
    assert_string_equal(before, after);
    assert_true(tuned->measured);
    for (int form = 0; form < ROUNDING_FORMS && !rounding_forms[form].sequences; form++) {
        bool taken = tuned->compiled->rounding >> form & 1;
        const char *line = strstr(tuned->why.data, rounding_forms[form].name);
        if (!line || (strstr(line, "taken") != NULL && strstr(line, "taken") < strchr(line, '\n')) != taken)
            fail_msg("%s: taken %d, told: %s", rounding_forms[form].name, taken, tuned->why.data);
    }
    graphi_plan *same = compile(g, tuned->compiled->rounding, true), *loaded;
    assert_true(same_bits(g, same, tuned));
    check_ok(graphi_plan_save(tuned, path));
    check_ok(graphi_plan_load(g, machine, &(graphi_plan_options){.allow_rounding = true}, path, &loaded));
    assert_true(same_bits(g, same, loaded));
    graphi_plan_destroy(loaded);
    graphi_plan_destroy(same);
    graphi_plan_destroy(tuned);
    graphi_plan_destroy(plain);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Forms that others' load had chosen stayed for ever: a plan that was tuned again began with them. */
static void forms_are_chosen_anew(void **state)
{
    graphi_graph *g = network(0);
    graphi_plan *plan = compile(g, rounding_with(rounding_with(0, 0), 3), true), *tuned;
    graphi_state *s;
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_tune(plan, s, &(graphi_tune_options){.seconds = 1e-6}, &tuned));
    assert_non_null(strstr(tuned->why.data, "no time"));
    assert_int_equal(tuned->compiled->rounding, 0);
    graphi_plan_destroy(tuned);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* A stored plan would give other bits to whoever did not ask for them, or be loaded in another form than it was
 * measured in. */
static void stored_forms_need_permission(void **state)
{
    graphi_graph *g = network(0);
    uint32_t forms = rounding_with(rounding_with(0, 0), 3);
    graphi_plan *plan = compile(g, forms, true), *loaded = NULL;
    char *text;
    check_ok(graphi_plan_save(plan, path));
    assert_int_equal(graphi_plan_load(g, machine, NULL, path, &loaded), GRAPHI_REFUSED);
    assert_non_null(strstr(graphi_message(), "options that allow rounding"));
    assert_non_null(strstr(graphi_message(), rounding_forms[3].name));
    check_ok(graphi_plan_load(g, machine, &(graphi_plan_options){.allow_rounding = true}, path, &loaded));
    assert_int_equal(loaded->compiled->rounding, forms);
    assert_true(loaded->compiled->form == plan->compiled->form);
    check_ok(graphi_plan_explain(loaded, false, &text));
    assert_non_null(strstr(text, rounding_forms[0].name));
    graphi_free(text);
    graphi_plan_destroy(loaded);
    graphi_plan_destroy(plan);
    plan = compile(g, 0, true); /* bits as ever: anybody may have it */
    check_ok(graphi_plan_save(plan, path));
    check_ok(graphi_plan_load(g, machine, NULL, path, &loaded));
    graphi_plan_destroy(loaded);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* What was switched by hand is not switched back by tuning. */
static void what_was_asked_for_stays(void **state)
{
    graphi_graph *g = network(0);
    graphi_plan *plan, *tuned;
    graphi_state *s;
    check_ok(graphi_state_create(g, 1, &s));
    graphi_plan_options options = {.allow_rounding = true, .disable = "fusion", .conv_error = 2};
    check_ok(graphi_plan_create(g, machine, &options, &plan));
    check_ok(graphi_plan_tune(plan, s, &(graphi_tune_options){.seconds = 0.05}, &tuned));
    assert_int_equal(tuned->compiled->rounding, 0);
    assert_non_null(strstr(tuned->why.data, "left as asked for"));
    assert_null(strstr(tuned->why.data, "not faster"));
    graphi_plan_destroy(tuned);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* It would compile them from a graph that has become another's: a tuned plan for inference was one that trains. */
static void additions_are_in_later_plans_alone(void **state)
{
    graphi_graph *g;
    graphi_plan *plan, *tuned, *there;
    graphi_machine *other;
    graphi_state *s;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){4, 8});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){8, 8},
                                      &(graphi_initializer){.kind = GRAPHI_INIT_GLOROT_UNIFORM});
    graphi_value loss = graphi_reduce_mean(g, graphi_square(g, graphi_matmul(g, x, w, 0, 0)), NULL, 0, 0);
    graphi_output(g, "loss", loss);
    check_ok(graphi_state_create(g, 1, &s));
    plan = compile(g, rounding_with(0, 0), true);
    const int32_t tasks = plan->compiled->tasks;
    check_ok(graphi_minimize(g, loss, &(graphi_optimizer){.learning_rate = graphi_constant(g, GRAPHI_F32, 0, NULL,
                                                                                           &(float){0.1f})}));
    check_ok(graphi_plan_tune(plan, s, &(graphi_tune_options){.seconds = 0.05}, &tuned));
    assert_int_equal(tuned->compiled->tasks, tasks);
    assert_false(tuned->compiled->updates);
    assert_non_null(strstr(tuned->why.data, "added to since"));
    check_ok(graphi_machine_load("machines/xeon-phi-7250.json", 0, &other));
    check_ok(graphi_plan_profile(plan, s, &(graphi_profile_options){.machine = other}, &there));
    assert_int_equal(there->compiled->tasks, tasks);
    graphi_plan_destroy(there);
    graphi_matmul(g, x, x, 0, 0); /* a mistake in what is added is none of this plan */
    check_ok(graphi_plan_profile(plan, s, &(graphi_profile_options){.machine = other}, &there));
    assert_int_equal(there->compiled->tasks, tasks);
    graphi_plan_destroy(there);
    graphi_plan_destroy(tuned);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
    graphi_machine_destroy(other);
}

static bool at_once(void *context)
{
    return true;
}

/* Ctrl-C would wait until all forms are tried. */
static void the_search_stops_when_asked(void **state)
{
    graphi_graph *g = network(0);
    graphi_plan *plan = compile(g, 0, true), *none = NULL;
    graphi_state *s;
    check_ok(graphi_state_create(g, 1, &s));
    assert_int_equal(graphi_plan_tune(plan, s, &(graphi_tune_options){.seconds = 60, .stop = at_once}, &none),
                     GRAPHI_INTERRUPTED);
    assert_null(none);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* A stored list could name what does not exist or contradicts itself. */
static void lists_of_forms_are_checked(void **state)
{
    static const char *const wrong[] = {"x",
                                        "merged-products,",
                                        "merged-products,merged-products",
                                        ",",
                                        "large-tiles,direct-convolutions",
                                        "merged-product",
                                        "merged-products, separate-sums"};
    uint32_t forms = 99;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (rounding_parse(wrong[i], &forms))
            fail_msg("'%s' was accepted", wrong[i]);
    assert_int_equal(forms, 99);
    assert_true(rounding_parse("", &forms) && forms == 0);
    for (uint32_t all = 0; all < 1u << ROUNDING_FORMS; all++) {
        struct text text = {0};
        uint32_t possible = 0;
        for (int form = 0; form < ROUNDING_FORMS; form++)
            possible = all >> form & 1 ? rounding_with(possible, form) : possible;
        text_add(&text, "%s", "");
        rounding_names(possible, ",", &text);
        assert_true(rounding_parse(text.data, &forms));
        assert_int_equal(forms, possible);
        text_free(&text);
    }
}

static int open_all(void **state)
{
    folder_make(&folder);
    path = folder_name(&folder, "plan");
    return open_machine(state);
}

static int close_all(void **state)
{
    folder_remove(&folder);
    return close_machines(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_differ_in_rounding_alone),
        cmocka_unit_test(tuning_alters_bits_only_when_allowed),
        cmocka_unit_test(forms_are_chosen_anew),
        cmocka_unit_test(stored_forms_need_permission),
        cmocka_unit_test(what_was_asked_for_stays),
        cmocka_unit_test(additions_are_in_later_plans_alone),
        cmocka_unit_test(the_search_stops_when_asked),
        cmocka_unit_test(lists_of_forms_are_checked),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
