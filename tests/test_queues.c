/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduling step keeps: ready tasks in a heap or a sorted list, idle workers in a bit map. */
#include "dag.h"

#include "schedule/bitmap.h"
#include "schedule/heap.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

/* The heap gives items out of order; the sorted list differs from it; ties do not go to the lower id. */
static void queues_agree_on_order(void **state)
{
    struct ready heap_items[300], list_items[300];
    struct heap heap = {.items = heap_items};
    struct ready_list list = {.items = list_items};
    for (int i = 0; i < 300; i++) {
        struct ready item = {dag_random(5, i, 0) % 50, i};
        heap_push(&heap, item);
        ready_list_insert(&list, item);
        if (i % 3 == 0) {
            struct ready best = heap_pop(&heap);
            assert_int_equal(best.task, list.items[list.count - 1].task);
            ready_list_remove(&list, list.count - 1);
        }
    }
    for (struct ready last = {INT64_MAX, 0}; heap.count;) {
        struct ready best = heap_pop(&heap);
        assert_true(ready_before(&last, &best));
        assert_int_equal(best.task, list.items[--list.count].task);
        last = best;
    }
}

/* Runs of idle workers are missed or claimed where there are none, against a loop over bits. */
static void bitmap_finds_runs(void **state)
{
    for (int seed = 0; seed < 200; seed++) {
        struct bitmap map = {0};
        int bits = 40 + seed * 7;
        for (int i = 0; i < bits; i++)
            if (dag_random((uint64_t)seed, i, 0) % 8)
                bitmap_set(&map, i);
        for (int width = 1; width <= 16; width++)
            for (int align = 1; align <= width; align += width - 1 ? width - 1 : 1) {
                int expected = -1;
                for (int at = 0; at + width <= bits && expected < 0; at += align) {
                    int length = 0;
                    while (length < width && bitmap_test(&map, at + length))
                        length++;
                    expected = length == width ? at : -1;
                }
                assert_int_equal(bitmap_run(&map, width, align, bits), expected);
            }
    }
}

/* The same of neighbours, where words at once could lose a run that goes over the end of one, or join two with busy
 * words between them: of many widths, in maps of which stretches of many lengths are set. */
static void neighbours_are_found_by_words(void **state)
{
    enum { BITS = 700 };
    for (int seed = 0; seed < 100; seed++) {
        struct bitmap map = {0};
        const uint32_t busy = 1 + dag_random((uint64_t)seed, 0, 1) % 150;
        const uint32_t idle = 1 + dag_random((uint64_t)seed, 0, 2) % 150;
        for (int at = 0, round = 1; at < BITS; round++) {
            at += (int)(dag_random((uint64_t)seed, round, 1) % busy);
            for (int end = at + (int)(dag_random((uint64_t)seed, round, 2) % idle); at < end && at < BITS; at++)
                bitmap_set(&map, at);
        }
        for (int width = 1; width <= 200; width++)
            assert_int_equal(bitmap_neighbours(&map, width), bitmap_run(&map, width, 1, BITS));
    }
}

/* Words at once could take a worker too many, forget one, or leave the summary behind, above all at ends of words. */
static void neighbours_are_taken_and_given_back_at_once(void **state)
{
    for (int from = 0; from < 200; from++)
        for (int count = 1; from + count <= 330; count += 1 + count / 7) {
            struct bitmap at_once = {0}, one_by_one = {0};
            bitmap_set_range(&at_once, from, count);
            for (int i = from; i < from + count; i++)
                bitmap_set(&one_by_one, i);
            assert_memory_equal(&at_once, &one_by_one, sizeof at_once);
            for (int i = 0; i < 330; i++) {
                bitmap_set(&at_once, i);
                bitmap_set(&one_by_one, i);
            }
            bitmap_clear_range(&at_once, from, count);
            for (int i = from; i < from + count; i++)
                bitmap_clear(&one_by_one, i);
            assert_memory_equal(&at_once, &one_by_one, sizeof at_once);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_agree_on_order),
        cmocka_unit_test(bitmap_finds_runs),
        cmocka_unit_test(neighbours_are_found_by_words),
        cmocka_unit_test(neighbours_are_taken_and_given_back_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
