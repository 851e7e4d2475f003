/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a run (graphi/event.h): which they are, and what tasks of an execution do with them. NULL, which plans
 * without events have, is taken by all but the first. */
#ifndef ENGINE_MESSAGES_H
#define ENGINE_MESSAGES_H

#include "engine/compile/plan.h"
#include "graphi/event.h"

struct run_messages;

/* Of a compiled graph, which must outlive them; NULL in *out where it has no events. `schedule` listens to them unless
 * it is NULL. MEMORY. */
graphi_status messages_create(const struct compiled *compiled, struct schedule *schedule, struct run_messages **out);
void messages_destroy(struct run_messages *messages);

/* Event `number` that the graph signals (`sends`) or waits for. INVALID: it does neither. */
graphi_status messages_set(struct run_messages *messages, int number, graphi_event *event, bool sends);

/* Seconds without anything else to do; 0: without end. INVALID. */
graphi_status messages_set_patience(struct run_messages *messages, double seconds);

/* Before an execution: every event is there. INVALID naming the operation. */
graphi_status messages_check(struct run_messages *messages);

/* After a task with an event has succeeded: its message is taken, or sent. */
graphi_status messages_task(struct run_messages *messages, int32_t task);

/* After an execution that failed midway: who waits for what was not sent hears of it. */
void messages_cancel(struct run_messages *messages);

#endif
