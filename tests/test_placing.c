/* SPDX-License-Identifier: Apache-2.0 */
/* What spares the arena planner work alters nothing that it finds: which item precedes which, found by blocks of items;
 * placing, which passes by whole shelves; the edges of a placing, whose search ends early. Each is held against the
 * plain way, pair by pair, on random problems of more items than a shelf has. */
#include "engine/compile/memory_items.h"
#include "engine/compile/memory_place.h"
#include "engine/compile/memory_sharing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "memory_sample.h"

static struct sample sample;
static struct planner planner;

static void add_value(int value, int64_t bytes, int producer, int reader)
{
    assert_true(array_push(&sample.tasks_of, producer) && array_push(&sample.tasks_of, reader));
    assert_true(array_push(&sample.edges, ((struct edge){producer, reader})));
    sample.value[value] = (struct memory_value){
        .bytes = bytes, .begin = (int32_t)sample.tasks_of.count - 2, .producers = 1, .readers = 1};
}

/* Large values of a short life, ever smaller ones; small values which lie upon those of their first tasks and live on,
 * so that ever lower ones are beside each other later; and values of that time, for which there is room between. */
static void draw_layers(void)
{
    enum { LAYERS = 200, VALUES = 4 * LAYERS, TASKS = 3 * LAYERS };
    sample = (struct sample){.value = mem_zalloc_array(VALUES, sizeof *sample.value)};
    for (int t = 0; t < LAYERS; t++) {
        add_value(t, 64 * 16 * (2 * LAYERS - t), t, t + 1);
        for (int i = 1; i < 3; i++)
            add_value(i * LAYERS + t, 64 * (1 + draw(8)), t, 2 * LAYERS + draw(LAYERS));
        add_value(3 * LAYERS + t, 64 * (1 + draw(20)), LAYERS + 1 + draw(LAYERS - 1), 2 * LAYERS + t);
    }
    edges_sort(&sample.edges);
    assert_int_equal(edges_successors(&sample.edges, TASKS, &sample.begin, &sample.list), GRAPHI_OK);
    sample.problem = (struct memory_problem){.tasks = TASKS, .edges_begin = sample.begin, .edges = sample.list,
                                             .values = VALUES, .value = sample.value, .list = sample.tasks_of.data};
}

/* Problems that differ in how far readers are, how many values are alike, and how long they live. */
static void draw_problem(int round)
{
    static const int back[] = {3, 30, 600};
    enum { TASKS = 600 };
    if (round % 4 == 3)
        draw_layers();
    else
        sample_create(&sample, TASKS, back[round % 3]);
    for (int v = 0; v < sample.problem.values && round % 4 == 1; v++)
        sample.value[v].bytes = 4096 << (v % 16 == 0);
    for (int v = 0; v < sample.problem.values && round % 4 == 2; v++)
        sample.value[v].kept |= v % 8 > 0;
    planner = (struct planner){.problem = &sample.problem};
    assert_int_equal(planner_prepare(&planner, 0), GRAPHI_OK);
    assert_true(planner.count > 5 * PLANNER_SHELF);
}

static void free_problem(void)
{
    planner_free(&planner);
    sample_free(&sample);
}

/* --- the relation --- */

static bool all_precede(const struct ancestors *ancestors, int i, int j)
{
    int before, after;
    const struct memory_value *first = &sample.value[planner.item[i].value];
    const struct memory_value *then = &sample.value[planner.item[j].value];
    const int32_t *early = planner_tasks(&sample.problem, planner.item[i].value, &before);
    const int32_t *late = planner_tasks(&sample.problem, planner.item[j].value, &after);
    for (int a = 0; a < before; a++)
        for (int b = 0; b < then->producers; b++)
            if (!ancestors_has(ancestors, late[b], early[a]))
                return false;
    return !first->kept;
}

static void relation_is_that_of_pairs(void **state)
{
    for (int round = 0; round < 4; round++) {
        struct ancestors ancestors;
        int related = 0;
        draw_problem(round);
        assert_int_equal(
            ancestors_create(sample.problem.tasks, sample.begin, sample.list, NULL, &ancestors), GRAPHI_OK);
        for (int i = 0; i < planner.count; i++)
            for (int j = 0; j < planner.count; j++) {
                const bool precedes = all_precede(&ancestors, i, j);
                related += precedes;
                assert_int_equal(planner_precedes(&planner, i, j), precedes);
                assert_int_equal(planner_orders(&planner, i, j), precedes || all_precede(&ancestors, j, i));
            }
        assert_true(related > 0);
        ancestors_free(&ancestors);
        free_problem();
    }
}

/* --- placing --- */

static bool may_follow(const struct item *a, const struct item *b, int64_t window)
{
    return window >= 0 && a->last < b->first && b->begin_ns - a->end_ns >= window &&
           planner_pair_edges(a, b) <= PLANNER_MOST_EDGES;
}

/* Places an item behind `count` others, which lie by offset, as it then does too. */
static int64_t place_plainly(int at, int64_t window, struct spot *placed, int count)
{
    const struct item *item = &planner.item[at];
    int64_t end = 0, best = -1, best_gap = INT64_MAX;
    for (int k = 0; k < count; k++) {
        const struct spot *other = &placed[k];
        if (other->end <= end || planner_orders(&planner, at, other->item) ||
            may_follow(item, &planner.item[other->item], window) ||
            may_follow(&planner.item[other->item], item, window))
            continue;
        if (other->offset - end >= item->bytes && other->offset - end < best_gap)
            best = end, best_gap = other->offset - end;
        end = other->end;
    }
    const int64_t offset = best >= 0 ? best : end;
    int k = count;
    for (; k > 0 && placed[k - 1].offset > offset; k--)
        placed[k] = placed[k - 1];
    placed[k] = (struct spot){offset, offset + item->bytes, at};
    return offset;
}

/* An item in other bytes than those of the plain way: the arena would depend on how its planner saves work. */
static void shelves_alter_no_offset(void **state)
{
    struct spot *placed = mem_alloc(2000 * sizeof *placed);
    for (int round = 0; round < 12; round++) {
        draw_problem(round);
        const int64_t windows[] = {-1, 0, planner.total_ns / 50, planner.total_ns / 4};
        planner_set_order(&planner, round % PLANNER_ORDERS);
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            int64_t used = 0;
            const int64_t found = planner_place(&planner, windows[w]);
            for (int n = 0; n < planner.count; n++) {
                const struct item *item = &planner.item[planner.order[n]];
                const int64_t offset = place_plainly(planner.order[n], windows[w], placed, n);
                assert_int_equal(item->offset, offset);
                used = offset + item->bytes > used ? offset + item->bytes : used;
            }
            assert_int_equal(found, used);
        }
        free_problem();
    }
    mem_free(placed);
}

static double seconds_since(clock_t begin) { return (double)(clock() - begin) / CLOCKS_PER_SEC; }

/* Values that all live at once are placed shelf by shelf: at most a quarter of the plain way's CPU time, by turns in
 * one process; 3 % is usual, and without shelves it would be all of it. */
static void values_that_live_at_once_are_placed_by_shelves(void **state)
{
    enum { TASKS = 8000, TRIES = 3 };
    sample_create(&sample, TASKS, 1);
    for (int v = 0; v < sample.problem.values; v++)
        sample.value[v].kept = true;
    planner = (struct planner){.problem = &sample.problem};
    assert_int_equal(planner_prepare(&planner, 0), GRAPHI_OK);
    planner_set_order(&planner, 0);
    struct spot *placed = mem_alloc(sizeof *placed * (size_t)planner.count);
    double shelves = 1, plain = 0;
    for (int i = 0; i < TRIES && shelves > plain / 4; i++) {
        clock_t begin = clock();
        planner_place(&planner, 0);
        shelves = seconds_since(begin);
        begin = clock();
        for (int n = 0; n < planner.count; n++)
            assert_int_equal(place_plainly(planner.order[n], 0, placed, n), planner.item[planner.order[n]].offset);
        plain = seconds_since(begin);
    }
    if (shelves > plain / 4)
        fail_msg("%.4f s by shelves, %.4f s one by one", shelves, plain);
    mem_free(placed);
    free_problem();
}

/* --- edges --- */

static bool meet(const struct item *a, const struct item *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static int by_last(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    const int32_t last = planner.item[x].last, other = planner.item[y].last;
    return last != other ? (last < other) - (last > other) : x - y;
}

static void add_edges(int i, int j, edge_array *edges)
{
    const struct item *a = &planner.item[i], *b = &planner.item[j];
    for (int e = 0; e < a->ends_count && !planner_precedes(&planner, i, j); e++)
        for (int s = 0; s < b->starts_count; s++) {
            const int32_t end = planner.border.data[a->ends + e], start = planner.border.data[b->starts + s];
            if (!ancestors_has(&planner.ancestors, start, end))
                assert_true(array_push(edges, ((struct edge){end, start})));
        }
}

/* The plain way: from each item to those that follow it in its bytes, unless to one of these from another such that
 * follows it in bytes of both; the one that ends last is asked first. */
static void add_plain_edges(edge_array *edges)
{
    const size_t count = (size_t)planner.count;
    int *late = mem_alloc(sizeof *late * count), *near = mem_alloc(sizeof *near * count);
    for (int i = 0; i < planner.count; i++)
        late[i] = i;
    qsort(late, count, sizeof *late, by_last);
    for (int j = 0; j < planner.count; j++) {
        const struct item *b = &planner.item[j];
        int nears = 0;
        for (int k = 0; k < planner.count; k++) {
            const struct item *a = &planner.item[late[k]];
            bool implied = a->last >= b->first || !meet(a, b);
            for (int n = 0; n < nears && !implied; n++)
                implied = a->last < planner.item[near[n]].first && meet(a, &planner.item[near[n]]);
            if (implied)
                continue;
            near[nears++] = late[k];
            add_edges(late[k], j, edges);
        }
    }
    mem_free(late);
    mem_free(near);
}

/* One edge less, and a value is overwritten; one more, and each execution pays for it. */
static void edges_are_those_of_pairs(void **state)
{
    size_t all = 0;
    for (int round = 0; round < 6; round++) {
        edge_array found = {0}, plain = {0};
        draw_problem(round);
        planner_set_order(&planner, round % PLANNER_ORDERS);
        planner_place(&planner, round % 2 ? 0 : planner.total_ns / 50);
        assert_int_equal(planner_edges(&planner, &found), GRAPHI_OK);
        add_plain_edges(&plain);
        edges_sort(&found);
        edges_sort(&plain);
        assert_int_equal(found.count, plain.count);
        if (found.count)
            assert_memory_equal(found.data, plain.data, found.count * sizeof *found.data);
        all += found.count;
        array_free(&found);
        array_free(&plain);
        free_problem();
    }
    assert_true(all > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relation_is_that_of_pairs),
        cmocka_unit_test(shelves_alter_no_offset),
        cmocka_unit_test(values_that_live_at_once_are_placed_by_shelves),
        cmocka_unit_test(edges_are_those_of_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
