/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from parameters is computed once a version of them: counted, shared by plans, freed, and right after
 * every kind of change; batch normalization in weights; parameters in memory of the caller. */
#include "engine/compile/plan.h"
#include "engine/run/run.h"
#include "engine/run/state.h"
#include "graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"
#include "graphi/ops.h"
#include "reference.h"

enum { ROWS = 5, DEPTH = 96, COLUMNS = 192, RESULTS = ROWS * COLUMNS };

static const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};

/* y = x (tanh(w) s) + tanh(s), w and s parameters: the weights have a form that is made of a form. */
static graphi_graph *scaled_product(void)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){ROWS, DEPTH});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){DEPTH, COLUMNS}, &uniform);
    graphi_value s = graphi_parameter(g, "s", GRAPHI_F32, 1, (int64_t[]){COLUMNS}, &uniform);
    graphi_value weights = graphi_mul(g, graphi_tanh(g, w), s);
    graphi_output(g, "y", graphi_add(g, graphi_matmul(g, x, weights, 0, 0), graphi_tanh(g, s)));
    return g;
}

struct running {
    graphi_plan *plan;
    graphi_run *run;
};

static struct running run_of(const graphi_graph *g, graphi_state *s, const graphi_plan_options *options)
{
    struct running r;
    check_ok(graphi_plan_create(g, machine, options, &r.plan));
    check_ok(graphi_run_create(r.plan, s, &r.run));
    return r;
}

static void stop(struct running *r)
{
    graphi_run_destroy(r->run);
    graphi_plan_destroy(r->plan);
}

/* Executes on the same numbers each time; gives how many forms were made. */
static uint64_t made_by(graphi_run *run, float *y)
{
    static float x[ROWS * DEPTH];
    graphi_run_info info;
    reference_random(x, ROWS * DEPTH, 7);
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, RESULTS * sizeof *y));
    graphi_run_get_info(run, &info);
    return info.packs;
}

/* What a plan without the pass computes over the same state. */
static void check_result(const graphi_graph *g, graphi_state *s, const float *y)
{
    static float expected[RESULTS];
    struct running plain = run_of(g, s, &(graphi_plan_options){.disable = "derive"});
    made_by(plain.run, expected);
    assert_true(reference_difference(y, expected, RESULTS) < 1e-5);
    stop(&plain);
}

static void change(graphi_state *s, const char *name, int64_t count, uint64_t seed)
{
    float *data = malloc((size_t)count * sizeof *data);
    reference_random(data, count, seed);
    check_ok(graphi_state_set(s, name, data, (size_t)count * sizeof *data));
    free(data);
}

/* Made in the first execution and in none that follows, again after a change of any source, and of no other. */
static void computed_once_a_version(void **state)
{
    static float y[RESULTS], again[RESULTS];
    graphi_graph *g = scaled_product();
    graphi_parameter(g, "other", GRAPHI_F32, 0, NULL, NULL);
    graphi_state *s;
    check_ok(graphi_state_create(g, 3, &s));
    struct running r = run_of(g, s, NULL);
    assert_int_equal(r.plan->compiled->tasks, 1); /* the product, with its sum */
    const uint64_t forms = r.plan->compiled->prepared.count;
    assert_int_equal(made_by(r.run, y), forms);
    check_result(g, s, y);
    for (int i = 0; i < 3; i++) {
        change(s, "other", 1, 1);
        assert_int_equal(made_by(r.run, again), 0);
        assert_memory_equal(again, y, sizeof y);
    }
    change(s, "w", DEPTH * COLUMNS, 11); /* the weights and what they are packed into; not what follows from s alone */
    const uint64_t of_w = made_by(r.run, y);
    assert_true(of_w >= 2 && of_w < forms);
    check_result(g, s, y);
    change(s, "s", COLUMNS, 12);
    assert_true(made_by(r.run, y) >= 2);
    check_result(g, s, y);
    stop(&r);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Plans over one state share forms; those that no run reads go when another plan needs its own. */
static void shared_and_freed(void **state)
{
    static float y[RESULTS], again[RESULTS];
    graphi_graph *g = scaled_product();
    graphi_state *s;
    check_ok(graphi_state_create(g, 3, &s));
    struct running first = run_of(g, s, NULL);
    struct running second = run_of(g, s, &(graphi_plan_options){.setting = {.executors = 1, .width = 2}});
    const size_t forms = s->packed.count;
    assert_true(made_by(first.run, y) > 0);
    assert_int_equal(made_by(second.run, again), 0);
    assert_memory_equal(again, y, sizeof y);
    stop(&first);
    change(s, "w", DEPTH * COLUMNS, 5);
    assert_true(made_by(second.run, y) > 0);
    assert_int_equal(s->packed.count, forms);
    struct running plain = run_of(g, s, &(graphi_plan_options){.isa = "plain"}); /* has forms of its own */
    assert_int_equal(s->packed.count, 2 * forms);
    stop(&second);
    struct running third = run_of(g, s, &(graphi_plan_options){.disable = "fusion,pack"});
    assert_int_equal(s->packed.count, forms + third.plan->compiled->prepared.count); /* those of `second` are gone */
    assert_true(made_by(plain.run, again) > 0);
    assert_true(reference_difference(again, y, RESULTS) < 1e-5);
    made_by(third.run, again);
    assert_true(reference_difference(again, y, RESULTS) < 1e-5);
    stop(&plain);
    stop(&third);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* A form that only another one is made of has no pages between; where a second source of that one changes, it is
 * there again. */
static void passing_forms_take_no_memory(void **state)
{
    static float y[RESULTS];
    graphi_graph *g = scaled_product();
    graphi_state *s;
    check_ok(graphi_state_create(g, 3, &s));
    /* tanh(w), then times s, then packed */
    struct running r = run_of(g, s, &(graphi_plan_options){.disable = "fusion"});
    int passing = 0, gone = 0;
    made_by(r.run, y);
    for (size_t i = 0; i < r.plan->compiled->prepared.count; i++) {
        passing += r.plan->compiled->prepared.data[i].passing;
        gone += r.run->form[i]->gone;
    }
    assert_int_equal(passing, 2);
    assert_int_equal(gone, 2);
    change(s, "s", COLUMNS, 12);
    assert_true(made_by(r.run, y) >= 3);
    check_result(g, s, y);
    stop(&r);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* A plan that updates a parameter computes what follows from it in every step; another plan, of what does not, sees
 * each new version. */
static void updates_are_seen(void **state)
{
    static float y[RESULTS], before[RESULTS];
    graphi_graph *g = scaled_product(), *training;
    check_ok(graphi_graph_create(&training));
    graphi_value w = graphi_parameter(training, "w", GRAPHI_F32, 2, (int64_t[]){DEPTH, COLUMNS}, &uniform);
    graphi_value half = graphi_constant(training, GRAPHI_F32, 0, NULL, &(float){0.5f});
    graphi_value next = graphi_mul(training, graphi_tanh(training, w), half);
    graphi_output(training, "next", graphi_assign(training, w, next));
    graphi_state *s;
    check_ok(graphi_state_create(g, 3, &s));
    struct running reads = run_of(g, s, NULL), writes = run_of(training, s, NULL);
    assert_int_equal(writes.plan->compiled->prepared.count, 0);
    made_by(reads.run, before);
    for (int step = 0; step < 3; step++) {
        check_ok(graphi_run_execute(writes.run));
        assert_true(made_by(reads.run, y) > 0);
        assert_memory_not_equal(y, before, sizeof y);
        check_result(g, s, y);
        memcpy(before, y, sizeof y);
    }
    stop(&reads);
    stop(&writes);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
    graphi_graph_destroy(training);
}

/* --- batch normalization --- */

static graphi_value vector(graphi_graph *g, const char *name, int layer, double a, double b)
{
    char full[32];
    snprintf(full, sizeof full, "%s%d", name, layer);
    return graphi_parameter(g, full, GRAPHI_F32, 1, (int64_t[]){16},
                            &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = a, .b = b});
}

/* Two convolutions, the first with a bias, each normalized by statistics and then rectified; one result is read twice,
 * whose weights must stay. */
static graphi_graph *normalized(bool read_twice)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value y = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 9, 9, 16});
    for (int i = 0; i < 2; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        graphi_value w = graphi_parameter(g, name, GRAPHI_F32, 4, (int64_t[]){3, 3, 16, 16}, &uniform);
        const int64_t pads[] = {1, 1, 1, 1};
        const graphi_attribute around = {.name = "pads", .type = GRAPHI_INTS, .ints = pads, .count = 4};
        graphi_value in[] = {y, w};
        graphi_value c = graphi_op(g, "conv2d", 2, in, 1, &around);
        if (i == 0)
            c = graphi_add(g, c, vector(g, "bias", i, -1, 1));
        graphi_value given[] = {c, vector(g, "scale", i, 0.5, 2), vector(g, "shift", i, -1, 1),
                                vector(g, "mean", i, -1, 1), vector(g, "variance", i, 0.1, 3)};
        y = graphi_relu(g, graphi_op(g, "batch_norm_inference", 5, given, 0, NULL));
        if (read_twice && i == 1)
            graphi_output(g, "raw", graphi_neg(g, c));
    }
    graphi_output(g, "y", y);
    return g;
}

static void execute_normalized(graphi_run *run, float *y, size_t bytes)
{
    static float x[2 * 9 * 9 * 16];
    reference_random(x, 2 * 9 * 9 * 16, 3);
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, bytes));
}

static int count_multiplied(const graphi_plan *plan, const char *kind)
{
    const graphi_graph *g = plan->compiled->graph;
    int count = 0;
    for (size_t i = 0; i < g->nodes.count; i++)
        count += strcmp(g->nodes.data[i].kind->name, kind) == 0 && g->nodes.data[i].derived;
    return count;
}

/* Nothing of a normalization is left but a bias, and statistics that change are taken. */
static void normalization_goes_into_weights(void **state)
{
    static float y[2 * 9 * 9 * 16], expected[2 * 9 * 9 * 16], other[2 * 9 * 9 * 16];
    for (int twice = 0; twice < 2; twice++) {
        graphi_graph *g = normalized(twice);
        graphi_state *s;
        check_ok(graphi_state_create(g, 3, &s));
        struct running r = run_of(g, s, NULL), wide, plain;
        plain = run_of(g, s, &(graphi_plan_options){.disable = "all"});
        wide = run_of(g, s, &(graphi_plan_options){.setting = {.executors = 1, .width = 2}});
        assert_int_equal(count_multiplied(r.plan, "mul"), 2 - twice);
        for (int round = 0; round < 2; round++) {
            execute_normalized(r.run, y, sizeof y);
            execute_normalized(wide.run, other, sizeof other);
            execute_normalized(plain.run, expected, sizeof expected);
            assert_memory_equal(other, y, sizeof y);
            const double apart = reference_difference(y, expected, 2 * 9 * 9 * 16);
            if (apart >= 1e-5)
                fail_msg("found results %g apart, expected at most 1e-5", apart);
            float variance[16];
            for (int i = 0; i < 16; i++)
                variance[i] = 0.5f + (float)i / 4;
            check_ok(graphi_state_set(s, "variance0", variance, sizeof variance));
        }
        stop(&r);
        stop(&wide);
        stop(&plain);
        graphi_state_destroy(s);
        graphi_graph_destroy(g);
    }
}

/* GoogLeNet by statistics has the tasks of GoogLeNet without: normalizations cost nothing in a step. */
static void googlenet_has_no_normalization_left(void **state)
{
    int tasks[2];
    for (int norm = 0; norm < 2; norm++) {
        graphi_graph *g;
        graphi_plan *plan;
        graphi_state *s;
        graphi_run *run;
        graphi_run_info info;
        check_ok(graphi_model_create("googlenet", &(graphi_model_options){.task = "bench", .size = "small",
                                                                          .evaluation = true, .batch_norm = norm}, &g));
        check_ok(graphi_plan_create(g, machine, NULL, &plan));
        check_ok(graphi_state_create(g, 1, &s));
        check_ok(graphi_run_create(plan, s, &run));
        feed_zeros(g, run);
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_execute(run));
        graphi_run_get_info(run, &info);
        assert_int_equal(info.packs, 0);
        tasks[norm] = plan->compiled->tasks;
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(s);
        graphi_graph_destroy(g);
    }
    assert_int_equal(tasks[1], tasks[0]);
}

/* --- memory of the caller --- */

static void caller_memory_is_not_copied(void **state)
{
    static float weights[DEPTH * COLUMNS], y[RESULTS], expected[RESULTS];
    graphi_graph *g = scaled_product();
    graphi_state *s, *copied;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_state_create(g, 3, &copied));
    reference_random(weights, DEPTH * COLUMNS, 21);
    check_ok(graphi_state_adopt(s, "w", weights, sizeof weights));
    check_ok(graphi_state_set(copied, "w", weights, sizeof weights));
    assert_ptr_equal(state_parameter(s, "w")->data, weights);
    struct running r = run_of(g, s, NULL), c = run_of(g, copied, NULL);
    made_by(r.run, y);
    made_by(c.run, expected);
    assert_memory_equal(y, expected, sizeof y);
    /* while a run reads it: neither other memory nor other content */
    assert_int_equal(graphi_state_adopt(s, "w", weights, sizeof weights), GRAPHI_INVALID);
    assert_int_equal(graphi_state_set(s, "w", expected, sizeof weights), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "parameter 'w': found it to be changed in memory that was adopted"));
    stop(&r);
    /* an update works on a copy */
    graphi_graph *training;
    check_ok(graphi_graph_create(&training));
    graphi_value w = graphi_parameter(training, "w", GRAPHI_F32, 2, (int64_t[]){DEPTH, COLUMNS}, &uniform);
    graphi_assign(training, w, graphi_neg(training, w));
    struct running u = run_of(training, s, NULL);
    const float first = weights[0];
    float after[DEPTH * COLUMNS];
    check_ok(graphi_run_execute(u.run));
    check_ok(graphi_state_get(s, "w", after, sizeof after));
    assert_true(weights[0] == first && after[0] == -first);
    stop(&u);
    graphi_graph_destroy(training);
    check_ok(graphi_state_adopt(s, "w", weights, sizeof weights));
    check_ok(graphi_state_set(s, "w", after, sizeof after)); /* no run: its own memory again */
    assert_ptr_not_equal(state_parameter(s, "w")->data, weights);
    assert_true(weights[0] == first);
    assert_int_equal(graphi_state_adopt(s, "w", (char *)weights + 1, sizeof weights), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found memory 1 bytes behind a multiple of 4"));
    assert_int_equal(graphi_state_adopt(s, "w", weights, sizeof weights - 4), GRAPHI_INVALID);
    assert_int_equal(graphi_state_adopt(s, "none", weights, sizeof weights), GRAPHI_INVALID);
    stop(&c);
    graphi_state_destroy(copied);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Saved like others; a file is loaded into memory of the state's own. */
static void adopted_ones_are_saved_and_loaded(void **state)
{
    static float weights[DEPTH * COLUMNS];
    graphi_graph *g = scaled_product();
    graphi_state *s;
    char hex[2][65];
    struct folder folder;
    folder_make(&folder);
    check_ok(graphi_state_create(g, 3, &s));
    reference_random(weights, DEPTH * COLUMNS, 21);
    check_ok(graphi_state_adopt(s, "w", weights, sizeof weights));
    check_ok(graphi_state_save(s, folder_name(&folder, "a"), 0, NULL, NULL));
    graphi_state_sha256(s, hex[0]);
    struct running r = run_of(g, s, NULL);
    assert_int_equal(graphi_state_load(s, folder_name(&folder, "a"), NULL, NULL), GRAPHI_INVALID);
    stop(&r);
    memset(weights, 0, sizeof weights);
    check_ok(graphi_state_load(s, folder_name(&folder, "a"), NULL, NULL));
    graphi_state_sha256(s, hex[1]);
    assert_string_equal(hex[0], hex[1]);
    folder_remove(&folder);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* A failed allocation gives MEMORY, and leaves neither forms in use nor a state that is counted as read. */
static void runs_survive_failed_allocations(void **state)
{
    static float y[RESULTS];
    graphi_graph *g = scaled_product();
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    graphi_status status = GRAPHI_MEMORY;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    for (long n = 0; status != GRAPHI_OK && n < 1000; n++) {
        mem_fail_after(n);
        status = graphi_run_create(plan, s, &run);
        mem_fail_after(-1);
        assert_true(status == GRAPHI_OK || status == GRAPHI_MEMORY);
        assert_int_equal(s->runs, status == GRAPHI_OK);
        for (size_t i = 0; i < s->packed.count && status; i++)
            assert_int_equal(s->packed.data[i]->users, 0);
    }
    assert_true(made_by(run, y) > 0);
    check_result(g, s, y);
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computed_once_a_version),
        cmocka_unit_test(shared_and_freed),
        cmocka_unit_test(passing_forms_take_no_memory),
        cmocka_unit_test(updates_are_seen),
        cmocka_unit_test(normalization_goes_into_weights),
        cmocka_unit_test(googlenet_has_no_normalization_left),
        cmocka_unit_test(caller_memory_is_not_copied),
        cmocka_unit_test(adopted_ones_are_saved_and_loaded),
        cmocka_unit_test(runs_survive_failed_allocations),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
