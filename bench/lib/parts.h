/* SPDX-License-Identifier: Apache-2.0 */
/* Where the executors' time goes, by traces of a run's executions: at work inside operations, with operations ready but
 * not yet running (scheduling), with none ready (waiting, the end of the step included), inside operations waiting for
 * other members of the team (team: to begin, in barriers, for the last to end). */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include "bench.h"

enum { PARTS_MOST = 200 };

struct parts {
    int rounds;
    double ms[PARTS_MOST];
    double busy[PARTS_MOST], scheduling[PARTS_MOST], waiting[PARTS_MOST]; /* of executors' threads x step */
    double team[PARTS_MOST];
    double lost[PARTS_MOST]; /* the last three together */
    double cpu_s, threads_s;  /* of all executions: what this process computed, and what its threads could have */
};

/* One execution more. Tells of failures. */
graphi_status parts_add(graphi_run *run, struct parts *parts);

/* 0 .. 1: the part of its cores that the executions did not get, because others ran there. */
double parts_others(const struct parts *parts);

/* What a network's row has of them: medians. */
void parts_row(json_t *row, const struct parts *parts);

#endif
