/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of the simulated backend, for its files only, from below: simulated_world.c (workers and what they run),
 * simulated_join.c (who takes part in what others run), simulated_play.c (the loop of events), simulated_steps.c and
 * simulated_static.c (what they run next: sent by the step, or their lists). One thread. */
#ifndef SCHEDULE_SIMULATED_WORLD_H
#define SCHEDULE_SIMULATED_WORLD_H

#include "schedule/events.h"
#include "schedule/scheduler.h"
#include "schedule/simulated_core.h"

enum { EVENT_ARRIVES, EVENT_ENDS, EVENT_LOOKS, EVENT_STEP, EVENT_STEP_ENDS, EVENT_MESSAGES };

struct virtual_worker {
    int32_t task; /* of its own; < 0: idle, or at another's task */
    int position; /* in running[] */
    double ends, pace, cores; /* of the task, or piece: when, at which part of full speed, on so many cores' time */
    int width;
    bool steps; /* runs the step now */
    /* of the open task that it leads */
    int pieces, taken, there; /* 0: it is not open; those begun; workers at them */
    double opened;            /* when */
    bool waits;               /* its own have ended */
    /* of pieces that it runs for others */
    int joined, looked; /* who leads the task, < 0: none; who led the last one */
    bool looks;         /* will soon see who has something open */
    double began;
};

struct world;

/* What kinds of drivers do otherwise. */
struct playing {
    void (*begin)(struct world *world);
    bool (*start_own)(struct world *world, int worker); /* of a worker at nothing its next task, if it can start now */
    void (*ended)(struct world *world, int worker, int32_t task); /* goes on with the next one */
    void (*event)(struct world *world, int kind, int worker);     /* EVENT_STEP and after it; NULL: there are none */
};

struct world {
    struct schedule *schedule;
    const struct playing *playing;
    void *own; /* of `playing` */
    task_duration duration;
    void *context;
    struct events events;
    struct virtual_worker *workers;
    int32_t *running, *running_worker;
    int running_count;
    int32_t *threads; /* busy hardware threads of each core; NULL: no core has more than one */
    int on_siblings;
    struct shared_core core;
    struct bitmap open;   /* who leads a task of which there are pieces to be had */
    struct bitmap onlook; /* who would join, and found nothing */
    double now, over;     /* over: when all was done, for the driver to say; somebody may still look around */
    double busy, scheduling, corunning, changes;
};

/* What the task takes there from now on, beside the first `others` of those that run. */
double world_ns(struct world *world, int32_t task, struct seat seat, int others);
void world_put(struct world *world, int position, int32_t task, int worker); /* among those that run, */
void world_put_last(struct world *world, int worker);                        /* and what it leads behind the others */
void world_occupy(struct world *world, int worker, double ns, int width); /* a team, until EVENT_ENDS of its leader */
double world_enter_core(struct world *world, int leader, int width); /* how long the driver holds the team up there */
void world_leave_core(struct world *world, int leader);
void world_share_cores(struct world *world); /* something has started or ended on a sibling, or beside one */
/* The end of the leader's piece, or task, moves. */
void world_set_end(struct world *world, int leader, double ends, double cores);

#endif
