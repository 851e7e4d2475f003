/* SPDX-License-Identifier: Apache-2.0 */
/* An open table of places, searched slot by slot from where the hash says. */
#include "base/index.h"

#include "base/memory.h"

#include <string.h>

enum { FEWEST_SLOTS = 16 };

/* Hashes of names differ least in their high bits, those of numbers anywhere. */
static size_t slot_of(const struct index *index, uint64_t hash, size_t seen)
{
    return ((size_t)(hash ^ hash >> 32) + seen) & (index->capacity - 1);
}

static void insert(struct index *index, struct index_slot slot)
{
    size_t seen = 0;
    while (index->slots[slot_of(index, slot.hash, seen)].place)
        seen++;
    index->slots[slot_of(index, slot.hash, seen)] = slot;
    index->count++;
}

/* Slots behind an empty one are taken over in the order in which they were searched: places of one hash keep theirs. */
static bool grow(struct index *index)
{
    struct index grown = {.capacity = index->capacity ? 2 * index->capacity : FEWEST_SLOTS};
    grown.slots = mem_zalloc_array(grown.capacity, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    size_t first = 0;
    while (first < index->capacity && index->slots[first].place)
        first++;
    for (size_t i = 0; i < index->capacity; i++) {
        struct index_slot slot = index->slots[(first + i) & (index->capacity - 1)];
        if (slot.place)
            insert(&grown, slot);
    }
    mem_free(index->slots);
    *index = grown;
    return true;
}

bool index_add(struct index *index, uint64_t hash, int32_t place)
{
    if (2 * (index->count + 1) > index->capacity && !grow(index))
        return false;
    insert(index, (struct index_slot){hash, place + 1});
    return true;
}

int32_t index_next(const struct index *index, uint64_t hash, size_t *seen)
{
    while (index->capacity) {
        const struct index_slot *slot = &index->slots[slot_of(index, hash, *seen)];
        if (!slot->place)
            break;
        ++*seen;
        if (slot->hash == hash)
            return slot->place - 1;
    }
    return -1;
}

void index_clear(struct index *index)
{
    if (index->capacity)
        memset(index->slots, 0, index->capacity * sizeof *index->slots);
    index->count = 0;
}

void index_free(struct index *index)
{
    mem_free(index->slots);
    *index = (struct index){0};
}
