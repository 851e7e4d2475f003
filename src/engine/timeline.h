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
    int leader, width;  /* lanes leader .. leader + width - 1 */
    double flops, bytes; /* of the kernel: what its time is to be compared with */
    bool inlined, critical, backward;
};

struct timeline {
    const char *title; /* network, setting, machine */
    bool simulated;
    int lanes;
    int64_t count;
    const struct timeline_event *events;
    int64_t lower_bound_ns, critical_path_ns; /* 0: not known */
};

/* What the executors did with their time. */
struct timeline_lane {
    int64_t busy_ns;
    int64_t starved_ns;    /* idle while no operation was ready: the graph has nothing to give */
    int64_t scheduling_ns; /* idle although an operation was ready: scheduling and hand-over */
    int64_t operations;
};
struct timeline_totals {
    int64_t span_ns;
    double busy, starved, scheduling; /* fractions of lanes * span */
};
/* lane may be NULL; otherwise `lanes` entries. */
void timeline_sum(const struct timeline *timeline, struct timeline_lane *lane, struct timeline_totals *totals);

/* Marks the events on the longest chain of the recorded execution: from the last to end, back through whatever ended
 * last before it became ready. predecessor ids of event i: list[begin[i] .. begin[i+1]). */
void timeline_mark_critical(struct timeline_event *events, int64_t count, const int32_t *begin, const int32_t *list);

graphi_status timeline_write_json(const struct timeline *timeline, const char *path);
graphi_status timeline_write_html(const struct timeline *timeline, const char *path);

#endif
