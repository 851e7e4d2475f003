/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a list something is, by the hash of what it is known by: places of the list in an open table, half of which
 * is filled at most. Several places may have one hash: whoever asks compares what stands there. Zero-initialise; places
 * are added, or all removed. One thread at a time changes it. Usual size: 100 to 100,000 places. */
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_slot {
    uint64_t hash;
    int32_t place; /* in the list, plus one; 0: the slot is empty */
};

struct index {
    struct index_slot *slots;
    size_t count, capacity; /* capacity: 0 or a power of two */
};

/* False when out of memory: the index is then unchanged. */
bool index_add(struct index *index, uint64_t hash, int32_t place);

/* Places of that hash, the oldest first, one a call; -1: no more. *seen: 0 before the first call. */
int32_t index_next(const struct index *index, uint64_t hash, size_t *seen);

/* Empty, with the room that it has: adding as many places again cannot fail. */
void index_clear(struct index *index);

void index_free(struct index *index);

#endif
