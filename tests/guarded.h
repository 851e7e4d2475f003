/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that end where an unreadable page begins (or begin where one ends), so that a kernel that reads or writes
 * outside its arguments stops the test; and the random numbers that the kernel tests share. */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct guarded {
    void *data;
    void *map;
    size_t map_bytes;
};

static inline struct guarded guarded_new(size_t bytes, bool at_start)
{
    const size_t page = 4096;
    /* QEMU (7.2) reads all of a vector that the mask of vmaskmov leaves out, so emulated runs cannot have these pages.
     */
    int outside = getenv("GRAPHI_TESTS_EMULATED") ? PROT_READ | PROT_WRITE : PROT_NONE;
    size_t body = (bytes + page - 1) / page * page;
    struct guarded g = {.map_bytes = body + 2 * page};
    g.map = mmap(NULL, g.map_bytes, outside, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED)
        abort();
    if (body && mprotect((char *)g.map + page, body, PROT_READ | PROT_WRITE))
        abort();
    g.data = (char *)g.map + page + (at_start ? 0 : body - bytes);
    return g;
}

static inline void guarded_free(struct guarded *g)
{
    if (g->map)
        munmap(g->map, g->map_bytes);
    g->map = NULL;
}

/* The same numbers in every run of a test program. */
static inline int64_t random_below(int64_t n)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)((state >> 11) % (uint64_t)n);
}

static inline void fill_random(float *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)random_below(2001) / 1000.0f - 1.0f;
}

static inline struct guarded guarded_random(int64_t floats, bool at_start)
{
    struct guarded g = guarded_new((size_t)floats * sizeof(float), at_start);
    fill_random(g.data, floats);
    return g;
}

/* Within the bound, or not a finite number of the same kind. */
static inline bool number_close(float found, double expected, double bound)
{
    return isfinite(expected) ? fabs((double)found - expected) <= bound
           : isnan(expected)  ? isnan(found) : (double)found == expected;
}

#endif
