/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of 100,000 and more names, values and operations: what is looked up once for each of them is not looked for
 * among all of them. Where it is, one test takes many seconds more, and the program ends by a limit of its CPU
 * time, several times what it takes, more on a slow machine; under a sanitizer, or on another processor, the limit of
 * the test alone holds. */
#include "passes/passes.h"

#include "base/isa.h"
#include "engine/heap.h"
#include "engine/memory.h"
#include "engine/state.h"
#include "graph/op.h"
#include "graphi/graphi.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

enum { MOST_SECONDS = 15, MANY = 120000 };

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static const double YARDSTICK = 0.07; /* on a machine where the tests take 6 seconds */

/* CPU seconds that memory takes which is touched out of order. */
static double yardstick(void)
{
    enum { WORDS = 1 << 21, TOUCHES = 10000000 };
    static volatile uint64_t word[WORDS];
    uint64_t x = 88172645463325252;
    const clock_t begin = clock();
    for (int i = 0; i < TOUCHES; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        word[x % WORDS]++;
    }
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

static void limit_time(void)
{
    const rlim_t most = (rlim_t)(MOST_SECONDS * fmax(1, yardstick() / YARDSTICK));
    setrlimit(RLIMIT_CPU, &(struct rlimit){most, most + 1});
}
#else
static void limit_time(void) {}
#endif

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    return g;
}

static const char *numbered(const char *what, int i)
{
    static char name[32];
    snprintf(name, sizeof name, "%s%d", what, i);
    return name;
}

/* Names come in an order that is none of the alphabet's. */
static int scattered(int i) { return (int)((int64_t)i * 7919 % MANY); }

static graphi_value vector(graphi_graph *g, int64_t elements)
{
    return graphi_input(g, "x", GRAPHI_F32, 1, &elements);
}

/* --- names --- */

static void names_are_not_searched(void **state)
{
    graphi_graph *g = new_graph();
    for (int i = 0; i < MANY; i++) {
        graphi_value p = graphi_parameter(g, numbered("p", scattered(i)), GRAPHI_F32, 0, NULL, NULL);
        graphi_output(g, numbered("o", i), graphi_assign(g, p, p));
    }
    check_ok(graph_check(g));
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(graphi_find(g, numbered("p", scattered(i))), 2 * i);
        assert_int_equal(graphi_find(g, numbered("o", i)), 2 * i + 1);
    }
    assert_int_equal(graphi_find(g, "p"), GRAPHI_NONE);
    graphi_parameter(g, numbered("p", MANY / 2), GRAPHI_F32, 0, NULL, NULL);
    assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
    graphi_graph_destroy(g);
}

static void second_names_and_updates_are_refused(void **state)
{
    for (int what = 0; what < 2; what++) {
        graphi_graph *g = new_graph();
        graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 0, NULL, NULL);
        for (int i = 0; i < 2; i++) {
            check_ok(graphi_graph_status(g));
            if (what)
                graphi_assign(g, p, p);
            else
                graphi_output(g, "o", p);
        }
        assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
        graphi_graph_destroy(g);
    }
}

/* Parameters that are outputs and inputs that nobody reads: a plan without tasks, of names alone. */
static graphi_graph *ports(void)
{
    graphi_graph *g = new_graph();
    for (int i = 0; i < MANY; i++) {
        const graphi_initializer init = {.kind = GRAPHI_INIT_CONSTANT, .a = i};
        graphi_input(g, numbered("x", i), GRAPHI_F32, 0, NULL);
        graphi_value p = graphi_parameter(g, numbered("p", scattered(i)), GRAPHI_F32, 0, NULL, &init);
        graphi_output(g, numbered("o", i), p);
    }
    check_ok(graphi_graph_status(g));
    return g;
}

static void ports_and_parameters_are_not_searched(void **state)
{
    graphi_graph *g = ports();
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    for (int i = 0; i < MANY; i++)
        check_ok(graphi_run_set(run, numbered("x", i), &(float){1}, sizeof(float)));
    check_ok(graphi_run_execute(run));
    for (int i = 0; i < MANY; i++) {
        float found;
        check_ok(graphi_run_get(run, numbered("o", i), &found, sizeof found));
        assert_true(found == (float)i);
    }
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    struct folder folder;
    folder_make(&folder);
    check_ok(graphi_state_save(s, folder_name(&folder, "large"), 0, NULL, NULL));
    check_ok(graphi_state_load(s, folder_name(&folder, "large"), NULL, NULL));
    folder_remove(&folder);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

static void packed_forms_are_not_searched(void **state)
{
    graphi_graph *g = new_graph();
    graphi_state *s;
    graphi_parameter(g, "p", GRAPHI_F32, 0, NULL, NULL);
    check_ok(graphi_state_create(g, 1, &s));
    struct parameter *source = state_parameter(s, "p");
    struct packed_form *form, *first = NULL;
    for (int i = 0; i < MANY; i++) {
        const uint64_t key = (uint64_t)i % (MANY - 1);
        const struct form_wanted wanted = {.key = key, .source = &source, .sources = 1, .bytes = 4};
        assert_int_equal(state_packed_missing(s, &wanted), i < MANY - 1 ? 64 : 0);
        check_ok(state_packed(s, &wanted, &form));
        first = first ? first : form;
    }
    assert_ptr_equal(form, first);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* --- passes --- */

static const struct pass_options options = {.isa = ISA_PLAIN};

/* Nobody reads x in the backward pass, of which there is none. */
static void readers_are_not_searched_for_the_backward_pass(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_softmax(g, vector(g, 4));
    for (int i = 0; i < MANY; i++)
        graphi_tanh(g, x);
    check_ok(pass_recompute(g, &options));
    assert_int_equal(g->nodes.count, MANY + 1);
    graphi_graph_destroy(g);
}

/* Each copy asks whether a parameter that is updated is behind the views before it. */
static void copies_of_views_are_not_traced_back(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 1, (int64_t[]){MANY + 1}, NULL), x = p;
    for (int i = 0; i < MANY; i++) {
        x = graphi_slice(g, x, 0, 0, MANY - i);
        graphi_identity(g, x);
    }
    graphi_assign(g, p, graphi_identity(g, graphi_neg(g, p)));
    check_ok(pass_identities(g, &options));
    assert_int_equal(g->nodes.count, 2 * MANY + 2); /* all but that of what is no parameter */
    graphi_graph_destroy(g);
}

/* Each result is new. */
static void folded_constants_are_not_compared(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value sum = vector(g, 4);
    for (int i = 0; i < 2 * MANY; i++) {
        graphi_value c = graphi_constant(g, GRAPHI_I32, 0, NULL, &i);
        graphi_op(g, "cast", 1, &c, 1, (graphi_attribute[]){{.name = "dtype", .type = GRAPHI_INT, .i = GRAPHI_F32}});
    }
    graphi_output(g, "y", sum);
    check_ok(pass_fold(g, &options));
    assert_int_equal(g->nodes.count, 0);
    graphi_graph_destroy(g);
}

static void outputs_are_not_searched_by_passes(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = vector(g, 4);
    for (int i = 0; i < MANY; i++)
        graphi_output(g, numbered("o", i), graphi_relu(g, x));
    check_ok(pass_pool(g, &options));
    assert_int_equal(g->nodes.count, MANY);
    graphi_graph_destroy(g);
}

/* Convolutions of other weights, each of which asks who shares its form. */
static void forms_of_convolutions_are_not_compared(void **state)
{
    graphi_graph *g = new_graph();
    const int64_t image[] = {1, 4, 4, 16}, window[] = {3, 3, 16, 16}, pads[] = {1, 1, 1, 1};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, image);
    for (int i = 0; i < MANY; i++) {
        graphi_value w = graphi_parameter(g, numbered("w", i), GRAPHI_F32, 4, window, NULL);
        graphi_conv2d(g, x, w, NULL, 0, pads, 4, NULL, 0, 1);
    }
    check_ok(pack_convolutions(g, &(struct pass_options){.isa = isa_detect()}));
    assert_true(g->nodes.count >= MANY);
    graphi_graph_destroy(g);
}

/* --- places --- */

/* The parts of a concatenation, whether one is there twice and where each lies: of vectors they are one copy. */
static void parts_are_not_held_against_each_other(void **state)
{
    enum { OUTPUTS = 1 << 16, SPLITS = 4 };
    static graphi_value part[SPLITS * OUTPUTS];
    graphi_graph *g = new_graph();
    graphi_value x = vector(g, OUTPUTS);
    for (int s = 0; s < SPLITS; s++) {
        graphi_attribute attributes[] = {{.name = "axis", .type = GRAPHI_INT, .i = 0},
                                         {.name = "outputs", .type = GRAPHI_INT, .i = OUTPUTS}};
        graphi_value factor = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){(float)s + 2});
        graphi_value scaled = graphi_mul(g, x, factor), first = graphi_op(g, "split", 1, &scaled, 2, attributes);
        for (int i = 0; i < OUTPUTS; i++)
            part[s * OUTPUTS + i] = first + i;
    }
    graphi_output(g, "y", graphi_concat(g, SPLITS * OUTPUTS, part, 0));
    graphi_plan *plan;
    graphi_plan_info info;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.nodes, 1 + SPLITS); /* the products are one program; no copy */
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* 2,048 parts that 2,048 operations read as a whole would be four million edges: they are copied into it. */
static void parts_and_readers_have_no_square_of_edges(void **state)
{
    enum { PARTS = 2048 };
    static graphi_value part[PARTS];
    for (int readers = 1; readers <= PARTS; readers += PARTS - 1) {
        graphi_graph *g = new_graph();
        graphi_value x = vector(g, PARTS);
        for (int i = 0; i < PARTS; i++)
            part[i] = graphi_softmax(g, graphi_slice(g, x, 0, i, i + 1));
        graphi_value whole = graphi_concat(g, PARTS, part, 0);
        for (int i = 0; i < readers; i++)
            graphi_output(g, numbered("o", i), graphi_softmax(g, graphi_slice(g, whole, 0, i, PARTS)));
        graphi_plan *plan;
        graphi_plan_info info;
        check_ok(graphi_plan_create(g, machine, NULL, &plan));
        graphi_plan_get_info(plan, &info);
        assert_int_equal(info.nodes, PARTS + readers + (readers > 1));
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
}

/* What becomes ready at once and matters alike is not moved for what follows it. */
static void ready_tasks_are_not_moved_for_each_other(void **state)
{
    enum { READY = 5 * MANY };
    struct ready *room = calloc(2 * READY, sizeof *room);
    struct ready_list list = {.items = room + READY, .before = READY};
    for (int i = 0; i < READY; i++)
        ready_list_insert(&list, (struct ready){7, i});
    assert_int_equal(list.count, READY);
    for (int i = 0; i < READY; i++)
        assert_int_equal(list.items[READY - 1 - i].task, i);
    free(room);
}

/* Of so many operations it is not known who precedes whom, but that an operation follows what it reads. */
static void long_chains_work_in_place(void **state)
{
    enum { CHAIN = 40000 };
    graphi_graph *g = new_graph();
    graphi_value x = vector(g, 1024);
    for (int i = 0; i < CHAIN; i++)
        x = i % 2 ? graphi_softmax(g, x) : graphi_tanh(g, x);
    graphi_output(g, "y", x);
    graphi_plan *plan;
    graphi_plan_info info;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.nodes, CHAIN);
    assert_int_equal(info.arena_bytes, 1024 * sizeof(float));
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* --- memory --- */

/* Resident set at its highest, in MB. */
static long peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss >> 10;
}

/* A chain of tasks that all read one value: a relation between all of them would be 1.25 GB. */
static void relation_has_no_square_of_tasks(void **state)
{
    enum { TASKS = 100000 };
    static int32_t begin[TASKS + 1], next[TASKS], list[4 * TASKS];
    static struct memory_value value[TASKS];
    struct memory_solution solution;
    int32_t count = 0;
    for (int t = 0; t < TASKS; t++) {
        begin[t + 1] = t + 1 < TASKS ? t + 1 : t;
        next[t] = t + 1;
        list[count++] = t;
    }
    value[0] = (struct memory_value){.bytes = 1 << 20, .producers = 1, .readers = TASKS - 1};
    for (int v = 1; v < TASKS - 1; v++) {
        value[v] = (struct memory_value){.bytes = 1 << 12, .begin = count, .producers = 1, .readers = 1};
        list[count++] = v;
        list[count++] = v + 1;
    }
    const struct memory_problem problem = {.tasks = TASKS, .edges_begin = begin, .edges = next, .values = TASKS - 1,
                                           .value = value, .list = list, .cores = 2};
    const long before = peak_mb();
    check_ok(memory_plan(&problem, &solution));
    assert_true(solution.bytes > 0);
    if (peak_mb() - before > 700)
        fail_msg("%ld MB for %d tasks", peak_mb() - before, TASKS);
    memory_solution_free(&solution);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relation_has_no_square_of_tasks), /* first: what others took is no room for it */
        cmocka_unit_test(names_are_not_searched),
        cmocka_unit_test(second_names_and_updates_are_refused),
        cmocka_unit_test(ports_and_parameters_are_not_searched),
        cmocka_unit_test(packed_forms_are_not_searched),
        cmocka_unit_test(readers_are_not_searched_for_the_backward_pass),
        cmocka_unit_test(copies_of_views_are_not_traced_back),
        cmocka_unit_test(folded_constants_are_not_compared),
        cmocka_unit_test(outputs_are_not_searched_by_passes),
        cmocka_unit_test(forms_of_convolutions_are_not_compared),
        cmocka_unit_test(parts_are_not_held_against_each_other),
        cmocka_unit_test(parts_and_readers_have_no_square_of_edges),
        cmocka_unit_test(ready_tasks_are_not_moved_for_each_other),
        cmocka_unit_test(long_chains_work_in_place),
    };
    limit_time();
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
