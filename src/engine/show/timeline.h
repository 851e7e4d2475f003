/* SPDX-License-Identifier: Apache-2.0 */
/* Rendering of a recorded execution: Chrome trace-event JSON (opens in Perfetto) and one self-contained HTML page.
 * Pure: events in, files out. */
#ifndef ENGINE_TIMELINE_H
#define ENGINE_TIMELINE_H

#include "engine/show/timeline_event.h"

/* Whose lane it is: "executor 2", of a team "executor 2.0" for its leader, "light executor", "worker 5",
 * or "sibling of core 5", its other hardware thread. */
void timeline_lane_name(const struct timeline *timeline, int lane, char *text, size_t size);

graphi_status timeline_write_json(const struct timeline *timeline, const char *path);
graphi_status timeline_write_html(const struct timeline *timeline, const char *path);

#endif
