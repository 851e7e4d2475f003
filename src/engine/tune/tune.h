/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of tuning: runs without traces (trial.c), measuring operations (measure.c, shares.c), candidates
 * (candidates.c) and their race (race.h, tune.c). */
#ifndef ENGINE_TUNE_H
#define ENGINE_TUNE_H

#include "base/array.h"
#include "engine/run/run.h"

/* Until when to measure, whom to ask between executions whether to go on, and who may run something after each round
 * (NULL: nobody). */
struct patience {
    int64_t deadline; /* clock_ns */
    bool (*stop)(void *context);
    graphi_status (*between)(void *context);
    void *context;
};
bool patience_over(const struct patience *patience);           /* the deadline has passed */
graphi_status patience_stopped(const struct patience *patience); /* INTERRUPTED, with a message, when asked to stop */

/* A run that leaves no trace: inputs are those that `fed`, usually the same state, was fed last, or random ones, and
 * the parameters and the step counter are as before after trial_restore and trial_close. */
struct trial {
    graphi_run *run;
    struct schedule *own;  /* the run's, while others are adopted */
    const graphi_plan *plan;
    unsigned char **saved; /* per plan parameter that executions change */
    uint64_t step;
};
graphi_status trial_open(const graphi_plan *plan, graphi_state *state, const graphi_state *fed, struct trial *trial);
void trial_restore(const struct trial *trial);
void trial_close(struct trial *trial); /* accepts a zeroed one, and one whose opening failed */

/* Durations of every class by hill climbing over the cores at hand (climb.h), averaged over executions in order of
 * levels, one operation at a time. Up to eight widths are measured in alternation, more of them eight at a time. Stops
 * when the deadline has passed and every width was seen once, or after enough executions. Classes that are known are
 * not waited for. Where `short_ns` is given and a first round would fit neither it nor the time, the others stay as the
 * plan has them. */
struct climb_options {
    int interval; /* 0: the default */
    bool exhaustive;
    double short_ns;      /* a round of less is run whatever the time; 0: any is */
    graphi_curves *known; /* NULL: nothing is; gains what was measured often enough. REFUSED when of another machine */
};
struct measurement {
    struct cost_curve *curves;
    int32_t known; /* classes that were */
    int32_t left;  /* classes that stay as the plan has them, or were known from a minute that others disturbed */
    double spread; /* mean over operations of standard deviation / mean, weighted by duration */
    int executions;
    int interval;  /* between widths */
    double missing_ns; /* what a round would have taken that did not fit; 0: it did, or none was needed */
    bool both_modes; /* one worker a tile too; else no two cores share one, and the modes are the same */
};
graphi_status measure_curves(graphi_run *run, const struct patience *patience, const struct climb_options *options,
                             struct measurement *out);

/* Of an execution whose operations ran on one core each: load[task], 0 .. 1, the part of the other cores that ran
 * operations during the task, on average. */
graphi_status records_load(const struct task_record *records, int32_t tasks, int cores, float *load);

/* factor[class], 0.8 .. most: time in one way of running over that in another. A class also counts `prior` operations
 * as long as its own that are exposed and differ as all together do, so few and short measurements do not make it an
 * exception. */
struct two_ways {
    int32_t tasks, classes;
    const int32_t *class_of;
    const double *usual_ns, *other_ns; /* one a task */
    const double *part;                /* of the usual time that the other way applies to */
    double most;
};
graphi_status class_factors(const struct two_ways *ways, double prior, double *factor);

/* Time of every share of every class on this thread, for widths that no core is there for: ns of class k, phase after
 * phase, at share_ns[first[k] ..]. Both arrays are the caller's to free. */
struct share_times {
    int32_t *first, *task; /* one a class: index into share_ns; a task of the class */
    double *share_ns;
    double *serial_ns;     /* one a class: whole operations, without the clock's cost per share */
};
graphi_status measure_shares(graphi_run *run, const struct patience *patience, struct share_times *out);
void share_times_free(struct share_times *times);

/* Settings to choose from, each as a plan with its prediction. [0] is the base's own, with everything that follows from
 * the curves; it and the sequential and (with `policies`) malleable ones are added whatever the time, the others until
 * the deadline. */
struct candidate {
    graphi_plan *plan;
    int runs;         /* tune.c: in the race */
    const double *ns; /* its times there */
    double median_ns;
    double ratio, doubt; /* of its time to the chosen one's, and the standard error of that */
};
struct candidates {
    const graphi_plan *base;
    const struct cost_curve *curves;
    bool measured;    /* they are, all of them */
    int64_t deadline; /* clock_ns */
    ARRAY(struct candidate) list;
};
graphi_status candidates_add(struct candidates *candidates, bool policies);
/* This one; with a strategy or malleable also the uniform settings, as such ones with teams of one width, and with
 * malleable executors of one thread that join: a confirmation. They have the cores of the asked split, or all where
 * none was asked for. USAGE. */
graphi_status candidates_add_asked(struct candidates *candidates, const graphi_setting *setting);
bool candidates_confirm(const graphi_setting *setting); /* an asked setting that has to beat others */
void candidates_free(struct candidates *candidates);

/* The promising ones, at most `most`, [0] first: whom it pays to run. */
int candidates_field(const struct candidates *candidates, int *field, int most);

/* Less runs side by side (so less waits); else teams are fixed; else nobody joins; else the one that was added first.
 */
bool candidates_simpler(const struct candidates *candidates, int a, int b);

/* Says of a plan that was tuned from `base` what others had of the cores: `share`, or where operations were `left` as
 * they were, what they had then if that is more; and how often in a row they had some. */
void tune_mark(graphi_plan *plan, const graphi_plan *base, double share, bool left);

#endif
