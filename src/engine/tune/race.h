/* SPDX-License-Identifier: Apache-2.0 */
/* A race of settings: contenders run in alternation, so that drift of the machine falls on all alike, and are
 * compared by the ratios of runs of the same round, whose median a burst of noise does not move. What runs and how
 * time passes is the caller's business (tune.c: executions of a plan; tests: planted durations). Usual size: two to
 * eight contenders, two to sixty rounds. */
#ifndef ENGINE_RACE_H
#define ENGINE_RACE_H

#include "graphi/types.h"

#include <stdbool.h>

enum {
    RACE_FIELD = 8,   /* most contenders */
    RACE_FEWEST = 2,  /* rounds without which nothing is decided: there and back */
    RACE_FAIR = 5,    /* rounds of all that there has to be time for while more than two run */
    RACE_ROUNDS = 60, /* most rounds */
};

static const double RACE_MARGIN = 0.015; /* half of what the choice may miss the best by (bench sweep) */

struct racer {
    int order;           /* simpler settings have lower ones: a tie is theirs */
    double predicted_ns; /* until it has run */
    double ns[RACE_ROUNDS];
    int rounds;
    bool out;
};

struct race {
    double margin; /* a contender must be faster by this part than a simpler one; 0: RACE_MARGIN */
    double longer; /* part of its time by which it may exceed it, where one may be faster by RACE_MARGIN; 0: none */
    /* The most promising first; [0], the incumbent, wins where there is no time to race. */
    struct racer racer[RACE_FIELD];
    int count;
    graphi_status (*run)(void *context, int racer, double *ns);
    double (*left_ns)(void *context);                        /* of the time to race */
    void (*rested)(void *context, const struct race *race);  /* between rounds; may be NULL */
    void *context;
    double time_ns;     /* left at the beginning */
    int rounds, winner; /* whole rounds; whoever leads, the winner at the end */
    int beyond;         /* of the rounds: after the time */
    bool decided; /* RACE_FEWEST rounds were run, or all others were clearly slower; else the winner is the incumbent */
};

/* Runs the race until one contender is left, the winner has not changed for a while, or the time is over. Errors: those
 * of `run`. */
graphi_status race_run(struct race *race);

/* Median over the rounds that both ran of a's time over b's, and its standard error. */
struct race_ratio {
    double median, doubt;
};
struct race_ratio race_compare(const struct race *race, int a, int b);
double race_may_gain(const struct race *race); /* part by which one of those left may well be faster than the winner */

int race_left(const struct race *race);                /* contenders not out */
double race_median(const struct race *race, int racer); /* ns of its runs; it has run */
double race_middle(const double *values, int count);    /* the median of at most RACE_ROUNDS; of none 0 */

#endif
