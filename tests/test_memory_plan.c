/* SPDX-License-Identifier: Apache-2.0 */
/* The arena planner against random graphs and random schedules: no value is overwritten before its last reader ran,
 * whatever order the tasks take that the graph and the added edges allow. */
#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/memory_items.h"
#include "engine/compile/memory_makespan.h"
#include "engine/compile/memory_place.h"
#include "engine/compile/memory_sharing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "memory_check.h"
#include "memory_sample.h"

/* Runs the tasks in a random order that respects the edges, writing and reading owners of 64-byte cells; gives the
 * number of values found overwritten. */
static int overwritten(const struct sample *s, const struct memory_solution *solution)
{
    const struct memory_problem *p = &s->problem;
    int cells = (int)(solution->bytes / 64) + 1, faults = 0, left = p->tasks;
    int32_t *owner = mem_alloc(sizeof *owner * (size_t)cells);
    int *pending = mem_zalloc_array((size_t)p->tasks, sizeof *pending);
    bool *done = mem_zalloc_array((size_t)p->tasks, sizeof *done);
    edge_array all = {0};
    for (size_t e = 0; e < s->edges.count; e++)
        array_push(&all, s->edges.data[e]);
    for (size_t e = 0; e < solution->edges.count; e++)
        array_push(&all, solution->edges.data[e]);
    for (size_t e = 0; e < all.count; e++)
        pending[all.data[e].to]++;
    while (left > 0) {
        int32_t t = draw(p->tasks);
        while (done[t] || pending[t])
            t = (t + 1) % p->tasks;
        done[t] = true;
        left--;
        for (int v = 0; v < p->values; v++) {
            int64_t first = solution->offset[v] / 64, last = (solution->offset[v] + p->value[v].bytes - 1) / 64;
            for (int r = 0; r < p->value[v].readers; r++)
                if (p->list[p->value[v].begin + 1 + r] == t)
                    for (int64_t c = first; c <= last; c++)
                        faults += owner[c] != v;
            if (p->list[p->value[v].begin] == t)
                for (int64_t c = first; c <= last; c++)
                    owner[c] = v;
        }
        for (size_t e = 0; e < all.count; e++)
            if (all.data[e].from == t)
                pending[all.data[e].to]--;
    }
    for (int v = 0; v < p->values; v++)
        if (p->value[v].kept)
            for (int64_t c = solution->offset[v] / 64; c <= (solution->offset[v] + p->value[v].bytes - 1) / 64; c++)
                faults += owner[c] != v;
    array_free(&all);
    mem_free(owner);
    mem_free(pending);
    mem_free(done);
    return faults;
}

/* Without it a value could be overwritten while a reader still runs, in some order of the tasks only. */
static void nothing_is_overwritten(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct sample s;
        struct memory_solution solution;
        sample_create(&s, 5 + draw(120), 1 + draw(30));
        assert_int_equal(memory_plan(&s.problem, &solution), GRAPHI_OK);
        assert_int_equal(memory_check(&s.problem, &solution), GRAPHI_OK);
        for (int order = 0; order < 4; order++)
            assert_int_equal(overwritten(&s, &solution), 0);
        memory_solution_free(&solution);
        sample_free(&s);
    }
}

/* Without it the arena could be larger than promised, and nobody would see it but by running out of memory. */
static void target_is_met(void **state)
{
    int met = 0, rounds = 40;
    for (int round = 0; round < rounds; round++) {
        struct sample s;
        struct memory_solution solution;
        sample_create(&s, 200, 12);
        assert_int_equal(memory_plan(&s.problem, &solution), GRAPHI_OK);
        assert_true(solution.bytes <= solution.sum_bytes);
        assert_true(solution.bytes >= solution.live_maximum);
        met += solution.bytes <= solution.live_maximum / 100 * 115 + 64;
        memory_solution_free(&solution);
        sample_free(&s);
    }
    assert_true(met >= rounds * 3 / 4); /* a few values of odd sizes cannot always be packed tightly */
}

/* Four tasks of 3, 5, 4 and 2 ns, the last after the first two: two cores take 7 ns (5 and 2 beside 3 and 4), one core
 * 14, and two cores 9 where an added edge makes the third wait for the second. Without it an order that costs time
 * would be taken for one that does not. */
static void time_is_estimated(void **state)
{
    const int32_t begin[] = {0, 1, 2, 2, 2}, list[] = {3, 3};
    const int64_t ns[] = {3, 5, 4, 2};
    struct memory_problem problem = {.tasks = 4, .edges_begin = begin, .edges = list, .ns = ns, .cores = 2};
    edge_array none = {0}, added = {0};
    int64_t found, path;
    assert_int_equal(memory_makespan(&problem, &none, &found, &path), GRAPHI_OK);
    assert_true(found == 7 && path == 7);
    assert_true(array_push(&added, ((struct edge){0, 2})));
    assert_int_equal(memory_makespan(&problem, &added, &found, &path), GRAPHI_OK);
    assert_true(found == 7 && path == 7);
    added.data[0] = (struct edge){1, 2};
    assert_int_equal(memory_makespan(&problem, &added, &found, &path), GRAPHI_OK);
    assert_true(found == 9 && path == 9);
    problem.cores = 1;
    assert_int_equal(memory_makespan(&problem, &none, &found, NULL), GRAPHI_OK);
    assert_int_equal(found, 14);
    array_free(&added);
}

static int64_t time_of(const struct sample *s, const struct memory_solution *solution)
{
    int64_t ns;
    assert_int_equal(memory_makespan(&s->problem, &solution->edges, &ns, NULL), GRAPHI_OK);
    return ns;
}

/* Without a target the arena becomes smaller than the promise where that costs no time: a planner that stops at the
 * promise leaves bytes, one that goes on to the serial order leaves cores idle (planted by a target of one byte). */
static void smaller_where_it_costs_no_time(void **state)
{
    int smaller[2] = {0}, slower = 0;
    for (int round = 0; round < 40; round++) {
        bool equal = round % 4 < 2;
        struct sample s;
        struct memory_solution first, tight, serial;
        sample_create(&s, 200, 12);
        for (int v = 0; v < s.problem.values && equal; v++)
            s.value[v].bytes = 65536; /* as the cells of an unrolled network */
        s.problem.cores = round % 2 ? 3 : 1; /* on one core no order costs time */
        assert_int_equal(memory_plan(&s.problem, &tight), GRAPHI_OK);
        assert_int_equal(memory_check(&s.problem, &tight), GRAPHI_OK);
        s.problem.target = tight.live_maximum / 100 * 115;
        assert_int_equal(memory_plan(&s.problem, &first), GRAPHI_OK);
        s.problem.target = 1;
        assert_int_equal(memory_plan(&s.problem, &serial), GRAPHI_OK);
        assert_true(tight.bytes <= first.bytes || time_of(&s, &tight) < time_of(&s, &first));
        smaller[equal] += tight.bytes < first.bytes;
        slower += time_of(&s, &serial) > time_of(&s, &tight);
        assert_true(!equal || tight.bytes == first.bytes ||
                    time_of(&s, &tight) <= time_of(&s, &first) + time_of(&s, &first) / 256);
        memory_solution_free(&first);
        memory_solution_free(&tight);
        memory_solution_free(&serial);
        sample_free(&s);
    }
    assert_true(smaller[true] >= 5 && smaller[false] >= 5);
    assert_true(slower >= 10);
}

/* What an execution needs anyway makes bytes of the arena cheap: then it grows where that saves time. */
static void bytes_beside_weigh(void **state)
{
    int faster = 0;
    for (int round = 0; round < 30; round++) {
        struct sample s;
        struct memory_solution alone, beside;
        sample_create(&s, 200, 12);
        s.problem.cores = 3;
        assert_int_equal(memory_plan(&s.problem, &alone), GRAPHI_OK);
        s.problem.beside = 100 * alone.bytes;
        assert_int_equal(memory_plan(&s.problem, &beside), GRAPHI_OK);
        assert_int_equal(memory_check(&s.problem, &beside), GRAPHI_OK);
        assert_in_range(time_of(&s, &beside), 1, time_of(&s, &alone) + time_of(&s, &alone) / 64);
        faster += time_of(&s, &beside) < time_of(&s, &alone) && beside.bytes > alone.bytes;
        memory_solution_free(&alone);
        memory_solution_free(&beside);
        sample_free(&s);
    }
    assert_true(faster >= 5);
}

/* Branches of a large value that one task makes and the next reduces, as convolutions and their pools: hardly anything
 * lives at a time, so that within the promise each branch waits for the one before. Without it two cores would do the
 * work of one. */
static void branches_are_not_queued(void **state)
{
    enum { BRANCHES = 8, TASKS = 2 * BRANCHES, LARGE = 1 << 20, SMALL = 1 << 14 };
    int32_t begin[TASKS + 1], list[BRANCHES], tasks_of[3 * BRANCHES];
    struct memory_value value[TASKS];
    for (int b = 0; b < BRANCHES; b++) {
        begin[2 * b] = b;
        begin[2 * b + 1] = b + 1;
        list[b] = 2 * b + 1;
        value[2 * b] = (struct memory_value){.bytes = LARGE, .begin = 3 * b, .producers = 1, .readers = 1};
        value[2 * b + 1] = (struct memory_value){.bytes = SMALL, .begin = 3 * b + 2, .producers = 1, .kept = true};
        tasks_of[3 * b] = 2 * b;
        tasks_of[3 * b + 1] = tasks_of[3 * b + 2] = 2 * b + 1;
    }
    begin[TASKS] = BRANCHES;
    struct memory_problem problem = {.tasks = TASKS,
                                     .edges_begin = begin,
                                     .edges = list,
                                     .values = TASKS,
                                     .value = value,
                                     .list = tasks_of,
                                     .cores = 2};
    struct memory_solution solution;
    int64_t ns, queued;
    assert_int_equal(memory_plan(&problem, &solution), GRAPHI_OK);
    assert_int_equal(memory_check(&problem, &solution), GRAPHI_OK);
    assert_int_equal(memory_makespan(&problem, &solution.edges, &ns, NULL), GRAPHI_OK);
    assert_in_range(ns, BRANCHES, BRANCHES + 2);
    assert_in_range(solution.bytes, 2 * LARGE, 3 * LARGE);
    int64_t promise = solution.live_maximum / 100 * 115;
    memory_solution_free(&solution);
    problem.target = promise;
    assert_int_equal(memory_plan(&problem, &solution), GRAPHI_OK);
    assert_int_equal(memory_makespan(&problem, &solution.edges, &queued, NULL), GRAPHI_OK);
    assert_true(queued > 2 * ns - 4);
    memory_solution_free(&solution);
}

enum { MANY = 12016 }; /* more than take part in sharing */

/* Tasks of 1 ns that write a megabyte each, in so many chains side by side (0: none needs another). */
static void plan_many(int chains, void (*check)(const struct memory_problem *, const struct memory_solution *))
{
    int32_t *begin = mem_zalloc((MANY + 1) * sizeof *begin), *tasks_of = mem_zalloc(2 * MANY * sizeof *tasks_of);
    int32_t *next = mem_zalloc(MANY * sizeof *next), edges = 0, listed = 0;
    int64_t *ns = mem_zalloc(MANY * sizeof *ns);
    struct memory_value *value = mem_zalloc(MANY * sizeof *value);
    for (int t = 0; t < MANY; t++) {
        bool read = chains && t + chains < MANY;
        value[t] = (struct memory_value){.bytes = 1 << 20, .begin = listed, .producers = 1, .readers = read};
        tasks_of[listed++] = t;
        if (read)
            tasks_of[listed++] = next[edges++] = t + chains;
        begin[t + 1] = edges;
        ns[t] = 1;
    }
    struct memory_problem problem = {.tasks = MANY,
                                     .edges_begin = begin,
                                     .edges = next,
                                     .values = MANY,
                                     .value = value,
                                     .list = tasks_of,
                                     .ns = ns,
                                     .cores = 16};
    struct memory_solution solution;
    assert_int_equal(memory_plan(&problem, &solution), GRAPHI_OK);
    assert_int_equal(memory_check(&problem, &solution), GRAPHI_OK);
    assert_in_range(solution.edges.count, 1, 2 * MANY);
    assert_true(solution.bytes < solution.sum_bytes / 10);
    check(&problem, &solution);
    memory_solution_free(&solution);
    mem_free(begin);
    mem_free(tasks_of);
    mem_free(next);
    mem_free(ns);
    mem_free(value);
}

static void check_nothing(const struct memory_problem *problem, const struct memory_solution *solution) {}

/* An edge for each pair of values in the same bytes would be 72 million. Where one value is beyond those that take
 * part, all of its size once had bytes of their own. */
static void edges_are_few(void **state) { plan_many(0, check_nothing); }

static void check_time(const struct memory_problem *problem, const struct memory_solution *solution)
{
    int64_t ns;
    assert_int_equal(memory_makespan(problem, &solution->edges, &ns, NULL), GRAPHI_OK);
    assert_in_range(ns, 1, MANY * 3 / 4);
}

/* The bytes of values that do not take part were once asked of the others: then no order is too long. */
static void values_beyond_those_that_share_cost_no_time(void **state) { plan_many(16, check_time); }

/* Two branches, each a value that PARTS tasks read, each of which writes a part of one that another task sums up. */
enum { PARTS = 5000, BRANCH = PARTS + 2, WIDE = PARTS * 256, EDGES = 4 * PARTS };

struct branches {
    int32_t begin[2 * BRANCH + 1], next[EDGES], tasks_of[8 * PARTS];
    struct memory_value value[4];
    struct memory_problem problem;
};

static void value_add(struct branches *b, int *values, int *listed, int producers, int first, int readers, int reader)
{
    b->value[(*values)++] =
        (struct memory_value){.bytes = WIDE, .begin = *listed, .producers = producers, .readers = readers};
    for (int i = 0; i < producers; i++)
        b->tasks_of[(*listed)++] = first + i;
    for (int i = 0; i < readers; i++)
        b->tasks_of[(*listed)++] = reader + i;
}

static void branches_create(struct branches *b)
{
    int edges = 0, values = 0, listed = 0;
    for (int t = 0; t < 2 * BRANCH; t++) {
        const int task = t % BRANCH, from = t - task;
        for (int part = 1; part <= PARTS && task == 0; part++)
            b->next[edges++] = from + part;
        if (task >= 1 && task <= PARTS)
            b->next[edges++] = from + PARTS + 1;
        b->begin[t + 1] = edges;
    }
    for (int from = 0; from < 2 * BRANCH; from += BRANCH) {
        value_add(b, &values, &listed, 1, from, PARTS, from + 1);
        value_add(b, &values, &listed, PARTS, from + 1, 1, from + PARTS + 1);
    }
    b->problem = (struct memory_problem){.tasks = 2 * BRANCH,
                                         .edges_begin = b->begin,
                                         .edges = b->next,
                                         .values = values,
                                         .value = b->value,
                                         .list = b->tasks_of};
}

/* Edges of the largest-first placing in the serial order, which takes so many bytes. */
static size_t serial_edges(const struct memory_problem *problem, int64_t bytes)
{
    struct planner p = {.problem = problem};
    edge_array edges = {0};
    assert_int_equal(planner_prepare(&p, 0), GRAPHI_OK);
    planner_set_order(&p, 0);
    assert_int_equal(planner_place(&p, 0), bytes);
    assert_int_equal(planner_edges(&p, &edges), GRAPHI_OK);
    size_t count = edges.count;
    array_free(&edges);
    planner_free(&p);
    return count;
}

/* Edges from each task of a value to each producer of another were 25 million, 200 MB, for every placing that was
 * weighed. Those from its last task are enough; where none is last, as of the parts' readers, the two stay apart. */
static void parts_cost_edges_once(void **state)
{
    static struct branches b;
    branches_create(&b);
    assert_in_range(serial_edges(&b.problem, 2 * whole_lines(WIDE)), PARTS, 2 * PARTS);
    struct memory_solution solution;
    assert_int_equal(memory_plan(&b.problem, &solution), GRAPHI_OK);
    assert_int_equal(memory_check(&b.problem, &solution), GRAPHI_OK);
    memory_solution_free(&solution);
    b.value[1] = b.value[3]; /* with the first value: PARTS readers, then PARTS producers */
    b.problem.values = 2;
    assert_int_equal(serial_edges(&b.problem, 2 * whole_lines(WIDE)), 0);
}

/* A value whose last reader may still run is overwritten: planted by sharing bytes by serial order, without edges. The
 * judge and the random schedules must both find it. */
static void serial_lifetimes_are_caught(void **state)
{
    int judged = 0, ran = 0;
    for (int round = 0; round < 20; round++) {
        struct sample s;
        struct memory_solution solution;
        sample_create(&s, 80, 6);
        s.problem.target = 1; /* as small as can be: the serial order, made true by edges */
        assert_int_equal(memory_plan(&s.problem, &solution), GRAPHI_OK);
        assert_true(solution.edges.count > 0);
        solution.edges.count = 0;
        judged += memory_check(&s.problem, &solution) != GRAPHI_OK;
        ran += overwritten(&s, &solution) > 0;
        memory_solution_free(&solution);
        sample_free(&s);
    }
    assert_int_equal(judged, 20);
    assert_true(ran >= 15);
}

/* What the judge looks at, one by one: value 0 is made by task 0 and read by task 1 (if at all), value 1 is made by
 * task 2. A judge that passes over readers or outputs finds something all the same where everything is wrong. */
static void the_judge_finds_each_fault(void **state)
{
    static const struct {
        const char *what;
        int readers;
        bool kept, after_maker, after_reader;
        int64_t offset; /* of value 1 */
        bool sound;
    } cases[] = {{"in order", 1, false, false, true, 0, true},
                 {"the reader may still run", 1, false, true, false, 0, false},
                 {"half of the bytes", 1, false, true, false, 64, false},
                 {"other bytes", 1, false, true, false, 128, true},
                 {"an output", 1, true, false, true, 0, false},
                 {"no reader", 0, false, true, false, 0, true},
                 {"no reader, nor an order", 0, false, false, false, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t begin[4] = {0, 1, 1, 1}, next[] = {1}, tasks_of[] = {0, 1, 2};
        struct memory_value value[] = {
            {.bytes = 128, .producers = 1, .readers = cases[i].readers, .kept = cases[i].kept},
            {.bytes = 128, .begin = 2, .producers = 1}};
        struct memory_problem problem = {
            .tasks = 3, .edges_begin = begin, .edges = next, .values = 2, .value = value, .list = tasks_of};
        int64_t offset[] = {0, cases[i].offset};
        struct memory_solution solution = {.offset = offset};
        if (cases[i].after_maker)
            assert_true(array_push(&solution.edges, ((struct edge){0, 2})));
        if (cases[i].after_reader)
            assert_true(array_push(&solution.edges, ((struct edge){1, 2})));
        if ((memory_check(&problem, &solution) == GRAPHI_OK) != cases[i].sound)
            fail_msg("%s: found %s, expected it %s", cases[i].what, cases[i].sound ? graphi_message() : "nothing",
                     cases[i].sound ? "to be taken" : "to be refused");
        array_free(&solution.edges);
    }
}

/* Without it a failed allocation would leave a half-made plan or leak. */
static void allocation_failures_are_reported(void **state)
{
    struct sample s;
    struct memory_solution solution;
    sample_create(&s, 60, 10);
    graphi_status status = GRAPHI_MEMORY;
    for (int n = 0; status == GRAPHI_MEMORY; n++) {
        assert_true(n < 1000);
        mem_fail_after(n);
        status = memory_plan(&s.problem, &solution);
        mem_fail_after(-1);
    }
    assert_int_equal(status, GRAPHI_OK);
    memory_solution_free(&solution);
    sample_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_overwritten),
        cmocka_unit_test(target_is_met),
        cmocka_unit_test(time_is_estimated),
        cmocka_unit_test(smaller_where_it_costs_no_time),
        cmocka_unit_test(bytes_beside_weigh),
        cmocka_unit_test(branches_are_not_queued),
        cmocka_unit_test(edges_are_few),
        cmocka_unit_test(values_beyond_those_that_share_cost_no_time),
        cmocka_unit_test(parts_cost_edges_once),
        cmocka_unit_test(serial_lifetimes_are_caught),
        cmocka_unit_test(the_judge_finds_each_fault),
        cmocka_unit_test(allocation_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
