/* SPDX-License-Identifier: Apache-2.0 */
/* Rendering of a recorded execution: Chrome trace-event JSON (opens in Perfetto) and one self-contained HTML page.
 * Pure: events in, files out; the real and the simulated machine give the same events. */
#ifndef ENGINE_TIMELINE_H
#define ENGINE_TIMELINE_H

#include "base/status.h"

struct timeline_event {
    const char *name;   /* "layer2/t7" or "" */
    const char *kind;   /* operation kind: decides the colour */
    const char *detail; /* shapes, addresses; shown on hover */
    int64_t ready_ns, start_ns, end_ns, level_ns;
    double mean_ns, deviation_ns; /* of the duration, over timeline.executions */
    int leader, width;
    const uint16_t *member;   /* lanes, `width` of them; NULL: leader .. leader + width - 1 */
    const int64_t *worked_ns; /* how long each of them worked; NULL: from start to end */
    double flops, bytes; /* of the kernel: what its time is to be compared with */
    bool inlined, critical, backward;
    bool joined; /* no operation, but a piece of one that another lane leads */
};

struct timeline {
    const char *title; /* network, setting, machine */
    bool simulated;
    int lanes;
    int executors, team; /* executors, of so many lanes each, from lane 0 on; 0: operations have their own teams */
    int light;           /* lane of the light executor; 0: there is none */
    const struct graphi_machine *siblings; /* lanes beyond its cores are their other hardware threads; NULL: none are */
    int64_t count, executions; /* executions: of the averages; 0: there are none. count: of events, joined ones last */
    const struct timeline_event *events;
    int64_t lower_bound_ns, critical_path_ns; /* 0: not known */
};

/* Whose lane it is: "executor 2", of a team "executor 2.0" for its leader, "light executor", "worker 5",
 * or "sibling of core 5", its other hardware thread. */
void timeline_lane_name(const struct timeline *timeline, int lane, char *text, size_t size);

static inline int timeline_member(const struct timeline_event *event, int i)
{
    return event->member ? event->member[i] : event->leader + i;
}
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

graphi_status timeline_write_json(const struct timeline *timeline, const char *path);
graphi_status timeline_write_html(const struct timeline *timeline, const char *path);

#endif
