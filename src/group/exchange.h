/* SPDX-License-Identifier: Apache-2.0 */
/* How solvers make one sum of their blocks: each has a block of floats, and after exchange_sum each block has the sum.
 * Blocks are cut into lanes, one a thread of the smallest solver, and lanes into chunks. A lane of one solver works
 * with the same lane of the others alone, so a solver may run its lanes side by side or one after the other.
 *
 * Every order of additions is fixed by the numbers of the solvers (or of leaves), never by who comes first. Counters
 * only rise; each is written by one thread and read by all (`release` in publish, `acquire` in reached). */
#ifndef GROUP_EXCHANGE_H
#define GROUP_EXCHANGE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "graphi/group.h"
#include "group/tree.h"
#include "machine/parking.h"

enum { EXCHANGE_NODES = 2 * TREE_DEPTH_MOST };

/* Progress of one solver in one lane, in steps and chunks since the beginning. */
struct exchange_lane {
    alignas(64) atomic_uint_least64_t up;   /* chunks of which its part of the sum is there */
    alignas(64) atomic_uint_least64_t down; /* chunks of which it has the sum */
};

/* What a solver brings along. */
struct exchange_member {
    alignas(64) atomic_uint_least64_t ready; /* steps of which its gradients are there */
    alignas(64) atomic_uint_least64_t taken; /* steps of which it has read all that it needs of others */
    float weight;                            /* of its samples among all */
    struct tree_node node[EXCHANGE_NODES];   /* deterministic: what its blocks are the sums of */
    float *block[EXCHANGE_NODES];            /* the first gets the sum */
    int nodes;
    struct exchange_lane *lane;
};

struct exchange {
    graphi_reduction how;
    int arity;  /* of TREE */
    int leaves; /* 0: not deterministic */
    int members, lanes;
    size_t floats, chunk; /* of a block, of a chunk */
    struct exchange_member *member;
    int spin_us;
    struct parking *bell; /* rung whenever a counter has changed */
    atomic_int *failed;   /* a solver has: nobody waits any longer */
};

/* Makes the lanes' counters. `how` is settled: not AUTO. MEMORY. */
graphi_status exchange_open(struct exchange *exchange);
void exchange_close(struct exchange *exchange);

/* Raises a counter of our own and wakes who waits. */
void exchange_publish(struct exchange *exchange, atomic_uint_least64_t *counter, uint64_t value);

/* Waits until it has come so far. False: a solver has failed. */
bool exchange_wait(struct exchange *exchange, atomic_uint_least64_t *counter, uint64_t value);

/* One lane of one solver's part in the sum of that step, from 1 on. False: a solver has failed. */
bool exchange_sum(struct exchange *exchange, int member, int lane, uint64_t step);

/* The sum of all members' blocks from `begin` to `end` into `to`, in the order that the exchange has. */
void exchange_sum_range(const struct exchange *exchange, float *to, size_t begin, size_t end);

/* Whether all others have read what they need of the blocks of that step: they may be written again. */
bool exchange_wait_taken(struct exchange *exchange, uint64_t step);

#endif
