/* SPDX-License-Identifier: Apache-2.0 */
/* A policy is a small table of functions; the scheduling step knows nothing else about it. All of them are called by
 * the scheduling step alone, so they take no locks, and they see no clock: `schedule->now` is the latest end among the
 * completions drained, so decisions are a pure function of the completions that came in, and replaying those repeats
 * the decisions.
 *
 * Two families. Fixed-slot policies give tasks, best key first, to executors whose workers never change (`key`,
 * `place`). Free-width policies choose task, width and workers in one decision (`key` sorts the ready list, `decide`).
 */
#ifndef SCHEDULE_POLICY_H
#define SCHEDULE_POLICY_H

#include "base/text.h"
#include "schedule/heap.h"
#include "schedule/schedule.h"

enum policy_loop {
    LOOP_SCHEDULED,  /* executors served by the scheduling step */
    LOOP_NAIVE,      /* executors poll one shared locked queue */
    LOOP_SEQUENTIAL, /* array order, all workers in one team */
};

struct decision {
    struct ready item; /* task and its key */
    int width;
    bool spread;  /* one worker a tile rather than neighbours */
    bool sibling; /* on hardware-thread siblings of busy cores (strategy 4) */
    bool aligned; /* the group starts at a multiple of its width: groups of whole tiles share none */
    bool seated;  /* spread: step_one_a_tile() has found its workers */
    double ns;    /* predicted for that width and mode; 0: as the curve says */
};

/* Executors of up to three sizes, narrow, usual and wide ones, and one of the cores that are left. */
struct team_sizes {
    int width[3], count[3], left;
};

struct policy {
    enum policy_loop loop;
    bool free_width; /* decide() instead of place() */
    bool own_teams;  /* of any width: how a setting splits its workers into executors means nothing */
    bool anywhere;   /* place() takes any executor: the order is all that it decides */
    bool remembers;  /* place() asks where other tasks ran (schedule.ran_on) */
    bool timed;      /* completions must carry times (measured widths, predicted ends) */
    bool usual;      /* the highest level first, all executors alike: what others may come down to */
    bool siblings;   /* second hardware threads of cores are workers, too */
    bool searches;   /* follows an allotment, if the tasks have one */
    bool raced;      /* tuning weighs it on every split of the cores */
    const graphi_policy_parameter_info *parameters; /* ended by one without a name; NULL: none */

    /* Fixed slots that are not all alike: of which sizes they are. NULL: `executors` of `width`. */
    struct team_sizes (*sizes)(int executors, int width);
    /* Once, when the schedule is created: whatever depends on the tasks alone. NULL: nothing. */
    graphi_status (*prepare)(struct schedule *schedule);
    /* Before each execution. NULL: nothing. */
    void (*begin)(struct schedule *schedule);
    /* Order of ready tasks: larger first, ties to the lower id. NULL: the loop has no step that asks. */
    int64_t (*key)(struct schedule *schedule, int32_t task);
    /* Fixed slots: which executor takes `task`, or -1 to leave the idle ones idle. */
    int (*place)(struct schedule *schedule, int32_t task);
    /* Free width: removes a task from the ready list and says how to run it; false: wait. */
    bool (*decide)(struct schedule *schedule, struct decision *decision);
    /* A task has finished after `ns` on this team. NULL: nothing. */
    void (*finished)(struct schedule *schedule, int32_t task, struct seat seat, double ns);
    /* For people, after "; ": what was weighed for a task and why; and, in lines, what executions have taught. NULL:
     * nothing. */
    void (*explain)(const struct schedule *schedule, int32_t task, struct text *text);
    void (*learned)(const struct schedule *schedule, const char *const *kinds,
                    struct text *text); /* kinds: their names */
};

#define X(NAME, name, text) extern const struct policy policy_##name;
GRAPHI_POLICY_LIST(X)
#undef X
/* Any fixed-slot policy whose team size differs between forward and backward pass (graphi.txt 6). */
extern const struct policy policy_phases;

/* Orders: highest level first, the critical path's; first in, first out. */
int64_t policy_by_level(struct schedule *schedule, int32_t task);
int64_t policy_by_arrival(struct schedule *schedule, int32_t task);

/* What runs a setting: a free-width policy whose teams are all of one width (uniform) has only the order left to
 * choose, and is the critical path's. */
const struct policy *policy_of(const graphi_setting *setting);
const struct policy *policy_decided(const graphi_decision *decision);

/* The value of a parameter: what is given, within its range, else the usual one. */
int64_t policy_parameter(const graphi_setting *setting, const char *name);
/* Does its policy have it? */
bool policy_heeds(const graphi_setting *setting, const char *name);
/* Gives it a value. */
void policy_set(graphi_setting *setting, const char *name, int64_t value);
/* The parameters are those of the policy, each with its value, in the order of its table. */
void policy_settle(graphi_setting *setting);

#endif
