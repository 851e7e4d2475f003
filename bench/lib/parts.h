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
    double cpu_s, threads_s; /* of all executions: what this process computed, and what its threads could have */
};

/* A turn more (bench_turn), traced, on a machine of so many cores. Tells of failures. */
graphi_status parts_add(struct contender *contender, bool twice, int cores, struct parts *parts);

/* An execution of `ms` under the setting, in which this process computed `cpu_s`. A dedicated driver and a light
 * executor are a thread each, which polls all the time; a driver that shares a core adds none. */
void parts_count(struct parts *parts, const graphi_decision *setting, int cores, double ms, double cpu_s);

/* 0 .. 1: the part of its cores that the executions did not get, because others ran there. */
double parts_others(const struct parts *parts);

/* What a network's row has of them: medians. */
void parts_row(json_t *row, const struct parts *parts);

#endif
