/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of 100,000 and more names, values and operations: what is looked up once for each of them is not looked for
 * among all of them. No clock is set a limit: the same work is done for a few and for so many times as many, by turns,
 * and the CPU time of the two is compared. If the work is in proportion, it takes that many times as long (half as many
 * times again where the many do not fit into the caches), if it takes the square, that many times that many; the limit
 * is halfway, 64 for 16 times as many. Others that use the machine would have to slow down one of the two alone, by
 * more than twice, three times in a row. */
#include "passes/passes.h"

#include "base/isa.h"
#include "engine/cost/curve_set.h"
#include "engine/compile/memory.h"
#include "engine/compile/plan.h"
#include "engine/run/forms.h"
#include "engine/run/state.h"
#include "graph/op.h"
#include "graphi/graphi.h"
#include "schedule/heap.h"

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

enum { MANY = 120000, TIMES = 16, TRIES = 3 };

/* --- work in proportion --- */

struct growth {
    void (*work)(int count);
    int few, many;
};

static double seconds_of(const struct growth *growth, int count)
{
    const clock_t begin = clock();
    growth->work(count);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* The least of some: others only add to it. */
static double least_seconds_of(const struct growth *growth, int count)
{
    double least = seconds_of(growth, count);
    for (int i = 1; i < TRIES; i++)
        least = fmin(least, seconds_of(growth, count));
    return least;
}

static bool in_proportion(const struct growth *growth, double *few, double *many)
{
    const double times = (double)growth->many / growth->few;
    for (int i = 0; i < TRIES; i++) {
        *few = least_seconds_of(growth, growth->few);
        *many = seconds_of(growth, growth->many);
        if (*many <= *few * times * sqrt(times))
            return true;
    }
    return false;
}

static void grows_in_proportion(void **state)
{
    const struct growth *growth = *state;
    double few, many;
    if (!in_proportion(growth, &few, &many))
        fail_msg("%.4f s for %d, %.4f s for %d", few, growth->few, many, growth->many);
}

/* A test of the work, with the same for a part of it. */
#define GROWS_FROM(work, few, many) {#work, grows_in_proportion, NULL, NULL, &(struct growth){work, few, many}}
#define GROWS(work) GROWS_FROM(work, MANY / TIMES, MANY)

/* Does the judge see a square, and nothing else? */
static volatile uint64_t touched;

static void touch(int count)
{
    for (int i = 0; i < 100 * count; i++)
        touched++;
}

static void touch_square(int count)
{
    for (int i = 0; i < count * count; i++)
        touched++;
}

static void squares_are_seen(void **state)
{
    enum { FEW = 1000 }; /* whose square takes more than a millisecond, which is lost easily */
    double few, many;
    assert_true(in_proportion(&(struct growth){touch, FEW, FEW * TIMES}, &few, &many));
    assert_false(in_proportion(&(struct growth){touch_square, FEW, FEW * TIMES}, &few, &many));
}

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
static int scattered(int i, int count) { return (int)((int64_t)i * 7919 % count); }

static graphi_value vector(graphi_graph *g, int64_t elements)
{
    return graphi_input(g, "x", GRAPHI_F32, 1, &elements);
}

/* --- names --- */

static void names_are_not_searched(int count)
{
    graphi_graph *g = new_graph();
    for (int i = 0; i < count; i++) {
        graphi_value p = graphi_parameter(g, numbered("p", scattered(i, count)), GRAPHI_F32, 0, NULL, NULL);
        graphi_output(g, numbered("o", i), graphi_assign(g, p, p));
    }
    check_ok(graph_check(g));
    for (int i = 0; i < count; i++) {
        assert_int_equal(graphi_find(g, numbered("p", scattered(i, count))), 2 * i);
        assert_int_equal(graphi_find(g, numbered("o", i)), 2 * i + 1);
    }
    assert_int_equal(graphi_find(g, "p"), GRAPHI_NONE);
    graphi_parameter(g, numbered("p", count / 2), GRAPHI_F32, 0, NULL, NULL);
    assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
    graphi_graph_destroy(g);
}

static void inputs_are_not_counted(int count)
{
    graphi_port port;
    graphi_graph *g = new_graph();
    for (int i = 0; i < count; i++)
        graphi_relu(g, graphi_input(g, numbered("x", i), GRAPHI_F32, 0, NULL));
    for (int i = 0; i < count; i++)
        assert_true(graphi_graph_at(g, GRAPHI_PORT_INPUT, i, &port) && strcmp(port.name, numbered("x", i)) == 0);
    assert_false(graphi_graph_at(g, GRAPHI_PORT_INPUT, count, &port));
    assert_false(graphi_graph_at(g, GRAPHI_PORT_INPUT, -1, &port));
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
static graphi_graph *ports(int count)
{
    graphi_graph *g = new_graph();
    for (int i = 0; i < count; i++) {
        const graphi_initializer init = {.kind = GRAPHI_INIT_CONSTANT, .a = i};
        graphi_input(g, numbered("x", i), GRAPHI_F32, 0, NULL);
        graphi_value p = graphi_parameter(g, numbered("p", scattered(i, count)), GRAPHI_F32, 0, NULL, &init);
        graphi_output(g, numbered("o", i), p);
    }
    check_ok(graphi_graph_status(g));
    return g;
}

static void ports_and_parameters_are_not_searched(int count)
{
    graphi_graph *g = ports(count);
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    for (int i = 0; i < count; i++)
        check_ok(graphi_run_set(run, numbered("x", i), GRAPHI_F32, &(float){1}, sizeof(float)));
    check_ok(graphi_run_execute(run));
    for (int i = 0; i < count; i++) {
        float found;
        check_ok(graphi_run_get(run, numbered("o", i), GRAPHI_F32, &found, sizeof found));
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

static void packed_forms_are_not_searched(int count)
{
    graphi_graph *g = new_graph();
    graphi_state *s;
    graphi_parameter(g, "p", GRAPHI_F32, 0, NULL, NULL);
    check_ok(graphi_state_create(g, 1, &s));
    struct parameter *source = state_parameter(s, "p");
    struct form_wanted *wanted = calloc((size_t)count, sizeof *wanted);
    struct packed_form **form = calloc((size_t)count, sizeof(struct packed_form *));
    for (int i = 0; i < count; i++)
        wanted[i] = (struct form_wanted){.key = (uint64_t)i % (count - 1), .source = &source, .sources = 1, .bytes = 4};
    check_ok(state_take_forms(s, wanted, (size_t)count - 1, form));
    check_ok(state_take_forms(s, wanted, (size_t)count, form));
    assert_ptr_equal(form[count - 1], form[0]);
    free(wanted);
    free(form);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

static void curves_are_not_searched(int count)
{
    graphi_curves *curves;
    const graphi_climb samples = {.samples = 1, .width = {1}, .compact_ns = {1000}};
    check_ok(graphi_curves_open(machine, NULL, &curves));
    for (int i = 0; i < 2 * count; i++)
        check_ok(graphi_curves_add(curves, (uint64_t)scattered(i % count, count), "model", &samples));
    assert_int_equal(curve_set_count(curves), count);
    graphi_curves_close(curves);
}

/* --- passes --- */

static const struct pass_options options = {.isa = ISA_PLAIN};

/* Nobody reads x in the backward pass, of which there is none. */
static void readers_are_not_searched_for_the_backward_pass(int count)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_softmax(g, vector(g, 4));
    for (int i = 0; i < count; i++)
        graphi_tanh(g, x);
    check_ok(pass_recompute(g, &options));
    assert_int_equal(g->nodes.count, count + 1);
    graphi_graph_destroy(g);
}

/* Each copy asks whether a parameter that is updated is behind the views before it. */
static void copies_of_views_are_not_traced_back(int count)
{
    graphi_graph *g = new_graph();
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 1, (int64_t[]){count + 1}, NULL), x = p;
    for (int i = 0; i < count; i++) {
        x = graphi_slice(g, x, 0, 0, count - i);
        graphi_identity(g, x);
    }
    graphi_assign(g, p, graphi_identity(g, graphi_neg(g, p)));
    check_ok(pass_identities(g, &options));
    assert_int_equal(g->nodes.count, 2 * count + 2); /* all but that of what is no parameter */
    graphi_graph_destroy(g);
}

/* Each result is new. */
static void folded_constants_are_not_compared(int count)
{
    graphi_graph *g = new_graph();
    graphi_value sum = vector(g, 4);
    for (int i = 0; i < 2 * count; i++) {
        graphi_value c = graphi_constant(g, GRAPHI_I32, 0, NULL, &i);
        graphi_op(g, "cast", 1, &c, 1, (graphi_attribute[]){{.name = "dtype", .type = GRAPHI_INT, .i = GRAPHI_F32}});
    }
    graphi_output(g, "y", sum);
    check_ok(pass_fold(g, &options));
    assert_int_equal(g->nodes.count, 0);
    graphi_graph_destroy(g);
}

static void outputs_are_not_searched_by_passes(int count)
{
    graphi_graph *g = new_graph();
    graphi_value x = vector(g, 4);
    for (int i = 0; i < count; i++)
        graphi_output(g, numbered("o", i), graphi_relu(g, x));
    check_ok(pass_pool(g, &options));
    assert_int_equal(g->nodes.count, count);
    graphi_graph_destroy(g);
}

/* Convolutions of other weights, each of which asks who shares its form. */
static void forms_of_convolutions_are_not_compared(int count)
{
    graphi_graph *g = new_graph();
    const int64_t image[] = {1, 4, 4, 16}, window[] = {3, 3, 16, 16}, pads[] = {1, 1, 1, 1};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, image);
    for (int i = 0; i < count; i++) {
        graphi_value w = graphi_parameter(g, numbered("w", i), GRAPHI_F32, 4, window, NULL);
        graphi_conv2d(g, x, w, NULL, 0, pads, 4, NULL, 0, 1);
    }
    check_ok(pack_convolutions(g, &(struct pass_options){.isa = isa_detect()}));
    assert_true((int)g->nodes.count >= count);
    graphi_graph_destroy(g);
}

/* Products of one input: those of it alone become one, 64 at a time, those that add one of another input do not. */
static void products_are_not_held_against_each_other(int count)
{
    enum { MERGED = 64 };
    graphi_graph *g = new_graph();
    const int64_t one[] = {1, 1};
    const graphi_attribute two = {.name = "pairs", .type = GRAPHI_INT, .i = 2};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, one);
    for (int i = 0; i < count; i++) {
        graphi_value w = graphi_parameter(g, numbered("w", i), GRAPHI_F32, 2, one, NULL);
        graphi_value other = graphi_input(g, numbered("z", i), GRAPHI_F32, 2, one);
        graphi_matmul(g, x, w, 0, 0);
        graphi_op(g, "matmul", 4, (graphi_value[]){x, w, other, w}, 1, &two);
    }
    check_ok(pass_merge(g, &options));
    assert_int_equal(g->nodes.count, 2 * count + 2 * ((count + MERGED - 1) / MERGED)); /* parts; weights, products */
    graphi_graph_destroy(g);
}

/* Weights that two operands meet, each of which searches what comes after them. */
static void batches_are_not_searched_without_end(int count)
{
    graphi_graph *g = new_graph();
    const int64_t row[] = {1, 64}, square[] = {64, 64};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, row), y = graphi_input(g, "y", GRAPHI_F32, 2, row);
    for (int i = 0; i < count; i++) {
        graphi_value w = graphi_parameter(g, numbered("w", i), GRAPHI_F32, 2, square, NULL);
        x = graphi_matmul(g, x, w, 0, 0);
        y = graphi_matmul(g, y, w, 0, 0);
    }
    check_ok(pass_batch(g, &options));
    assert_true((int)g->nodes.count > 2 * count); /* some are one, and cut apart again */
    graphi_graph_destroy(g);
}

/* --- places --- */

/* The parts of a concatenation, whether one is there twice and where each lies: of vectors they are one copy. */
static void parts_are_not_held_against_each_other(int count)
{
    enum { SPLITS = 4 };
    graphi_value *part = calloc(SPLITS * (size_t)count, sizeof *part);
    graphi_graph *g = new_graph();
    graphi_value x = vector(g, count);
    for (int s = 0; s < SPLITS; s++) {
        graphi_attribute attributes[] = {{.name = "axis", .type = GRAPHI_INT, .i = 0},
                                         {.name = "outputs", .type = GRAPHI_INT, .i = count}};
        graphi_value factor = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){(float)s + 2});
        graphi_value scaled = graphi_mul(g, x, factor), first = graphi_op(g, "split", 1, &scaled, 2, attributes);
        for (int i = 0; i < count; i++)
            part[s * count + i] = first + i;
    }
    graphi_output(g, "y", graphi_concat(g, SPLITS * count, part, 0));
    graphi_plan *plan;
    graphi_plan_info info;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.nodes, 1 + SPLITS); /* the products are one program; no copy */
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    free(part);
}

/* Are there as few edges as layout.c promises, and those between other operations? Gives the number of tasks. */
static int tasks_with_few_edges(const graphi_graph *g)
{
    enum { EDGES = 1 << 20, EDGES_A_NODE = 70 };
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    const struct compiled *c = plan->compiled;
    const int tasks = c->tasks;
    assert_in_range(c->edges_begin[tasks] - c->ordering_edges, 1, EDGES + EDGES_A_NODE * c->graph->nodes.count);
    graphi_plan_destroy(plan);
    return tasks;
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

/* Those that take the whole in as a part are copies, too, but for one. */
static void places_that_share_a_part_have_no_square_of_edges(void **state)
{
    enum { PARTS = 2048 };
    static graphi_value part[PARTS];
    for (int behind_view = 0; behind_view < 2; behind_view++) {
        graphi_graph *g = new_graph();
        graphi_value x = vector(g, PARTS);
        for (int i = 0; i < PARTS; i++)
            part[i] = graphi_softmax(g, graphi_slice(g, x, 0, i, i + 1));
        graphi_value whole = graphi_concat(g, PARTS, part, 0);
        for (int i = 0; i < PARTS; i++) {
            graphi_value read = behind_view ? graphi_slice(g, whole, 0, i, PARTS) : whole;
            graphi_value own = graphi_softmax(g, part[i]);
            graphi_output(g, numbered("o", i), graphi_concat(g, 2, (graphi_value[]){read, own}, 0));
        }
        tasks_with_few_edges(g);
        graphi_graph_destroy(g);
    }
}

/* Concatenations of concatenations, each of which somebody reads, who would wait for all before it. */
static graphi_graph *links_new(int count, bool doubled)
{
    graphi_graph *g = new_graph();
    graphi_value in = vector(g, count), x = GRAPHI_NONE;
    for (int i = 0; i < count; i++) {
        graphi_value part = graphi_softmax(g, graphi_slice(g, in, 0, i, i + 1));
        x = i ? graphi_concat(g, 2, (graphi_value[]){x, part}, 0) : part;
        graphi_value reader = doubled ? graphi_concat(g, 2, (graphi_value[]){x, x}, 0) : x;
        graphi_output(g, numbered("o", i), graphi_reduce_sum(g, reader, NULL, 0, 0));
    }
    return g;
}

static void links_have_no_square_of_edges(int count)
{
    graphi_graph *g = links_new(count, false);
    tasks_with_few_edges(g);
    graphi_graph_destroy(g);
}

/* Read by another concatenation that copies them, each link is waited for by two; by one, no more than necessary is
 * copied. */
static void readers_of_links_are_counted(void **state)
{
    enum { LINKS = 1400, DOUBLED = 2500 };
    graphi_graph *g = links_new(LINKS, false);
    assert_int_equal(tasks_with_few_edges(g), 2 * LINKS);
    graphi_graph_destroy(g);
    g = links_new(DOUBLED, true);
    tasks_with_few_edges(g);
    graphi_graph_destroy(g);
}

/* What becomes ready at once and matters alike is not moved for what follows it. */
static void ready_tasks_are_not_moved_for_each_other(int count)
{
    struct ready *room = calloc(2 * (size_t)count, sizeof *room);
    struct ready_list list = {.items = room + count, .before = count};
    for (int i = 0; i < count; i++)
        ready_list_insert(&list, (struct ready){7, i});
    assert_int_equal(list.count, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(list.items[count - 1 - i].task, i);
    free(room);
}

/* Of so many operations it is not known who precedes whom, but that an operation follows what it reads. */
static void long_chains_work_in_place(int count)
{
    graphi_graph *g = new_graph();
    graphi_value x = vector(g, 1024);
    for (int i = 0; i < count; i++)
        x = i % 2 ? graphi_softmax(g, x) : graphi_tanh(g, x);
    graphi_output(g, "y", x);
    graphi_plan *plan;
    graphi_plan_info info;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.nodes, count);
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
        cmocka_unit_test(squares_are_seen),
        GROWS(names_are_not_searched),
        GROWS(inputs_are_not_counted),
        cmocka_unit_test(second_names_and_updates_are_refused),
        GROWS(ports_and_parameters_are_not_searched),
        GROWS(packed_forms_are_not_searched),
        GROWS_FROM(curves_are_not_searched, 1000, 16000),
        GROWS(readers_are_not_searched_for_the_backward_pass),
        GROWS(copies_of_views_are_not_traced_back),
        GROWS(folded_constants_are_not_compared),
        GROWS(outputs_are_not_searched_by_passes),
        GROWS(forms_of_convolutions_are_not_compared),
        GROWS_FROM(products_are_not_held_against_each_other, 1000, 16000),
        GROWS_FROM(batches_are_not_searched_without_end, 1000, 16000),
        GROWS_FROM(parts_are_not_held_against_each_other, (1 << 16) / TIMES, 1 << 16),
        cmocka_unit_test(parts_and_readers_have_no_square_of_edges),
        cmocka_unit_test(places_that_share_a_part_have_no_square_of_edges),
        cmocka_unit_test(readers_of_links_are_counted),
        GROWS_FROM(links_have_no_square_of_edges, 500, 8000),
        GROWS_FROM(ready_tasks_are_not_moved_for_each_other, 5 * MANY / TIMES, 5 * MANY),
        GROWS_FROM(long_chains_work_in_place, 40000 / TIMES, 40000),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
