/* SPDX-License-Identifier: Apache-2.0 */
/* The order of random input graphs, a chain of a million, parts of a batch, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"
#include "input_graphs.h"

static void order_has_children_first(void **state)
{
    (void)state;
    static struct batch b;
    graphi_frontier *f;
    const graphi_frontier_options options = {.vertices = MOST, .edges = MOST_EDGES, .functions = 2};
    check_ok(graphi_frontier_create(&options, &f));
    for (int round = 0; round < 20; round++) {
        random_batch(&b, 8, 40, 4);
        check_ok(graphi_frontier_set(f, &b.graphs));
        graphi_frontier_lists l;
        assert_true(graphi_frontier_get(f, &l));
        assert_int_equal(l.vertices, b.graphs.vertices);
        int64_t rows = 0, edges = 0;
        for (int64_t i = 0; i < l.vertices; i++) {
            assert_int_equal(l.slot[l.vertex[i]], i);
            const int32_t v = l.vertex[i], before = i ? l.vertex[i - 1] : -1;
            int32_t last = -1;
            for (int32_t e = b.begin[v]; e < b.begin[v + 1]; e++) {
                last = l.round[b.child[e]] > last ? l.round[b.child[e]] : last;
                assert_int_equal(l.child[l.child_begin[i] + e - b.begin[v]], l.slot[b.child[e]]);
            }
            assert_int_equal(l.round[v], last + 1);
            if (i) /* by function, round, vertex */
                assert_true(b.function[before] < b.function[v] ||
                            (b.function[before] == b.function[v] &&
                             (l.round[before] < l.round[v] || (l.round[before] == l.round[v] && before < v))));
            int32_t parent = -1;
            for (int32_t p = l.parent_begin[i]; p < l.parent_begin[i + 1]; p++, edges++) {
                int32_t s = 0;
                while (l.child_begin[s + 1] <= l.parent_edge[p])
                    s++;
                assert_true(l.vertex[s] >= parent); /* parents in the order of vertices */
                parent = l.vertex[s];
                assert_int_equal(l.child[l.parent_edge[p]], i);
            }
        }
        assert_int_equal(edges, b.graphs.edges);
        int32_t reached = -1;
        for (int64_t k = 0; k < l.blocks; k++) {
            const int32_t round_of = l.round[l.vertex[l.block_slot[k]]];
            assert_true(round_of >= reached);
            reached = round_of;
            for (int32_t r = 0; r < l.block_rows[k]; r++)
                assert_int_equal(l.round[l.vertex[l.block_slot[k] + r]], round_of);
            rows += l.block_rows[k];
        }
        assert_int_equal(rows, l.vertices);
    }
    graphi_frontier_destroy(f);
}

static void depth_has_no_limit(void **state)
{
    (void)state;
    enum { DEEP = 1000000 };
    graphi_frontier *f;
    const graphi_frontier_options options = {.vertices = DEEP};
    int32_t *sample = calloc(DEEP, 4), *begin = calloc(DEEP + 1, 4), *child = calloc(DEEP, 4);
    for (int32_t v = 0; v < DEEP; v++) {
        begin[v + 1] = v + 1 < DEEP ? v + 1 : v;
        child[v] = v + 1;
    }
    const graphi_input_graphs g = {
        .samples = 1, .vertices = DEEP, .edges = DEEP - 1, .sample = sample, .child_begin = begin, .child = child};
    check_ok(graphi_frontier_create(&options, &f));
    check_ok(graphi_frontier_set(f, &g));
    graphi_frontier_lists l;
    assert_true(graphi_frontier_get(f, &l));
    assert_int_equal(l.rounds, DEEP);
    assert_int_equal(l.vertex[0], DEEP - 1);
    graphi_frontier_destroy(f);
    free(sample);
    free(begin);
    free(child);
}

static void wrong_graphs_are_refused(void **state)
{
    (void)state;
    graphi_frontier *f;
    const graphi_frontier_options options = {
        .vertices = 6, .edges = 6, .functions = 2, .one_root = true, .one_parent = true};
    check_ok(graphi_frontier_create(&options, &f));
    static const int32_t one[] = {0, 0, 0}, chain[] = {0, 1, 2, 2}, next[] = {1, 2, 0};
    graphi_input_graphs g = {
        .samples = 1, .vertices = 3, .edges = 2, .sample = one, .child_begin = chain, .child = next};
    check_ok(graphi_frontier_set(f, &g));
    graphi_input_graphs bad = g;
    bad.child_begin = (const int32_t[]){0, 1, 2, 3};
    bad.edges = 3;
    expect_refused(graphi_frontier_set(f, &bad), "cycle through vertex");
    assert_false(graphi_frontier_get(f, &(graphi_frontier_lists){0}));
    bad = g;
    bad.child = (const int32_t[]){1, 3};
    expect_refused(graphi_frontier_set(f, &bad), "found child 3 of vertex 1 of sample 0");
    bad.child = (const int32_t[]){1, -1};
    expect_refused(graphi_frontier_set(f, &bad), "found child -1");
    bad = g;
    bad.child_begin = (const int32_t[]){0, 1, 1, 1};
    bad.edges = 1;
    expect_refused(graphi_frontier_set(f, &bad), "found roots 0 and 2 of sample 0");
    bad = g;
    bad.child_begin = (const int32_t[]){0, 2, 2, 2};
    bad.child = (const int32_t[]){1, 1};
    expect_refused(graphi_frontier_set(f, &bad), "two parents of vertex 1");
    bad = g;
    bad.sample = (const int32_t[]){0, 0, 2};
    bad.samples = 3;
    expect_refused(graphi_frontier_set(f, &bad), "sample 1 without a vertex");
    bad = g;
    bad.samples = 2;
    expect_refused(graphi_frontier_set(f, &bad), "sample 1 without a vertex");
    bad = g;
    bad.sample = (const int32_t[]){0, 0, 1};
    bad.samples = 2;
    expect_refused(graphi_frontier_set(f, &bad), "a vertex of the same sample");
    bad = g;
    bad.child_begin = (const int32_t[]){0, 2, 1, 2};
    expect_refused(graphi_frontier_set(f, &bad), "do not fall");
    bad = g;
    bad.function = (const int32_t[]){0, 2, 0};
    expect_refused(graphi_frontier_set(f, &bad), "found function 2");
    bad = g;
    bad.vertices = 7;
    expect_refused(graphi_frontier_set(f, &bad), "where to cut the batch");
    bad = (graphi_input_graphs){.sample = one, .child_begin = chain};
    expect_refused(graphi_frontier_set(f, &bad), "expected at least one sample");
    graphi_frontier_destroy(f);
    expect_refused(graphi_frontier_create(&(graphi_frontier_options){.vertices = 0}, &f), "bounds");
}

static void batches_are_cut_at_samples(void **state)
{
    (void)state;
    static struct batch b;
    graphi_frontier *f;
    random_state = 3;
    random_batch(&b, 10, 12, 2);
    const graphi_frontier_options options = {.vertices = 20, .edges = 30, .functions = 2};
    check_ok(graphi_frontier_create(&options, &f));
    int64_t vertices = 0;
    for (int64_t first = 0, count; first < b.graphs.samples; first += count) {
        count = graphi_frontier_fits(f, &b.graphs, first);
        assert_true(count > 0);
        graphi_input_graphs part;
        check_ok(graphi_frontier_part(f, &b.graphs, first, count, &part));
        check_ok(graphi_frontier_set(f, &part));
        assert_int_equal(((const float *)part.value[0].rows)[0], b.x[vertices * X]);
        vertices += part.vertices;
        if (first + count < b.graphs.samples)
            expect_refused(graphi_frontier_part(f, &b.graphs, first, count + 1, &part), "within the bounds");
    }
    assert_int_equal(vertices, b.graphs.vertices);
    graphi_frontier_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_has_children_first),
        cmocka_unit_test(depth_has_no_limit),
        cmocka_unit_test(wrong_graphs_are_refused),
        cmocka_unit_test(batches_are_cut_at_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
