/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator for things that live and die with one owner: names, attributes, id lists of a graph; parameters of a
 * state and their packed forms, which so lie in huge pages though each alone is smaller than one. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena {
    struct arena_block *blocks;
};

void *arena_alloc(struct arena *arena, size_t bytes); /* 16-byte aligned, zeroed; NULL when out of memory */
void *arena_array(struct arena *arena, size_t bytes); /* on a cache line, not zeroed: what kernels read */
/* Room for arrays of so many bytes in all, each rounded up to a cache line: no block beyond is begun for them. False
 * when out of memory. */
bool arena_reserve(struct arena *arena, size_t bytes);
void *arena_copy(struct arena *arena, const void *data, size_t bytes);
char *arena_string(struct arena *arena, const char *text);

/* Takes back what was allocated since the mark, if it lies in one block; otherwise it stays. */
struct arena_mark {
    const struct arena_block *block;
    size_t used;
};
struct arena_mark arena_mark(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_mark mark);

void arena_free(struct arena *arena); /* everything at once */

#endif
