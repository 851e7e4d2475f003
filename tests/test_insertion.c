/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules made by insertion (engine/choose/insertion.c). */
#include "dag.h"
#include "engine/choose/insertion.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORKERS = 16, MOST = 200, MOST_EDGES = MOST * DAG_MOST_INPUTS };
static const double GBS = 100;

/* Everything that insertion needs beside a graph: all measured widths are choices. */
struct given {
    struct insertion_input in;
    int32_t from_begin[MOST + 1], from[MOST_EDGES + 1], begin[DAG_CURVES + 1];
    struct choice choices[DAG_CURVES * CURVE_SAMPLES];
    double bytes[DAG_CURVES], key[MOST];
    uint16_t width[MOST];
};

static void give(const struct dag *g, int workers, double memory, struct given *p)
{
    int32_t edges = 0, choices = 0;
    for (int t = 0; t < g->tasks.count; t++) {
        p->from_begin[t] = edges;
        for (int i = 0; i < g->inputs_count[t]; i++)
            p->from[edges++] = g->inputs[t][i];
        p->key[t] = (double)g->level[t];
        p->width[t] = 1;
    }
    p->from_begin[g->tasks.count] = edges;
    for (int c = 0; c < DAG_CURVES; c++) {
        p->begin[c] = choices;
        for (int i = 0; i < g->curves[c].samples && g->curves[c].width[i] <= workers; i++)
            p->choices[choices++] = (struct choice){g->curves[c].width[i], g->curves[c].ns[i]};
        p->bytes[c] = memory * g->curves[c].ns[0] * (c % 3);
    }
    p->begin[DAG_CURVES] = choices;
    p->in = (struct insertion_input){.tasks = &g->tasks,
                                     .workers = workers,
                                     .from_begin = p->from_begin,
                                     .from = p->from,
                                     .choices = p->choices,
                                     .choices_begin = p->begin,
                                     .bytes = p->bytes,
                                     .gbs = GBS};
}

static double end_of(const struct dag *g, const struct given *p, const double *start, int t)
{
    return start[t] + curve_ns(&g->curves[g->curve_of[t]], p->width[t]);
}

/* Nothing starts before its inputs; at every start workers and, with `memory`, bandwidth suffice. */
static void check_schedule(const struct dag *g, const struct given *p, const double *start, double length, bool memory)
{
    for (int t = 0; t < g->tasks.count; t++) {
        double workers = 0, gbs = 0;
        assert_true(end_of(g, p, start, t) <= length + 1e-6);
        for (int i = 0; i < g->inputs_count[t]; i++)
            assert_true(start[t] >= end_of(g, p, start, g->inputs[t][i]) - 1e-6);
        for (int u = 0; u < g->tasks.count; u++)
            if (start[u] <= start[t] && end_of(g, p, start, u) > start[t] + 1e-6) {
                workers += p->width[u];
                gbs += fmin(GBS, p->bytes[g->curve_of[u]] / (end_of(g, p, start, u) - start[u]));
            }
        assert_true(workers <= p->in.workers);
        assert_true(!memory || gbs <= GBS / 0.999 + 1e-6);
    }
}

/* A gap that is none, an input ignored, a hint about where nothing fits kept for another shape, or more than the memory
 * gives. */
static void schedules_are_valid(void **state)
{
    for (int seed = 0; seed < 24; seed++) {
        struct dag *g = dag_random_graph((uint64_t)seed, MOST, 1 + seed, 1000, seed % 3);
        struct given *p = calloc(1, sizeof *p);
        struct insertion *insertion;
        int64_t steps;
        give(g, WORKERS, 0.04 * GBS, p);
        assert_int_equal(insertion_create(&p->in, &insertion), GRAPHI_OK);
        for (int price = -1; price <= 2; price++)
            for (int memory = 0; memory < 2; memory++) {
                double length = insertion_run(insertion, p->width, p->key, price, memory, INT64_MAX, &steps);
                check_schedule(g, p, insertion_start(insertion), length, memory);
                assert_true(steps > 0);
            }
        insertion_destroy(insertion);
        free(p);
        dag_free(g);
    }
}

/* Widths that were to be kept change, or the same question gets another answer the second time. */
static void widths_are_kept_and_runs_repeat(void **state)
{
    struct dag *g = dag_random_graph(3, MOST, 7, 1000, 0);
    struct given *p = calloc(1, sizeof *p);
    struct insertion *insertion;
    int64_t steps;
    give(g, WORKERS, 0, p);
    assert_int_equal(insertion_create(&p->in, &insertion), GRAPHI_OK);
    for (int t = 0; t < MOST; t++)
        p->width[t] = (uint16_t)(1 + t % 5); /* most of them no choices */
    double first = insertion_run(insertion, p->width, p->key, -1, false, INT64_MAX, &steps);
    for (int t = 0; t < MOST; t++)
        assert_int_equal(p->width[t], 1 + t % 5);
    insertion_run(insertion, p->width, p->key, 1, false, INT64_MAX, &steps);
    for (int t = 0; t < MOST; t++)
        p->width[t] = (uint16_t)(1 + t % 5);
    assert_true(insertion_run(insertion, p->width, p->key, -1, false, INT64_MAX, &steps) == first);
    assert_true(insertion_run(insertion, p->width, p->key, 1, false, 1, &steps) == INFINITY);
    for (int t = 0; t < MOST; t++)
        assert_int_equal(p->width[t], 1 + t % 5); /* a limit that leaves no time for a schedule leaves widths too */
    insertion_destroy(insertion);
    free(p);
    dag_free(g);
}

/* The shortest schedule of a small graph at given widths: insertion in some order makes it, so all orders are tried. */
static double shortest(struct insertion *insertion, struct given *p, int count, int at, double *key)
{
    double best = INFINITY;
    int64_t steps;
    if (at == count)
        return insertion_run(insertion, p->width, key, -1, false, INT64_MAX, &steps);
    for (int t = 0; t < count; t++)
        if (key[t] < 0) {
            key[t] = count - at;
            best = fmin(best, shortest(insertion, p, count, at + 1, key));
            key[t] = -1;
        }
    return best;
}

/* Insertion by level makes something shorter than the optimum, or far from it: it is at most two fifths longer, and on
 * three of four small graphs the optimum itself. */
static void small_graphs_are_near_the_optimum(void **state)
{
    int equal = 0, graphs = 20;
    for (int seed = 0; seed < graphs; seed++) {
        enum { SMALL = 6 };
        struct dag *g = dag_random_graph(100 + (uint64_t)seed, SMALL, 2, 1000, 0);
        struct given *p = calloc(1, sizeof *p);
        struct insertion *insertion;
        int64_t steps;
        double key[SMALL];
        give(g, 4, 0, p);
        assert_int_equal(insertion_create(&p->in, &insertion), GRAPHI_OK);
        for (int t = 0; t < SMALL; t++) {
            p->width[t] = (uint16_t)(1 + dag_random((uint64_t)seed, t, 9) % 4);
            key[t] = -1;
        }
        for (int t = SMALL - 1; t >= 0; t--) {
            p->key[t] = 0;
            for (int32_t e = g->begin[t]; e < g->begin[t + 1]; e++)
                p->key[t] = fmax(p->key[t], p->key[g->edges[e]]);
            p->key[t] += curve_ns(&g->curves[g->curve_of[t]], p->width[t]);
        }
        double ours = insertion_run(insertion, p->width, p->key, -1, false, INT64_MAX, &steps);
        double best = shortest(insertion, p, SMALL, 0, key);
        assert_true(ours >= 0.999999 * best && ours <= 1.4 * best);
        equal += ours <= 1.000001 * best;
        insertion_destroy(insertion);
        free(p);
        dag_free(g);
    }
    assert_true(equal >= graphs * 3 / 4);
}

/* What list scheduling cannot do: a long narrow task that is ready at once must wait, because a wide one on the
 * critical path will be ready before it ends. Chain of 100, 100 and 150 ns on 2, 4 and 2 of 4 workers, beside it one of
 * 150 on 2. */
static void workers_are_kept_free_for_a_task_to_come(void **state)
{
    struct dag *g = dag_empty(4);
    static const double ns[] = {100, 100, 150, 150};
    static const int width[] = {2, 4, 2, 2};
    struct given *p = calloc(1, sizeof *p);
    struct insertion *insertion;
    int64_t steps;
    for (int t = 0; t < 4; t++) {
        g->curve_of[t] = t;
        g->curves[t] = (struct cost_curve){.samples = 1, .width = {width[t]}, .ns = {ns[t]}, .best = width[t]};
        if (t == 1 || t == 2)
            g->inputs[t][g->inputs_count[t]++] = t - 1;
    }
    dag_finish(g);
    give(g, 4, 0, p);
    for (int t = 0; t < 4; t++)
        p->width[t] = (uint16_t)width[t];
    assert_int_equal(insertion_create(&p->in, &insertion), GRAPHI_OK);
    assert_true(insertion_run(insertion, p->width, p->key, -1, false, INT64_MAX, &steps) == 350);
    assert_true(insertion_start(insertion)[3] == 200);
    insertion_destroy(insertion);
    free(p);
    dag_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_valid),
        cmocka_unit_test(widths_are_kept_and_runs_repeat),
        cmocka_unit_test(small_graphs_are_near_the_optimum),
        cmocka_unit_test(workers_are_kept_free_for_a_task_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
