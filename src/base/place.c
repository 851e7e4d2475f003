/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings of memory by system calls alone: no library for them is needed. Nothing is bound that is not a mapping of
 * its own: memory of the heap would keep the policy after it was freed. Any thread, each for itself. */
#include "base/place.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY 5 /* Linux 5.15 */
#endif

enum { WORD = 8 * sizeof(unsigned long), HUGE_BYTES = 1 << 21 };

static _Thread_local const struct place_on *placed;

const struct place_on *place_set(const struct place_on *place)
{
    const struct place_on *before = placed;
    placed = place;
    return before;
}

void place_add(struct place_on *place, int node)
{
    if (node >= 0 && node < PLACE_MOST_NODES)
        place->nodes[node / WORD] |= 1ul << (node % WORD);
}

static long set_policy(void *pointer, size_t bytes, int mode, const unsigned long *nodes)
{
    /* the system takes the number of bits for one more than there are */
    return syscall(SYS_mbind, pointer, bytes, mode, nodes, (unsigned long)PLACE_MOST_NODES + 1, 0);
}

/* The first of the nodes alone. */
static void keep_first(const struct place_on *place, struct place_on *first)
{
    *first = (struct place_on){.bind = true};
    for (int node = 0; node < PLACE_MOST_NODES; node++)
        if (place->nodes[node / WORD] >> (node % WORD) & 1) {
            place_add(first, node);
            return;
        }
}

static int bind_to(const struct place_on *place, void *pointer, size_t bytes)
{
    if (set_policy(pointer, bytes, place->only ? MPOL_BIND : MPOL_PREFERRED_MANY, place->nodes) == 0)
        return 0;
    if (place->only || errno != EINVAL)
        return errno;
    struct place_on first; /* before Linux 5.15 */
    keep_first(place, &first);
    return set_policy(pointer, bytes, MPOL_PREFERRED, first.nodes) == 0 ? 0 : errno;
}

int place_bind(void *pointer, size_t bytes) { return placed && placed->bind ? bind_to(placed, pointer, bytes) : 0; }

bool place_wants_huge(void) { return placed && placed->huge; }

static int try_mapping(int flags, const struct place_on *place)
{
    void *page = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (page == MAP_FAILED)
        return errno;
    int error = place ? bind_to(place, page, HUGE_BYTES) : 0;
    munmap(page, HUGE_BYTES);
    return error;
}

int place_try_bind(const struct place_on *place) { return try_mapping(0, place); }

int place_try_huge(void) { return try_mapping(MAP_HUGETLB, NULL); }
