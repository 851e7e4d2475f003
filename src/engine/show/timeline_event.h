/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded execution: the real and the simulated machine give the same events. */
#ifndef ENGINE_TIMELINE_EVENT_H
#define ENGINE_TIMELINE_EVENT_H

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

static inline int timeline_member(const struct timeline_event *event, int i)
{
    return event->member ? event->member[i] : event->leader + i;
}

#endif
