/* SPDX-License-Identifier: Apache-2.0 */
/* Single-producer single-consumer rings between the scheduling step and an executor, one pair an executor: `inbox`
 * carries assignments to it, `outbox` (its triggered queue) completions back.
 *
 * A ring is never full: the scheduling step keeps at most `depth` tasks outstanding with an executor and counts one off
 * only when its completion has been drained, so the producer needs no view of the consumer's position, and a message
 * costs one cache line in one direction. At depth 1 position and items of a ring share one 64-byte line. The producer
 * of inboxes is whoever runs the scheduling step; the combining protocol makes those runs follow one another. */
#ifndef SCHEDULE_RING_H
#define SCHEDULE_RING_H

#include "graphi/types.h"

#include <stdatomic.h>

enum {
    RING_DEPTH = 8,  /* most tasks outstanding with one executor */
    AHEAD_NS = 64000 /* a task joins others in a ring that are predicted to take less than this; behind longer ones it
                        would wait while other executors become free */
};

/* A task and its team, or several tasks for one worker, chained through schedule.next up to `last`. */
struct assignment {
    int32_t task, last;
    uint16_t width;
    bool spread; /* one worker a tile */
};

/* One finished assignment: the task, the tiny tasks run inline after it, and the chain of tasks that became ready
 * (linked through schedule.next; first < 0: none). */
struct completion {
    int32_t task;
    int32_t first, last;
    int32_t ran; /* tasks executed, inline ones included */
    int64_t end_ns;
};

struct inbox {
    _Alignas(64) atomic_uint tail;
    uint32_t mask;
    struct assignment items[RING_DEPTH];
};

struct outbox {
    _Alignas(64) atomic_uint tail;
    uint32_t mask;
    struct completion items[2 * RING_DEPTH];
};

#define RING_PUSH(ring, item)                                                                                          \
    do {                                                                                                               \
        unsigned tail_ = atomic_load_explicit(&(ring)->tail, memory_order_relaxed); /* only the producer writes it */  \
        (ring)->items[tail_ & (ring)->mask] = (item);                                                                  \
        atomic_store_explicit(&(ring)->tail, tail_ + 1, memory_order_release); /* pairs with RING_POP's acquire */     \
    } while (0)

/* Pops into *item if the consumer's `head` is behind; true if there was one. */
#define RING_POP(ring, head, item)                                                                                     \
    (atomic_load_explicit(&(ring)->tail, memory_order_acquire) != *(head) /* pairs with RING_PUSH's release */         \
         ? (*(item) = (ring)->items[(*(head))++ & (ring)->mask], true)                                                 \
         : false)

/* How many times would RING_POP give one? For its consumer. */
#define RING_FILLED(ring, head) (atomic_load_explicit(&(ring)->tail, memory_order_relaxed) - *(head))

#endif
