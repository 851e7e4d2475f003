/* SPDX-License-Identifier: Apache-2.0 */
/* Counts every call of the C library's heap that this program links, whoever makes it: the library counts its own
 * allocator's alone. For a program linked with --wrap (cmake/tests.cmake). */
#ifndef TESTS_HEAP_CALLS_H
#define TESTS_HEAP_CALLS_H

#include <stdatomic.h>
#include <stddef.h>

static atomic_ulong heap_calls;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
    return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
    return __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    atomic_fetch_add_explicit(&heap_calls, 1, memory_order_relaxed);
    return __real_posix_memalign(out, alignment, bytes);
}

#endif
