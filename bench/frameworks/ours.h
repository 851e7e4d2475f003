/* SPDX-License-Identifier: Apache-2.0 */
/* Our side of the comparison with frameworks: a network in its three run modes, with the weights that the peers load
 * too, the loss and the gradients that theirs are compared with. */
#ifndef BENCH_FRAMEWORKS_OURS_H
#define BENCH_FRAMEWORKS_OURS_H

#include "bench.h"

enum { SCHEDULED, NAIVE, SEQUENTIAL, MODES };

/* Learning rates: of steps that are timed, so that all do alike; of the one whose loss and gradients are compared. With
 * these weights gradients are long (PathNet's, squared: 3e6): twenty steps at 1e-6 take a fifth off the loss. */
static const double TIMED_RATE = 1e-12, CHECK_RATE = 0.01;

struct gradient {
    const char *name; /* of the parameter; lives as long as the state */
    double norm, probe;
};

struct ours {
    struct network network;
    struct contender mode[MODES];
    struct gradient *gradients;
    int count;
    double loss;
};

/* Opens the network, tuned for `tune` seconds (0: static setting), and fills its weights; `modes`: all run modes, or
 * SCHEDULED alone (SCHEDULED + 1), which takes a third of the memory. */
graphi_status ours_open(struct bench *bench, const char *name, const char *size, double tune, int modes,
                        struct ours *ours);
void ours_close(struct ours *ours);

/* A run in this setting whose steps update as timed ones do, at TIMED_RATE: one that is only opened updates at the rate
 * that inputs are fed with, and the weights are those of all runs of the network. */
graphi_status ours_contender(struct bench *bench, const struct network *network, const char *id,
                             const graphi_setting *setting, struct contender *contender);

/* One step from the first weights at CHECK_RATE: fills loss and gradients. Afterwards the weights are the first again
 * and the rate is TIMED_RATE. */
graphi_status ours_check(struct ours *ours);

/* How far the loss of the last step of SCHEDULED is from the checked one, relative to that (to 1 where it is less);
 * INFINITY: it is no number. Far: steps that were timed had other weights than the peers'. */
graphi_status ours_drift(const struct ours *ours, double *drift);

/* Largest difference from a peer's answer to "check", relative to the norm of that gradient (losses: to the loss, at
 * least 1); `what` says of what. A gradient that one side lacks counts as infinite. */
double ours_difference(const struct ours *ours, const json_t *answer, char *what, size_t size);

/* The same between two of ours. */
double ours_apart(const struct ours *ours, const struct ours *other, char *what, size_t size);

#endif
