/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a schedule: its own block first, then what its parts ask for at creation; all of it goes with it. By
 * the thread that creates the schedule; usual: 20 to 30 blocks. */
#include "schedule/scheduler.h"

#include "base/memory.h"

#include <string.h>

static void *aligned(char *raw)
{
    return raw + ((uintptr_t)raw & 64);
}

struct schedule *schedule_block(void)
{
    char *raw = mem_zalloc(sizeof(struct schedule) + 64);
    struct schedule *s = raw ? aligned(raw) : NULL;
    if (s)
        s->raw[s->raw_count++] = raw;
    return s;
}

static void *alloc(struct schedule *s, size_t count, size_t size, bool zeroed)
{
    if (s->raw_count == (int)(sizeof s->raw / sizeof *s->raw))
        return NULL;
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    char *raw = zeroed ? mem_zalloc(bytes + 64) : mem_alloc(bytes + 64); /* the heap aligns to 64 */
    if (!raw)
        return NULL;
    s->raw[s->raw_count++] = raw;
    return aligned(raw);
}

void *schedule_alloc(struct schedule *s, size_t count, size_t size)
{
    return alloc(s, count, size, true);
}

void *schedule_alloc_raw(struct schedule *s, size_t count, size_t size)
{
    return alloc(s, count, size, false);
}

void schedule_destroy(struct schedule *s)
{
    if (!s)
        return;
    void *raw[sizeof s->raw / sizeof *s->raw];
    int count = s->raw_count;
    memcpy(raw, s->raw, sizeof raw);
    while (count > 0) /* the schedule itself is the first */
        mem_free(raw[--count]);
}
