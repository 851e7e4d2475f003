/* SPDX-License-Identifier: Apache-2.0 */
/* Events: messages between executions. An operation graphi_wait_event of one run waits for what graphi_signal_event of
 * another run, another thread, or a process with which memory is shared sends; no worker is held meanwhile. Operations
 * name events by a number of their graph; each run says which events those are.
 *
 * An event carries one message at a time from one sender to one receiver. Its content lies where both agree: memory
 * that both runs have bound (graphi_run_bind), say, which the receiver's graph reads through graphi_wait_event. */
#ifndef GRAPHI_EVENT_H
#define GRAPHI_EVENT_H

#include "graphi/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_event graphi_event;

enum { GRAPHI_EVENT_BYTES = 256 };

/* An event in `memory` of GRAPHI_EVENT_BYTES, aligned to GRAPHI_ALIGNMENT, which is zeroed by whoever makes it and
 * stays the caller's: mapped by several processes, it is one event for all of them, each with an object of its own.
 * NULL: memory of the object. `name` is what messages call it: "gradient of conv1 from solver 3"; copied, up to 95
 * bytes. *out is the caller's (graphi_event_destroy), to be destroyed after the runs that use it. Errors, *out
 * untouched: INVALID, memory that is not aligned; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_event_create(const char *name, void *memory, graphi_event **out);
GRAPHI_API void graphi_event_destroy(graphi_event *event); /* NULL is accepted */

/* Sends the message from outside of an execution: what this thread wrote before is seen by who receives it. INVALID:
 * the last message has not been taken yet, or the event was cancelled. One sender at a time. */
GRAPHI_API graphi_status graphi_event_send(graphi_event *event);

/* Takes the message; *taken false: there is none yet. INVALID: the event was cancelled. One receiver at a time. */
GRAPHI_API graphi_status graphi_event_take(graphi_event *event, bool *taken);

/* No message will come: who waits for one fails, and so does who sends, until graphi_event_reset. Any thread. */
GRAPHI_API void graphi_event_cancel(graphi_event *event);

/* As new: no message, not cancelled. While nobody uses it. */
GRAPHI_API void graphi_event_reset(graphi_event *event);

/* Whom the run's graphi_wait_event of this number waits for, and to whom its graphi_signal_event of this number sends;
 * kept until another one is set; NULL: none. Both have to be there before an execution. An execution that fails midway
 * cancels the events that it has not sent. INVALID: the graph has no such operation. As the run, one thread. */
GRAPHI_API graphi_status graphi_run_receive(graphi_run *run, int number, graphi_event *event);
GRAPHI_API graphi_status graphi_run_send(graphi_run *run, int number, graphi_event *event);

/* After so many seconds with nothing else to do, an execution that waits for a message fails (IO) and names the event;
 * 0: never. 60 at first. */
GRAPHI_API graphi_status graphi_run_set_patience(graphi_run *run, double seconds);

#ifdef __cplusplus
}
#endif
#endif
