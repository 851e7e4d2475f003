/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned, counted, fault-injectable heap. */
#include "base/memory.h"

#include "base/place.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES ((size_t)1 << 21)
#ifdef __SANITIZE_ADDRESS__
#define MAP_BYTES SIZE_MAX /* always the heap's, whose ends AddressSanitizer guards */
#else
#define MAP_BYTES ((size_t)1 << 18)
#endif

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

/* Blocks of several megabytes lie in huge pages where the kernel gives them: an array of tasks that is walked once a
 * step misses the address translation at every task otherwise. */
static void *alloc_large(size_t bytes)
{
    void *pointer = NULL;
    if (posix_memalign(&pointer, HUGE_BYTES, bytes) == 0) /* aligned_alloc would want a size in whole huge pages */
        madvise(pointer, bytes & ~(HUGE_BYTES - 1),
                MADV_HUGEPAGE); /* a hint; the rest of a page is not to become resident */
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

static size_t mapped_bytes(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) & ~(page - 1);
}

/* The mapping starts at a multiple of `slack` (0: of a page) and ends with its last page: no more than asked for ever
 * becomes resident. */
static void *map_aligned(size_t bytes, size_t slack)
{
    char *raw = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    size_t before = slack ? (size_t)(-(uintptr_t)raw & (slack - 1)) : 0;
    if (before)
        munmap(raw, before);
    if (slack > before)
        munmap(raw + before + bytes, slack - before);
    return raw + before;
}

/* Where the calling thread's place says so, and as many are left; NULL else. */
static void *map_reserved(size_t bytes)
{
    if (bytes < HUGE_BYTES || !place_wants_huge())
        return NULL;
    void *pointer = mmap(NULL, (bytes + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return pointer == MAP_FAILED ? NULL : pointer;
}

bool mem_is_mapped(size_t bytes) { return bytes >= MAP_BYTES; }

void *mem_map(size_t bytes)
{
    if (bytes < MAP_BYTES)
        return mem_zalloc(bytes);
    if (refused() || bytes > SIZE_MAX / 2)
        return NULL;
    bool huge = bytes >= 2 * HUGE_BYTES;
    void *pointer = map_reserved(bytes), *reserved = pointer;
    if (!pointer)
        pointer = map_aligned(mapped_bytes(bytes), huge ? HUGE_BYTES : 0);
    if (pointer && huge && !reserved)
        madvise(pointer, mapped_bytes(bytes), MADV_HUGEPAGE);
    if (pointer)
        place_bind(pointer, mapped_bytes(bytes)); /* whether that is allowed was tried before, and is told there */
    return pointer;
}

void mem_unmap(void *pointer, size_t bytes)
{
    if (bytes < MAP_BYTES)
        mem_free(pointer);
    else if (pointer && munmap(pointer, mapped_bytes(bytes)) != 0) /* reserved huge pages go as a whole */
        munmap(pointer, (bytes + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
}

/* Whole pages of an array: bytes, from *first on. */
static size_t whole_pages(void *pointer, size_t bytes, char **first)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)pointer & (page - 1);
    *first = (char *)pointer + before;
    return bytes < before ? 0 : (bytes - before) & ~(page - 1);
}

/* Left to huge pages, the system would one day gather what is still there around the gap into one, and fill the gap. */
bool mem_release(void *pointer, size_t bytes)
{
    char *first;
    size_t inside = whole_pages(pointer, bytes, &first);
    if (!inside)
        return false;
    if (madvise(first, inside, MADV_DONTNEED) != 0) /* locked, say */
        return false;
    madvise(first, inside, MADV_NOHUGEPAGE);
    return true;
}

void mem_renew(void *pointer, size_t bytes)
{
    char *first;
    size_t inside = whole_pages(pointer, bytes, &first);
    if (inside)
        madvise(first, inside, MADV_HUGEPAGE);
}

void mem_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

uint64_t mem_allocations(void) { return atomic_load_explicit(&allocations, memory_order_relaxed); }

void mem_fail_after(long n) { atomic_store(&allowed, n); }
