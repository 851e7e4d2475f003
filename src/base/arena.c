/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 64 KB (or one request, or what was reserved, if larger) in a list; the newest is filled first. What is not
 * given out is not touched. Large blocks are mappings, which lie where the thread's place says (base/place.h). */
#include "base/arena.h"

#include "base/memory.h"

#include <stdint.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(64) unsigned char bytes[];
};

enum { BLOCK_BYTES = 64 << 10 };

static struct arena_block *add_block(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    const size_t bytes = sizeof(struct arena_block) + size;
    struct arena_block *block = mem_is_mapped(bytes) ? mem_map(bytes) : mem_alloc(bytes);
    if (!block)
        return NULL;
    *block = (struct arena_block){.next = arena->blocks, .size = size};
    return arena->blocks = block;
}

bool arena_reserve(struct arena *arena, size_t bytes)
{
    const struct arena_block *block = arena->blocks;
    size_t room = block ? block->size - block->used : 0;
    return bytes == 0 || (room >= 64 && room - 64 >= bytes) || add_block(arena, bytes);
}

/* `alignment`: a power of two up to 64. */
static void *place(struct arena *arena, size_t bytes, size_t alignment)
{
    struct arena_block *block = arena->blocks;
    size_t at = block ? (block->used + alignment - 1) & ~(alignment - 1) : 0;
    if (!block || at > block->size || block->size - at < bytes) {
        block = add_block(arena, bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES);
        at = 0;
    }
    if (!block)
        return NULL;
    block->used = at + bytes;
    return block->bytes + at;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    void *array = place(arena, bytes, 16);
    return array ? memset(array, 0, bytes) : NULL;
}

void *arena_array(struct arena *arena, size_t bytes) { return place(arena, bytes, 64); }

void *arena_copy(struct arena *arena, const void *data, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes);
    return copy && bytes ? memcpy(copy, data, bytes) : copy;
}

char *arena_string(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1);
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->blocks, arena->blocks ? arena->blocks->used : 0};
}

void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    if (arena->blocks && arena->blocks == mark.block)
        arena->blocks->used = mark.used;
}

void arena_free(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        mem_unmap(block, sizeof *block + block->size); /* below the size of mappings: as mem_free */
    }
    arena->blocks = NULL;
}
