/* SPDX-License-Identifier: Apache-2.0 */
/* Many settings of one network, and which of them is the fastest: every one runs once, whoever is far behind leaves,
 * the others alternate to and fro until the ranking is stable or the time is over. All use one run's memory, so their
 * number is not limited by it. Usual size: 60 settings, of which five are left at the end. */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "bench.h"

struct entrant {
    struct contender c;
    graphi_setting asked;
    uint64_t hash; /* of its plan */
    int stand;     /* whoever tells whether it can be far behind, for when the time is over; -1: it always runs */
    bool keep;     /* never leaves */
    bool out;
    int rounds;    /* times so far, c.ms */
    double least;  /* of them */
};

struct contest {
    struct entrant *entrant;
    int count, room;
    int against; /* times are compared with this one's of the same round; it is kept */
    int best;    /* after contest_run: the least median ratio */
};

/* Another setting, unless its executions would be those of one that is in: its index, or that one's in *at. */
graphi_status contest_add(struct bench *bench, const struct network *network, struct contest *contest, const char *id,
                          const graphi_setting *setting, int *at);
graphi_status contest_run(struct bench *bench, const char *title, struct contest *contest, double seconds);

/* Median of a's time over b's in the rounds that both ran. */
double contest_ratio(const struct contest *contest, int a, int b);

/* The same, of two alone in turns that played no part in choosing them: the least of many noisy medians flatters. */
graphi_status contest_duel(struct bench *bench, const char *title, struct contest *contest, int a, int b,
                           double seconds, double *ratio, int *turns);
void contest_close(struct contest *contest);

#endif
