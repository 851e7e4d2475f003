/* SPDX-License-Identifier: Apache-2.0 */
/* Our side of the comparison with frameworks: a network in its three run modes, with the weights that the peers load
 * too, the loss and the gradients that theirs are compared with. */
#ifndef BENCH_FRAMEWORKS_OURS_H
#define BENCH_FRAMEWORKS_OURS_H

#include "bench.h"

enum { SCHEDULED, NAIVE, SEQUENTIAL, MODES };

/* Learning rates: of steps that are timed, so that all do alike; of the one whose loss and gradients are compared. */
static const double TIMED_RATE = 1e-6, CHECK_RATE = 0.01;

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

/* One step from the first weights at CHECK_RATE: fills loss and gradients. Afterwards the weights are the first again
 * and the rate is TIMED_RATE. */
graphi_status ours_check(struct ours *ours);

/* Largest difference from a peer's answer to "check", relative to the norm of that gradient (losses: to the loss, at
 * least 1); `what` says of what. A gradient that one side lacks counts as infinite. */
double ours_difference(const struct ours *ours, const json_t *answer, char *what, size_t size);

/* The same between two of ours. */
double ours_apart(const struct ours *ours, const struct ours *other, char *what, size_t size);

#endif
