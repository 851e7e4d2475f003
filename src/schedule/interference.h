/* SPDX-License-Identifier: Apache-2.0 */
/* Which kinds of tasks slow each other down when they run side by side, as observed over executions (strategy 3:
 * concurrency-control.txt III-D, "record the bad pairs and avoid them"). Used by the scheduling step alone. */
#ifndef SCHEDULE_INTERFERENCE_H
#define SCHEDULE_INTERFERENCE_H

#include "base/text.h"
#include "schedule/scheduler.h"

/* Slowdowns from which on pairs are kept apart, and kinds run alone. */
static const float interference_clashing = 1.33f, interference_crowding = 1.02f;

struct slowdown {
    float ns, predicted; /* of this execution, summed */
    float average;       /* ratio of the two over executions; 0: never seen */
    float known;         /* against tasks alone, if that is enough to decide by; 0: not */
};

struct interference {
    int kinds;
    int *running;             /* tasks of each kind that run now */
    struct slowdown *beside;  /* kinds x kinds: beside that one; then one a kind: beside any; NULL: too many kinds */
    struct slowdown alone;    /* with nobody beside: how fast the machine is now */
    int32_t solo;             /* the task that runs and has had nobody beside it so far; -1: none */
    int on_siblings;          /* tasks that run on hardware-thread siblings now, */
    int64_t siblings_until;   /* and when the last one ended */
    bool seen;                /* some slowdown is known */
};

graphi_status interference_open(struct schedule *schedule, struct interference *out);
/* Before each execution; true: what is known has changed. */
bool interference_begin(const struct schedule *schedule, struct interference *record);
/* A task is about to start beside those that run (on a sibling: strategy 4); it has ended after `ns`, and is no longer
 * among them. */
void interference_started(const struct schedule *schedule, struct interference *record, int32_t task, bool sibling);
void interference_ended(const struct schedule *schedule, struct interference *record, int32_t task, struct seat seat,
                        double ns);

/* How much longer than predicted tasks of this kind take beside those that run now; 1: as predicted. */
float interference_beside_running(const struct interference *record, int kind);
/* The same beside whatever it was; 0: none to speak of. */
static inline float interference_beside_any(const struct interference *record, int kind)
{
    return record->seen ? record->beside[record->kinds * record->kinds + kind].known : 0;
}

/* A line for each pair that was seen, and for each kind beside any, by these names. */
void interference_explain(const struct interference *record, const char *const *kinds, struct text *text);

#endif
