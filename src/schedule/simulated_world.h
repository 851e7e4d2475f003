/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of the simulated backend, for its files only: backend_simulated.c (workers, the step, the loop of events)
 * and simulated_join.c (who takes part in what others run). One thread. */
#ifndef SCHEDULE_SIMULATED_WORLD_H
#define SCHEDULE_SIMULATED_WORLD_H

#include "schedule/events.h"
#include "schedule/scheduler.h"
#include "schedule/simulated_core.h"

enum { EVENT_ARRIVES, EVENT_ENDS, EVENT_STEP, EVENT_STEP_ENDS, EVENT_LOOKS };

struct virtual_worker {
    struct assignment queue[RING_DEPTH];
    double arrives[RING_DEPTH];
    unsigned head, tail;
    struct assignment current; /* task < 0: idle, or at another's task */
    int32_t task;              /* the current one, or a tiny one after it */
    int32_t member;            /* of the current batch */
    int position;              /* in running[] */
    struct completion done;
    bool steps; /* runs the step now */
    double ends, pace, cores; /* of the current task, or piece: when, at which part of full speed, on so many cores'
                                 time */
    int width;
    /* of the open task that it leads */
    int pieces, taken, there; /* 0: it is not open; those begun; workers at them */
    double opened;            /* when */
    bool waits;               /* its own have ended */
    /* of pieces that it runs for others */
    int joined, looked; /* who leads the task, < 0: none; who led the last one */
    bool looks;         /* will soon see who has something open */
    double began;
};

struct published {
    int32_t slot;
    struct completion done;
};

struct world {
    struct schedule *schedule;
    task_duration duration;
    void *context;
    struct events events;
    struct virtual_worker *workers;
    struct published *published; /* ring of all slots' unfinished completions */
    unsigned first, last, mask;
    int32_t *running, *running_worker;
    int running_count;
    int32_t *threads; /* busy hardware threads of each core; NULL: no core has more than one */
    int on_siblings;
    struct shared_core core;
    struct bitmap open;    /* who leads a task of which there are pieces to be had */
    struct bitmap onlook;  /* who would join, and found nothing */
    double now, send_time; /* send_time: end of the step so far */
    double over;           /* end of the last step */
    bool stepping;
    double busy, scheduling, corunning, changes;
    unsigned steps;
    int64_t first_deciding, deciding; /* real ns in the first step, in the next and every SAMPLED-th after it */
};

/* backend_simulated.c */
/* What the task takes there from now on, beside the first `others` of those that run. */
double world_ns(struct world *world, int32_t task, struct seat seat, int others);
void world_put_last(struct world *world, int worker); /* what it leads, among those that run */
void world_occupy(struct world *world, int worker, double ns, int width); /* a team, until EVENT_ENDS of its leader */
double world_enter_core(struct world *world, int leader, int width); /* how long the driver holds the team up there */
void world_leave_core(struct world *world, int leader);
bool world_start_own(struct world *world, int worker); /* the next task sent to it, if it has arrived */

/* simulated_join.c */
/* The worker begins a task, which takes it so long alone, in pieces; returns what the first of them takes. */
double join_open(struct world *world, int leader, int pieces, double ns);
/* On EVENT_ENDS; false: it is the task of this worker that has ended. */
bool join_ends(struct world *world, int worker);
void join_look(struct world *world, int worker); /* it has nothing to do */
void join_looks(struct world *world, int worker); /* on EVENT_LOOKS */

#endif
