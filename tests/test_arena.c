/* SPDX-License-Identifier: Apache-2.0 */
/* The bump allocator that graphs keep names in and states keep parameters in. */
#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ARRAYS = 200 };

/* A parameter off its cache line or on another one's bytes would only show as wrong or slow numbers. */
static void arrays_are_apart_and_aligned(void **context)
{
    (void)context;
    struct arena arena = {0};
    unsigned char *array[ARRAYS];
    size_t bytes[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        bytes[i] = i % 50 == 49 ? (size_t)3 << 20 : (size_t)(i * 7919 % 90001);
        array[i] = arena_array(&arena, bytes[i]);
        assert_non_null(array[i]);
        assert_int_equal((uintptr_t)array[i] % 64, 0);
        memset(array[i], i + 1, bytes[i]);
        assert_string_equal(arena_string(&arena, "between"), "between"); /* leaves the next place unaligned */
    }
    for (int i = 0; i < ARRAYS; i++)
        for (size_t b = 0; b < bytes[i]; b += 61)
            assert_int_equal(array[i][b], (unsigned char)(i + 1));
    arena_free(&arena);
}

/* Hundreds of weights must lie in one block, or none of them is in a huge page; and the block must be no larger than
 * they are. */
static void reserved_arrays_lie_together(void **context)
{
    (void)context;
    struct arena arena = {0};
    uint64_t before = mem_allocations();
    assert_non_null(arena_alloc(&arena, 100));
    assert_true(arena_reserve(&arena, (size_t)64 << 20));
    char *first = arena_array(&arena, (size_t)1 << 20), *last = first;
    for (int i = 1; i < 64; i++)
        last = arena_array(&arena, (size_t)1 << 20);
    assert_ptr_equal(last, first + ((size_t)63 << 20));
    assert_int_equal(mem_allocations() - before, 2);
    assert_non_null(arena_array(&arena, 64));
    assert_int_equal(mem_allocations() - before, 3);
    assert_false(arena_reserve(&arena, SIZE_MAX));
    arena_free(&arena);
}

/* What is taken back must be given out again, zeroed, and nothing before the mark; what began a block of its own stays.
 */
static void rewinding_gives_the_bytes_again(void **context)
{
    (void)context;
    struct arena arena = {0};
    char *before = arena_string(&arena, "before");
    struct arena_mark mark = arena_mark(&arena);
    unsigned char *first = arena_alloc(&arena, 100);
    memset(first, 1, 100);
    arena_rewind(&arena, mark);
    assert_ptr_equal(arena_alloc(&arena, 100), first);
    assert_int_equal(first[99], 0);
    assert_string_equal(before, "before");
    mark = arena_mark(&arena);
    char *large = arena_alloc(&arena, (size_t)1 << 20);
    arena_rewind(&arena, mark);
    assert_ptr_not_equal(arena_alloc(&arena, 16), large);
    arena_free(&arena);
}

/* Out of memory, or a size that overflows, is NULL and leaves the arena usable. */
static void failure_is_null(void **context)
{
    (void)context;
    struct arena arena = {0};
    assert_null(arena_array(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 100));
    mem_fail_after(0);
    void *refused = arena_array(&arena, 10);
    mem_fail_after(-1);
    assert_null(refused);
    assert_non_null(arena_array(&arena, 10));
    assert_null(arena_array(&arena, SIZE_MAX - 8));
    arena_free(&arena);
}

/* A name that is no UTF-8, as a file's may be, made a timeline that no browser and no JSON reader took. */
static void json_strings_are_utf8(void **context)
{
    (void)context;
    static const struct {
        const char *given, *expected;
    } cases[] = {
        {"a\"b\\c\n", "\"a\\\"b\\\\c\\u000a\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""}, /* as they are */
        {"\xff!", "\"\\ufffd!\""},                                   /* begins nothing */
        {"\xc3", "\"\\ufffd\""},                                      /* ends too early */
        {"\xe2\x82!", "\"\\ufffd\\ufffd!\""},
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                          /* longer than it must be */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},             /* half a surrogate pair */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* beyond the last character */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text = {0};
        text_add_json_string(&text, cases[i].given);
        assert_string_equal(text.data, cases[i].expected);
        text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_apart_and_aligned),
        cmocka_unit_test(reserved_arrays_lie_together),
        cmocka_unit_test(rewinding_gives_the_bytes_again),
        cmocka_unit_test(failure_is_null),
        cmocka_unit_test(json_strings_are_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
