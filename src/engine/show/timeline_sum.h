/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers of a recorded execution did with their time, and its critical path. Pure functions. */
#ifndef ENGINE_TIMELINE_SUM_H
#define ENGINE_TIMELINE_SUM_H

#include "engine/show/timeline_event.h"

/* How long a member waited for the rest of its team: to begin, in barriers, for the last to end. */
int64_t timeline_waited(const struct timeline_event *event, int member);
int64_t timeline_team_wait(const struct timeline_event *event); /* all members together */

/* What the lanes' workers did with their time. Idle ones together lose to scheduling at any time as many lanes as the
 * operations then ready but not started, wherever they queue, would run on (no more than are idle; each idle lane the
 * same part of them); beyond that they starve. So neither is charged to a lane for what it happens to run next. */
struct timeline_lane {
    int64_t busy_ns;
    int64_t starved_ns;    /* idle: the graph has nothing to give */
    int64_t scheduling_ns; /* idle although operations were ready: scheduling and hand-over */
    int64_t team_ns;       /* inside operations, waiting for the rest of the team, or those who joined */
    int64_t operations;    /* led by it */
};
struct timeline_totals {
    int64_t span_ns;
    double busy, starved, scheduling, team; /* fractions of lanes * span */
};
/* lane may be NULL; otherwise `lanes` entries. MEMORY: nothing is written. */
graphi_status timeline_sum(const struct timeline *timeline, struct timeline_lane *lane, struct timeline_totals *totals);

/* Marks the events on the longest chain of the recorded execution: from the last to end, back through whatever ended
 * last before it became ready. predecessor ids of event i: list[begin[i] .. begin[i+1]). */
void timeline_mark_critical(struct timeline_event *events, int64_t count, const int32_t *begin, const int32_t *list);

#endif
