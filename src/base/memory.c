/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned, counted, fault-injectable heap. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)1 << 21)

static atomic_uint_fast64_t allocations;
static atomic_long allowed = -1; /* <0: no fault injection */

static int refused(void)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    long left = atomic_load_explicit(&allowed, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&allowed, &left, left - 1))
            return 0;
    return left == 0;
}

/* Blocks of several megabytes lie in huge pages where the kernel gives them: an array of tasks that is walked once a step
 * misses the address translation at every task otherwise. */
static void *alloc_large(size_t bytes)
{
    void *pointer = aligned_alloc(HUGE_BYTES, bytes);
    if (pointer)
        madvise(pointer, bytes, MADV_HUGEPAGE); /* a hint: refused is as well */
    return pointer;
}

void *mem_alloc(size_t bytes)
{
    if (refused() || bytes > SIZE_MAX - HUGE_BYTES)
        return NULL;
    size_t rounded = bytes ? (bytes + 63) & ~(size_t)63 : 64;
    return bytes < 2 * HUGE_BYTES ? aligned_alloc(64, rounded) : alloc_large(rounded);
}

void *mem_zalloc(size_t bytes)
{
    void *pointer = mem_alloc(bytes);
    if (pointer)
        memset(pointer, 0, bytes);
    return pointer;
}

void *mem_zalloc_array(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return mem_zalloc(bytes);
}

void *mem_resize(void *old, size_t old_bytes, size_t bytes)
{
    void *pointer = mem_alloc(bytes);
    if (!pointer)
        return NULL;
    if (old)
        memcpy(pointer, old, old_bytes < bytes ? old_bytes : bytes);
    mem_free(old);
    return pointer;
}

char *mem_string(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = mem_alloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void mem_free(void *pointer) { free(pointer); }

uint64_t mem_allocations(void) { return atomic_load_explicit(&allocations, memory_order_relaxed); }

void mem_fail_after(long n) { atomic_store(&allowed, n); }
