/* SPDX-License-Identifier: Apache-2.0 */
/* Allotments as such. Any thread. */
#include "engine/choose/allotment.h"

#include "base/memory.h"

struct allotment *allotment_create(size_t tasks, int width)
{
    struct allotment *a = mem_zalloc(sizeof *a);
    if (!a)
        return NULL;
    a->width = mem_zalloc_array(tasks + 1, sizeof *a->width);
    a->key = mem_zalloc_array(tasks + 1, sizeof *a->key);
    if (!a->width || !a->key) {
        allotment_destroy(a);
        return NULL;
    }
    for (size_t t = 0; t < tasks; t++)
        a->width[t] = (uint16_t)width;
    return a;
}

void allotment_destroy(struct allotment *a)
{
    if (!a)
        return;
    mem_free(a->width);
    mem_free(a->key);
    mem_free(a);
}
