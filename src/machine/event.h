/* SPDX-License-Identifier: Apache-2.0 */
/* Events (graphi/event.h) as executions see them. */
#ifndef MACHINE_EVENT_H
#define MACHINE_EVENT_H

#include "graphi/event.h"

enum event_state { EVENT_OPEN, EVENT_SENT, EVENT_CANCELLED };

/* Of the receiver's side; any thread may look, and who sees EVENT_SENT sees what was written before. */
enum event_state event_state(const graphi_event *event);
void event_take(graphi_event *event); /* once, after EVENT_SENT */
graphi_status event_refuse(const graphi_event *event); /* fails, as it is cancelled */
const char *event_name(const graphi_event *event);

#endif
