/* SPDX-License-Identifier: Apache-2.0 */
/* A machine without memory, and a full disk: every allocation and every write of what creates, loads, saves, tunes or
 * simulates fails once, one after the other. Data sets, machines and the layers below have such tests of their own. */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "session.h"

static struct folder folder;
static char path[300], curves_path[300]; /* in it */

/* What an action made; all of it is destroyed behind it, and none of it may be there when the action failed. */
struct made {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_simulator *simulator;
    graphi_curves *curves;
    char *text;
};

struct thing {
    struct session *s;
    struct made made;
    graphi_simulation simulation;
};
typedef graphi_status (*action)(struct thing *t);

static void unmake(struct made *m)
{
    graphi_run_destroy(m->run);
    graphi_state_destroy(m->state);
    graphi_simulator_destroy(m->simulator);
    graphi_curves_close(m->curves);
    graphi_plan_destroy(m->plan);
    graphi_graph_destroy(m->graph);
    graphi_free(m->text);
    *m = (struct made){0};
}

/* --- states and files --- */

static graphi_status state_save(struct thing *t) { return graphi_state_save(t->s->state, path, 0, NULL, NULL); }
static graphi_status state_load(struct thing *t) { return graphi_state_load(t->s->state, path, NULL, NULL); }
static graphi_status state_create(struct thing *t) { return graphi_state_create(t->s->graph, 3, &t->made.state); }

/* A state of nothing at first; what one extension could not add is not half there: the next one adds it. */
static graphi_status state_extend(struct thing *t)
{
    graphi_graph *empty = NULL;
    graphi_state *state = NULL;
    graphi_status status = graphi_graph_create(&empty);
    if (!status)
        status = graphi_state_create(empty, 3, &state);
    if (!status) {
        status = graphi_state_extend(state, t->s->graph);
        mem_fail_after(-1);
        if (graphi_state_extend(state, t->s->graph) != GRAPHI_OK)
            status = GRAPHI_INVALID;
    }
    graphi_state_destroy(state);
    graphi_graph_destroy(empty);
    return status;
}

static const int64_t array_dims[] = {2, 3};

static graphi_status array_save(struct thing *t)
{
    return graphi_array_save(path, GRAPHI_I64, 2, array_dims, (int64_t[]){1, 2, 3, 4, 5, 6});
}

static graphi_status array_load(struct thing *t)
{
    int32_t numbers[6];
    return graphi_array_load(path, GRAPHI_I32, 2, array_dims, numbers);
}

/* --- plans --- */

static graphi_status plan_save(struct thing *t) { return graphi_plan_save(t->s->plan, path); }
static graphi_status plan_load(struct thing *t)
{
    return graphi_plan_load(t->s->graph, machine, NULL, path, &t->made.plan);
}
static graphi_status plan_with(struct thing *t)
{
    return graphi_plan_with(t->s->plan,
                            &(graphi_plan_change){.setting = &(graphi_setting){.policy = GRAPHI_POLICY_MALLEABLE}},
                            &t->made.plan);
}

static graphi_status plan_on(struct thing *t)
{
    return graphi_plan_with(t->s->plan, &(graphi_plan_change){.machine = phi}, &t->made.plan);
}
static graphi_status plan_explain(struct thing *t) { return graphi_plan_explain(t->s->plan, true, &t->made.text); }

static graphi_status tune(struct thing *t)
{
    return graphi_plan_tune(t->s->plan, t->s->state, &(graphi_tune_options){.seconds = 1e-4}, &t->made.plan);
}
static graphi_status profile(struct thing *t)
{
    return graphi_plan_profile(t->s->plan, t->s->state, NULL, &t->made.plan);
}

static graphi_status network(struct thing *t, const char *name, const graphi_model_options *options)
{
    graphi_status status = graphi_model_create(name, options, &t->made.graph);
    if (!status)
        status = graphi_plan_create(t->made.graph, machine, NULL, &t->made.plan);
    if (status)
        unmake(&t->made);
    return status;
}

/* Kernels that have parameters, bands and packed forms of their own. */
static graphi_status inception(struct thing *t)
{
    return network(t, "googlenet", &(graphi_model_options){.image = 64});
}

/* Steps of time whose products, and gradients of the table, become one. */
static graphi_status language_model(struct thing *t)
{
    return network(t, "ptb", &(graphi_model_options){.batch = 1, .steps = 2, .units = 64});
}

/* --- curves --- */

static const graphi_climb climb = {.samples = 2, .width = {1, 2}, .compact_ns = {900, 500}, .spread_ns = {0, 450}};

/* A file with a curve of each class of the session's plan. */
static graphi_status curves_save(struct thing *t)
{
    graphi_class class;
    graphi_curves *curves = NULL;
    graphi_status status = graphi_curves_open(machine, curves_path, &curves);
    for (int i = 0; !status && graphi_plan_class_at(t->s->plan, i, &class); i++)
        status = graphi_curves_add(curves, class.key, "model", &climb);
    if (!status)
        status = graphi_curves_save(curves);
    graphi_curves_close(curves);
    return status;
}
static graphi_status curves_open(struct thing *t)
{
    return graphi_curves_open(machine, curves_path, &t->made.curves);
}
static graphi_status with_curves(struct thing *t)
{
    graphi_curves *curves;
    TRY(graphi_curves_open(machine, curves_path, &curves));
    graphi_status status =
        graphi_plan_with(t->s->plan, &(graphi_plan_change){.curves = curves, .model = "model"}, &t->made.plan);
    graphi_curves_close(curves);
    return status;
}

/* What could not be kept is measured again, no more. */
static graphi_status profile_into_curves(struct thing *t)
{
    graphi_curves *curves;
    TRY(graphi_curves_open(machine, curves_path, &curves));
    graphi_status status =
        graphi_plan_profile(t->s->plan, t->s->state, &(graphi_profile_options){.curves = curves}, &t->made.plan);
    graphi_curves_close(curves);
    return status;
}

/* --- simulation --- */

static graphi_status simulate(struct thing *t)
{
    return graphi_plan_simulate(t->s->plan, &(graphi_simulate_options){.timeline = path}, &t->simulation);
}
static graphi_status simulate_on(struct thing *t)
{
    return graphi_plan_simulate(t->s->plan, &(graphi_simulate_options){.machine = phi}, &t->simulation);
}
static graphi_status simulate_against(struct thing *t)
{
    return graphi_plan_simulate(t->s->plan, &(graphi_simulate_options){.truth = t->s->plan}, &t->simulation);
}
static graphi_status simulator(struct thing *t)
{
    enum { CLASSES_MOST = 128 };
    static const double priority_ms[CLASSES_MOST];
    int width[CLASSES_MOST];
    double ms;
    graphi_class class;
    for (int i = 0; i < CLASSES_MOST; i++)
        width[i] = 1;
    assert_false(graphi_plan_class_at(t->s->plan, CLASSES_MOST, &class));
    graphi_status status = graphi_simulator_create(t->s->plan, phi, &t->made.simulator);
    if (!status)
        status = graphi_simulator_run(t->made.simulator, width, priority_ms, 0, &ms);
    if (status)
        unmake(&t->made);
    return status;
}

/* --- runs --- */

static graphi_status run_create(struct thing *t) { return graphi_run_create(t->s->plan, t->s->state, &t->made.run); }
static graphi_status run_beside(struct thing *t) { return graphi_run_beside(t->s->run, t->s->plan, &t->made.run); }
static graphi_status run_explain(struct thing *t) { return graphi_run_explain(t->s->run, &t->made.text); }

/* The first step packs; a state that lacks a packed form must not be taken for one that has it. */
static graphi_status first_step(struct thing *t)
{
    static const float x[PIXELS];
    static const int32_t labels[BATCH];
    static const float rate = 0.01f;
    struct made *m = &t->made;
    graphi_status status = graphi_state_create(t->s->graph, 3, &m->state);
    if (!status)
        status = graphi_run_create(t->s->plan, m->state, &m->run);
    if (!status) {
        check_ok(graphi_run_set(m->run, "x", GRAPHI_F32, x, sizeof x));
        check_ok(graphi_run_set(m->run, "labels", GRAPHI_I32, labels, sizeof labels));
        check_ok(graphi_run_set(m->run, "rate", GRAPHI_F32, &rate, sizeof rate));
        status = graphi_run_execute(m->run);
    }
    if (status)
        unmake(m);
    return status;
}

static graphi_status trace(struct thing *t)
{
    graphi_trace_summary summary;
    graphi_status status = graphi_run_trace(t->s->run, true);
    if (!status)
        status = graphi_run_execute(t->s->run);
    if (!status)
        status = graphi_run_trace_summary(t->s->run, &summary);
    if (!status)
        status = graphi_run_write_timeline(t->s->run, path);
    return status;
}

/* --- graphs --- */

static graphi_status model_create(struct thing *t)
{
    return graphi_model_create("pathnet", NULL, &t->made.graph);
}
static graphi_status graph_print(struct thing *t)
{
    return graphi_graph_print(t->s->graph, GRAPHI_PRINT_TEXT, &t->made.text);
}

/* Stride: of the allocations that fail. */
static const struct {
    const char *name;
    action prepare, act;
    int stride;
    enum { QUIET, EXECUTES, RETRIES } kind; /* and so changes the state; without a fault, at its end */
} actions[] = {
    {"state_create", NULL, state_create, 1, QUIET},
    {"state_extend", NULL, state_extend, 1, RETRIES},
    {"state_save", NULL, state_save, 1, QUIET},
    {"state_load", state_save, state_load, 1, QUIET},
    {"array_save", NULL, array_save, 1, QUIET},
    {"array_load", array_save, array_load, 1, QUIET},
    {"plan_save", NULL, plan_save, 1, QUIET},
    {"plan_load", plan_save, plan_load, 5, QUIET},
    {"plan_with", NULL, plan_with, 1, QUIET},
    {"plan_on", NULL, plan_on, 1, QUIET},
    {"plan_explain", NULL, plan_explain, 1, QUIET},
    {"tune", NULL, tune, 23, QUIET},
    {"profile", NULL, profile, 7, QUIET},
    {"inception", NULL, inception, 37, QUIET},
    {"language_model", NULL, language_model, 1, QUIET},
    {"curves_save", NULL, curves_save, 1, QUIET},
    {"curves_open", curves_save, curves_open, 1, QUIET},
    {"with_curves", curves_save, with_curves, 1, QUIET},
    {"profile_into_curves", NULL, profile_into_curves, 7, QUIET},
    {"simulate", NULL, simulate, 1, QUIET},
    {"simulate_on", NULL, simulate_on, 1, QUIET},
    {"simulate_against", NULL, simulate_against, 1, QUIET},
    {"simulator", NULL, simulator, 1, QUIET},
    {"run_create", NULL, run_create, 1, QUIET},
    {"run_beside", NULL, run_beside, 1, QUIET},
    {"run_explain", NULL, run_explain, 1, QUIET},
    {"first_step", NULL, first_step, 1, QUIET},
    {"trace", NULL, trace, 1, EXECUTES},
    {"model_create", NULL, model_create, 1, QUIET},
    {"graph_print", NULL, graph_print, 1, QUIET},
};

enum { EVERY = 600 }; /* beyond, where thousands of simulations are, some */

/* The plan is whole, but no explanation of it is. */
static bool says_less(const graphi_plan *plan)
{
    char *text = NULL;
    const graphi_status status = plan ? graphi_plan_explain(plan, true, &text) : GRAPHI_OK;
    graphi_free(text);
    return status == GRAPHI_MEMORY;
}

/* Without it a machine short of memory would crash, leak, or leave half a result that looks whole, or another than it
 * would have made. */
static void every_allocation_may_fail(void **state)
{
    struct session s;
    session_open(&s, (graphi_setting){0}, 7);
    (void)session_step(&s);
    for (size_t a = 0; a < sizeof actions / sizeof *actions; a++) {
        graphi_status status = GRAPHI_MEMORY;
        char before[65], after[65];
        if (actions[a].prepare)
            check_ok(actions[a].prepare(&(struct thing){.s = &s}));
        graphi_state_sha256(s.state, before);
        uint64_t step = graphi_state_step(s.state);
        for (long n = 0; status != GRAPHI_OK; n += n < EVERY ? actions[a].stride : n / 8) {
            static const struct made none;
            struct thing t = {.s = &s};
            assert_true(n < 2000000);
            const uint64_t first = mem_allocations();
            mem_fail_after(n);
            status = actions[a].act(&t);
            const bool failed = mem_allocations() - first > (uint64_t)n;
            mem_fail_after(-1);
            if (!status && failed && actions[a].kind != RETRIES && !says_less(t.made.plan))
                fail_msg("%s, allocation %ld: a result that does not know of the failure", actions[a].name, n);
            if (status && status != GRAPHI_MEMORY)
                fail_msg("%s, allocation %ld: %s", actions[a].name, n, graphi_message());
            if (status && memcmp(&t.made, &none, sizeof none) != 0)
                fail_msg("%s, allocation %ld: a result in spite of the failure", actions[a].name, n);
            unmake(&t.made);
            graphi_state_sha256(s.state, after);
            if (actions[a].kind != EXECUTES && (strcmp(before, after) != 0 || graphi_state_step(s.state) != step))
                fail_msg("%s, allocation %ld: the state changed", actions[a].name, n);
        }
    }
    session_close(&s);
}

/* A file that an action writes; `changes`: a step before it changes what it writes. */
static const struct {
    action act;
    const char *end;
    bool changes;
} writers[] = {{state_save, "", true},
               {plan_save, "", false},
               {array_save, "", true},
               {simulate, ".json", false},
               {simulate, ".html", false}};

/* Without it a full disk would leave a torn checkpoint, plan, array or timeline. */
static void every_write_may_fail(void **state)
{
    struct session s;
    char name[320];
    void *before, *after;
    size_t size, again;
    session_open(&s, (graphi_setting){0}, 7);
    for (size_t a = 0; a < sizeof writers / sizeof *writers; a++) {
        graphi_status status = GRAPHI_IO;
        snprintf(name, sizeof name, "%s%s", path, writers[a].end);
        check_ok(writers[a].act(&(struct thing){.s = &s}));
        check_ok(file_read(name, 1 << 24, &before, &size));
        if (writers[a].changes)
            (void)session_step(&s);
        for (long n = 0; status != GRAPHI_OK; n++) {
            file_fail_after(n);
            status = writers[a].act(&(struct thing){.s = &s});
            file_fail_after(-1);
            if (status == GRAPHI_OK)
                break;
            assert_int_equal(status, GRAPHI_IO);
            check_ok(file_read(name, 1 << 24, &after, &again));
            assert_int_equal(size, again);
            assert_memory_equal(before, after, size);
            mem_free(after);
        }
        mem_free(before);
    }
    session_close(&s);
}

static int setup(void **state)
{
    folder_make(&folder);
    snprintf(path, sizeof path, "%s/file", folder.path);
    snprintf(curves_path, sizeof curves_path, "%s/curves", folder.path);
    return open_machines(state);
}

static int teardown(void **state)
{
    folder_remove(&folder);
    return close_machines(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_write_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
