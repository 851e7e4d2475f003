/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 64 KB (or one request, if larger) in a list; the newest is filled first. */
#include "base/arena.h"

#include "base/memory.h"

#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

enum { BLOCK_BYTES = 64 * 1024 };

void *arena_alloc(struct arena *arena, size_t bytes)
{
    size_t need = (bytes + 15) & ~(size_t)15;
    if (need < bytes)
        return NULL;
    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < need) {
        size_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;
        block = mem_alloc(sizeof *block + size);
        if (!block)
            return NULL;
        *block = (struct arena_block){.next = arena->blocks, .size = size};
        arena->blocks = block;
    }
    void *pointer = block->bytes + block->used;
    block->used += need;
    return memset(pointer, 0, need);
}

void *arena_copy(struct arena *arena, const void *data, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes);
    return copy && bytes ? memcpy(copy, data, bytes) : copy;
}

char *arena_string(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1);
}

void arena_free(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        mem_free(block);
    }
    arena->blocks = NULL;
}
