/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays: declare `ARRAY(struct value) values;`, zero-initialise, array_push(&a, item) gives false when out of
 * memory (the array is then unchanged), array_free(&a). Elements are a.data[0 .. a.count). */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include "base/memory.h"

#include <stdbool.h>

#define ARRAY(type)                                                                                \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t count, capacity;                                                                    \
    }

static inline bool array_grow(void **data, size_t count, size_t *capacity, size_t size, size_t need)
{
    if (need <= *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    if (wanted < need)
        wanted = need;
    size_t bytes;
    if (__builtin_mul_overflow(wanted, size, &bytes))
        return false;
    void *grown = mem_resize(*data, count * size, bytes);
    if (!grown)
        return false;
    *data = grown;
    *capacity = wanted;
    return true;
}

#define array_reserve(a, n)                                                                        \
    array_grow((void **)&(a)->data, (a)->count, &(a)->capacity, sizeof *(a)->data, (n))
#define array_push(a, item)                                                                        \
    (array_reserve(a, (a)->count + 1) ? ((a)->data[(a)->count++] = (item), true) : false)
/* Gives back room that is not used; where that fails the array stays as it is. */
static inline void array_shrink(void **data, size_t count, size_t *capacity, size_t size)
{
    void *fitting = count < *capacity ? mem_resize(*data, count * size, count * size) : NULL;
    if (!fitting)
        return;
    *data = fitting;
    *capacity = count;
}
#define array_fit(a) array_shrink((void **)&(a)->data, (a)->count, &(a)->capacity, sizeof *(a)->data)

#define array_free(a)                                                                              \
    do {                                                                                           \
        mem_free((a)->data);                                                                       \
        (a)->data = NULL;                                                                          \
        (a)->count = (a)->capacity = 0;                                                            \
    } while (0)

#endif
