/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a run (graphi/event.h): which they are, and what tasks of an execution do with them. */
#ifndef ENGINE_MESSAGES_H
#define ENGINE_MESSAGES_H

#include "engine/run/run.h"

/* With the run; MEMORY. Plans without events have none. */
graphi_status messages_create(graphi_run *run);
void messages_destroy(graphi_run *run);

/* Before an execution: every event is there. INVALID naming the operation. */
graphi_status messages_check(graphi_run *run);

/* After a task with an event has succeeded: its message is taken, or sent. */
graphi_status messages_task(graphi_run *run, int32_t task);

/* After an execution that failed midway: who waits for what was not sent hears of it. */
void messages_cancel(graphi_run *run);

#endif
