/* SPDX-License-Identifier: Apache-2.0 */
/* Learning-rate schedules: a rate for every update step t = 0, 1, 2, …, as a pure function of the step. */
#ifndef GRAPHI_SCHEDULE_H
#define GRAPHI_SCHEDULE_H

#include "graphi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, text form) */
#define GRAPHI_SCHEDULE_LIST(X)                                                                                        \
    X(CONSTANT, "constant")       /* base */                                                                           \
    X(STEP, "step")               /* base · gamma^n, n: drops so far, at start, start + period, … */                \
    X(EXPONENTIAL, "exponential") /* base · gamma^(t / period) */                                                     \
    X(INVERSE, "inverse")         /* base · (1 + gamma · t)^−power */                                              \
    X(POLYNOMIAL, "polynomial")   /* floor + (base − floor) · (1 − t / period)^power, then floor */               \
    X(COSINE, "cosine")           /* floor + (base − floor) · (1 + cos(π t / period)) / 2, then floor */           \
    X(MULTI_STEP, "multi-step")   /* base · gamma^n, n: marks at or below t */                                       \
    X(SIGMOID, "sigmoid")         /* base / (1 + e^(gamma · (t − period))) */

typedef enum graphi_schedule_kind {
#define X(name, text) GRAPHI_SCHEDULE_##name,
    GRAPHI_SCHEDULE_LIST(X)
#undef X
} graphi_schedule_kind;

#define GRAPHI_SCHEDULE_MARKS 32

typedef struct graphi_schedule {
    graphi_schedule_kind kind;
    double base, gamma, power, floor;
    int64_t period; /* steps; 0 counts as 1 */
    int64_t start;  /* STEP: the first drop, in steps; 0: after one period */
    int64_t warmup; /* the rate of step t < warmup is multiplied by (t + 1) / warmup */
    int marks;      /* of MULTI_STEP, ascending */
    int64_t mark[GRAPHI_SCHEDULE_MARKS];
} graphi_schedule;

/* The rate of update `step` (below zero counts as 0). Any thread. */
GRAPHI_API double graphi_schedule_rate(const graphi_schedule *schedule, int64_t step);

/* Reads the text form; `base` is the rate it starts from. Counts are in update steps, or in epochs with an `e` behind
 * them (30e, 2.5e), which `steps_per_epoch` (0: unknown) turns into steps:
 *   constant                    step:GAMMA:PERIOD[:START]            exponential:GAMMA[:PERIOD]
 *   inverse:GAMMA:POWER         polynomial:LENGTH[:POWER[:FLOOR]]    cosine:LENGTH[:FLOOR]
 *   multi-step:GAMMA:MARK[:MARK…]                                    sigmoid:GAMMA:MIDDLE
 * Each may be followed by ,warmup:LENGTH. Caffe's names are taken, too: fixed, exp, inv, poly and multistep are
 * constant, exponential, inverse, polynomial and multi-step; sigmoid's gamma has the other sign there.
 * out NULL: the text alone is judged, before data are open: epochs are not turned into steps, and marks are in order
 * where those of steps are and those of epochs. Error: INVALID naming the part, *out untouched. Any thread. */
GRAPHI_API graphi_status graphi_schedule_parse(const char *text, double base, int64_t steps_per_epoch,
                                               graphi_schedule *out);

#ifdef __cplusplus
}
#endif
#endif
