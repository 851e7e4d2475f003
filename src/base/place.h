/* SPDX-License-Identifier: Apache-2.0 */
/* Where the mappings that a thread makes shall lie: memory nodes, by their number in the system, and huge pages. Set by
 * a thread for itself (leases do, machine/standing.c); mem_map applies it. */
#ifndef BASE_PLACE_H
#define BASE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

enum { PLACE_MOST_NODES = 1024 };
struct place_on {
    unsigned long nodes[PLACE_MOST_NODES / (8 * sizeof(unsigned long))];
    bool bind; /* to those nodes */
    bool only; /* never elsewhere, even where they are full */
    bool huge; /* in the pages that the system has reserved, where there are any left */
};

/* Of the calling thread from now on; NULL: wherever memory is first written. Returns what was set before. */
const struct place_on *place_set(const struct place_on *place);

/* Binds a mapping that nobody has written yet, if the calling thread's place says so. 0, or why not (errno). */
int place_bind(void *pointer, size_t bytes);
bool place_wants_huge(void);

/* What the system says to such a place: 0, or why not (errno). */
int place_try_bind(const struct place_on *place);
int place_try_huge(void);

void place_add(struct place_on *place, int node); /* none beyond PLACE_MOST_NODES */

#endif
