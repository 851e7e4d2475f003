/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: which ready operation goes to which team, at every moment. One scheduler.c serves the real machine and
 * the simulated one; it knows tasks, not graphs.
 *
 * As in graphi.txt Algorithms 1 and 2: an executor that finishes a task decrements its successors' counters, runs those
 * that became ready and are tiny inline, and pushes the others to its own triggered queue; the scheduling step drains
 * the triggered queues into a max-heap by level and hands tasks to idle workers, found by bit scan, through their own
 * rings. The step is run by the client thread (dedicated) or by whichever thread finishes a task (combining;
 * docs/architecture.md, "How a step runs"). */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include "graphi/profile.h"
#include "machine/team.h"

enum task_flags {
    TASK_INLINE = 1,   /* tiny: run by whoever made it ready */
    TASK_LIGHT = 2,    /* small: the light executor may take it */
    TASK_BACKWARD = 4, /* of the backward pass */
    TASK_MEMORY_BOUND = 8,
};

/* A task has no more phases, each of which others can join; engine/compile/plan.h asserts it of kernels. */
enum { TASK_MOST_PHASES = 4 };

/* Times of one class of operations (kind, shapes, dtype) at some widths; other widths by linear interpolation, each
 * mode by itself. Two modes: neighbours share a cache (compact), or one worker a tile (spread). The widths are those of
 * both modes together: ns holds an interpolated value where only the spread mode was measured, spread_ns 0 where it was
 * not. */
enum { CURVE_SAMPLES = 72 }; /* every width in both modes on 68 cores in tiles of two takes 51 */
enum { MOST_LONGER = 4, MOST_MOVED = 16 }; /* factors are limited to that */
#define LEAST_NS 1.0                       /* no time of a curve is shorter: bytes over it are a rate */
struct cost_curve {
    int samples;
    int width[CURVE_SAMPLES];        /* ascending, width[0] == 1 */
    double ns[CURVE_SAMPLES];        /* compact */
    double spread_ns[CURVE_SAMPLES]; /* 0: not measured */
    graphi_curve_source source;
    int best;              /* width with the least compact time */
    int last, spread_last; /* widest width measured in each mode; times beyond are flat extrapolations; 0: not known */
    double beside;         /* time on one core while all others run operations, over time alone; 0: not measured */
    double in_order; /* time in array order, where operands were just written, over that by level; 0: not measured */
    double moved[2]; /* time when another team has touched last what it reads and writes, over time when its own has;
                        on one core and on several; 0: not measured */
    int interval;          /* of the climb that measured it; 0: every width, or not measured */
    bool disturbed;        /* read from a file, measured while others used the cores: to be measured again */
    char model[32];        /* predicted: by whom */
};
double curve_ns(const struct cost_curve *curve, int width);
const char *curve_source_name(graphi_curve_source source);
/* spread: one worker a tile; compact where that was not measured. */
double curve_mode_ns(const struct cost_curve *curve, int width, bool spread);
/* Whether the width lies beyond what was measured. */
bool curve_extrapolates(const struct cost_curve *curve, int width, bool spread);
/* Of both modes, what no team beats; between samples both lie above: p * t(p) of a straight line has no valley. */
double curve_sample_ns(const struct cost_curve *curve, int sample);
double curve_least_ns(const struct cost_curve *curve);   /* min over p of t(p) */
double curve_least_work(const struct cost_curve *curve); /* min over p of p * t(p), ns */
/* The least that who runs beside and who ran before make of such a time, or array order does; at most 1. */
double curve_least_factor(const struct cost_curve *curve, bool in_order);

/* Widths and order decided before the run, found by a search (allot.c) or given; the malleable policy follows them.
 * While the best ready task waits for workers: `fill` tells what else starts: nothing, what will have ended by the time
 * it can start, or anything that fits; with `narrower` it starts on those that are idle when that ends no later. With
 * `wider` tasks get the workers that no ready one will take. With `in_order` keys count down from the number of tasks
 * that are not tiny, and none starts before all those with larger keys have. With `alone` each waits until no other
 * runs, with `spread` it has one worker a tile. */
enum fill { FILL_NONE, FILL_GAPS, FILL_ANY };
struct allotment {
    uint16_t *width; /* one a task */
    int64_t *key;    /* larger first */
    enum fill fill;
    bool narrower, wider, in_order, alone, spread;
};

/* The compiled graph as the scheduler sees it. Arrays of `count`; immutable; owned by the plan. */
struct tasks {
    int count;
    const int32_t *edges_begin; /* count + 1 */
    const int32_t *edges;       /* successors */
    const int32_t *pending;     /* number of predecessors */
    const int64_t *level;       /* ns to the sink, own duration included */
    const uint8_t *flags;
    const int32_t *kind; /* index of the operation kind (strategy 2), 0 .. kinds-1 */
    int kinds;
    const int32_t *curve_of; /* index into curves */
    const struct cost_curve *curves;
    int curves_count;
    const int32_t *largest_input_from; /* task that produced the largest input (locality), -1 */
    const struct allotment *allotment; /* NULL: widths are decided during the run */
    const uint8_t *shares; /* of a task's phase that has most, or the pieces that a task should be cut into at most; 255
                              of more; NULL: one each */
    const uint8_t *scalability;        /* by kind: 0 serial, 1 element-wise/memory, 2 gemm, 3 conv */
    const int32_t *waits;   /* tasks that wait for a message (messages.h) */
    const int32_t *wait_of; /* by task: which of these it is, -1: none; NULL: there are none */
    int waits_count;
    const char *data; /* what running task t reads first lies at data + t * data_bytes; NULL: not told */
    size_t data_bytes;
};

/* Runs the shares of `task` that belong to this member; called by every member of the team (leader is member 0; width
 * 1: the executor alone, team NULL, or, where others may join it, a team for team_open, in team->pieces pieces at
 * most). Any member's failure fails the team; who joins reports theirs through the context, for the leader to return.
 */
typedef graphi_status (*task_function)(void *context, int32_t task, struct team *team, int member, int width);

struct task_record {
    int64_t start_ns, end_ns; /* of the leader, since the run began */
    int64_t ready_ns;         /* when it was triggered */
    uint16_t leader, width;
    bool inlined, spread; /* spread: known of virtual time alone */
    bool open;            /* others might have joined; how long its leader worked is in the team_trace */
};

/* A piece of a task that another worker than its leader ran. */
struct joined {
    int64_t start_ns, end_ns;
    int32_t task;
    uint16_t worker;
};
struct join_trace {
    const struct joined *piece;
    int count;
};

/* Of the tasks of a traced execution that teams ran: by member, leader first, from task * row on. */
struct team_trace {
    size_t row;         /* 0: no task can have a team */
    uint16_t *member;   /* workers; NULL: neighbours from the leader on */
    int64_t *worked_ns; /* of the task's time, what the member spent on shares: not before its first, in barriers or
                           after its last; real executions alone */
};

/* Who runs a task: the worker that leads, and how many there are: neighbours, the leader anywhere among them, or with
 * `spread` one a tile. */
struct seat {
    uint16_t leader, width;
    bool spread;
};

struct schedule; /* one execution's state, reusable: created once a run, reset by each execution; no allocation after
                    create (static driver: after schedule_decide) */

struct decided; /* decided.h */

/* USAGE: more workers than cores. MEMORY. */
graphi_status schedule_create(const struct tasks *tasks, struct decided decided, struct schedule **out);
void schedule_destroy(struct schedule *schedule);

/* Executes all tasks on the leased workers. records NULL: no trace. The first failing task's status is returned after
 * the running ones have drained; no further task starts. INVALID: nothing was decided for a static driver. */
graphi_status schedule_run(struct schedule *schedule, struct lease *lease, task_function function, void *context,
                           struct task_record *records);

/* Where the messages come from that tasks wait for. */
struct message_source {
    /* 1: there, with what it is about; 0: not yet; -1: it will not come */
    int (*look)(const struct message_source *source, int wait);
    /* Fails: it will not come, or comes too late. */
    graphi_status (*refuse)(const struct message_source *source, int wait, bool late);
    int64_t patience_ns; /* without anything else to do; 0: without end */
};
/* Of the executions from now on; the source stays. */
void schedule_listen(struct schedule *schedule, const struct message_source *source);

/* From now on executions with records also fill the schedule's own team_trace and join_trace. MEMORY. */
graphi_status schedule_trace_teams(struct schedule *schedule);
const struct team_trace *schedule_teams(const struct schedule *schedule);
struct join_trace schedule_joined(const struct schedule *schedule);

/* What a core does with more than one of its hardware threads busy, against one (concurrency-control.txt Table III). */
#define SIBLING_YIELD 1.03

struct simulation {
    double makespan_ns, busy_ns, scheduling_ns, mean_corunning;
    /* Real time: the steps, which take completions and place what is ready; from a sample of them. */
    double deciding_ns;
    uint64_t decisions; /* hash of (task, leader, width) in order of dispatch; static driver: of starts */
};

/* The same in virtual time. duration(context, task, team, co-running) gives ns; NULL: curve_ns. records as above, in
 * virtual time. */
typedef double (*task_duration)(void *context, int32_t task, struct seat seat, const int32_t *running,
                                int running_count);
graphi_status schedule_simulate(struct schedule *schedule, task_duration duration, void *context,
                                struct task_record *records, struct simulation *out);

/* Static driver: decides all in advance, once, before the first execution; what the tasks are, cost and were allotted
 * stays as it is from then on. Of other drivers nothing. One thread. MEMORY. */
graphi_status schedule_decide(struct schedule *schedule);

#endif
