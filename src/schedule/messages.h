/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that tasks wait for as for one more predecessor. Whoever runs the scheduling step looks for them, and so
 * does an idle worker, which takes the step where it found one and nobody has it; no foreign thread does. In virtual
 * time every message arrives one message after the execution has begun. Plans without events have none of this.
 *
 * `arrived` is looked at by all workers; all else belongs to the step. Usual size: none, or one or two a parameter. */
#ifndef SCHEDULE_MESSAGES_H
#define SCHEDULE_MESSAGES_H

#include "schedule/schedule.h"

struct waits {
    const struct message_source *source; /* of the execution; NULL in virtual time and replays */
    _Atomic uint8_t *arrived;            /* by wait: its task has been told; relaxed: a hint to others than the step */
    _Atomic int left;                    /* not arrived; as `arrived` */
    int next;                            /* where the step looks next */
    int64_t knocks;                      /* steps begun by who found a message (driver_combining.c) */
};

struct executor;

bool messages_allocate(struct schedule *schedule); /* false: no memory */
void messages_reset(struct schedule *schedule);

bool message_told(const struct schedule *schedule, int wait); /* its task has been told */

/* Message `wait` is there: true where its task has nothing else to wait for. By the step, once each. */
bool message_arrives(struct schedule *schedule, int wait);

/* Calls `tell` for messages that have come and were not told yet; how many. By one thread at a time. */
int messages_look(struct schedule *schedule, void (*tell)(struct schedule *schedule, int wait));

/* The step: tells tasks whose message has come; how many of them. A message that will not come fails the execution. */
int step_messages(struct schedule *schedule);

/* By a worker with nothing else to do: is there one that the step should see? *idle_ns: since when it idles, 0 at
 * first; after too long the execution has failed. */
bool messages_found(struct schedule *schedule, struct executor *executor, int64_t *idle_ns);

/* By who runs the task itself, in lists and loops without a step. Waits until the message of the task, if it has one,
 * is there; false: something has failed. */
bool message_await(struct schedule *schedule, struct executor *executor, int32_t task);

#endif
