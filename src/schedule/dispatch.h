/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets what is ready: two dispatchers over one core (scheduler.c), which counts, takes completions and keeps the
 * log. dispatch_fixed.c gives tasks to executors whose workers never change, dispatch_teams.c forms a team for each.
 * Which of the two a policy has its table says (free_width). Called by the scheduling step alone: no locks, no
 * allocation after creation; tens of nanoseconds a task. */
#ifndef SCHEDULE_DISPATCH_H
#define SCHEDULE_DISPATCH_H

#include "schedule/bitmap.h"
#include "schedule/heap.h"
#include "schedule/ring.h"
#include "schedule/schedule.h"

/* Executors of fixed workers: what is ready, and what each has to do. */
struct fixed_executors {
    struct heap heap, light; /* light: what the light executor may take */
    _Alignas(64) struct bitmap room; /* slots with something to do and place in the ring */
    float *work;             /* of a slot: predicted ns of what is outstanding */
    int light_slot;          /* the last slot, or -1 */
};

/* A team that was formed for a task, by its leader. */
struct formed_team {
    int32_t task; /* < 0: not a leader now */
    uint16_t width, position; /* place in `leaders` */
    int16_t start; /* its workers are neighbours from this one on; -1: any */
    bool spread;   /* one worker a tile */
    int64_t started;
    double predicted_end;
};
struct formed_teams {
    struct ready_list list;
    struct ready *room;        /* for the list */
    struct formed_team *teams; /* one a worker */
    int count, *leaders;       /* of what runs */
    uint16_t *scratch;         /* members of the team being formed */
};

struct dispatcher {
    bool (*allocate)(struct schedule *schedule);                    /* at creation; false: no memory */
    void (*begin)(struct schedule *schedule);                       /* before each execution */
    void (*ready)(struct schedule *schedule, struct ready item);
    void (*ended)(struct schedule *schedule, int slot, const struct completion *done); /* what was sent to the slot */
    void (*dispatch)(struct schedule *schedule);                    /* until nothing fits */
};
extern const struct dispatcher dispatch_fixed, dispatch_teams;

/* dispatch_fixed.c, for policies: the worker at hand, else by bit scan, else step_with_room(). */
int step_first_idle(struct schedule *schedule);
int step_with_room(struct schedule *schedule); /* of the busy ones with place in the ring, who has least in it; -1 */

/* dispatch_teams.c: idle workers of so many tiles in `scratch`; false: there are not so many. */
bool step_one_a_tile(struct schedule *schedule, int width);

/* The core's, for dispatchers (scheduler.c): a task was placed; it, or a batch of them, is sent. */
void step_placed(struct schedule *schedule, int slot, int32_t task, int width);
void step_send(struct schedule *schedule, int slot, struct assignment assignment);
bool step_little_work(const struct schedule *schedule); /* all that is ready takes less than a message to others */

#endif
