/* SPDX-License-Identifier: Apache-2.0 */
/* One network in one mode beside the settings of one framework. Same weights and inputs; loss and gradients are
 * compared before anything is timed. */
#ifndef BENCH_FRAMEWORKS_BESIDE_H
#define BENCH_FRAMEWORKS_BESIDE_H

#include "frameworks/ours.h"

/* How far loss and gradients may be apart. */
static const double PEER_TOLERANCE = 5e-3;

struct framework {
    const char *name, *folder, *script;
    bool chosen, tried, there; /* there: its environment, once tried */
};

/* Where a network stands in one mode. */
struct comparison {
    struct bench *bench;
    struct ours ours;
    const char *name, *size, *mode;
    char title[80]; /* of its rows, goals and notes */
    char scripts[4096], environments[4096];
    json_t *row; /* ours, scheduled */
    double over[MODES], step_ms; /* over: median of a run mode's time over that of SCHEDULED in the same round */
    double best;        /* greatest ours/peer: of the best peer */
    double eager, jax;  /* ours/peer of their best settings; 0: none */
    double leanest, worst, drift; /* drift: ours_drift after all turns */
    char worst_of[200];
};

/* Adds a row for each setting of the framework, and to what `c` keeps of all. */
graphi_status beside(struct comparison *c, struct framework *framework);

#endif
