/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules made by insertion: where list scheduling starts whatever fits at a moment, this puts one task after the
 * other, in the order of a priority, at the earliest time at which its inputs are there and enough workers are free for
 * as long as it takes. So a gap before a wide task on the critical path is filled only with what ends in time, which
 * nothing that looks at ready tasks alone can promise. */
#ifndef ENGINE_INSERTION_H
#define ENGINE_INSERTION_H

#include "schedule/schedule.h"

struct insertion;

/* A width that a task of some curve may have. */
struct choice {
    int width;
    double ns;
};

/* What it works on; all must outlive it. */
struct insertion_input {
    const struct tasks *tasks;
    int workers;
    const int32_t *from_begin, *from; /* predecessors, as edges_begin and edges are successors */
    const struct choice *choices;     /* of each curve */
    const int32_t *choices_begin;
    const double *bytes; /* that a task of each curve moves through memory; NULL: none */
    double gbs;          /* those at one time that all workers may want together */
    double start_ns;     /* until a task that is not tiny starts where its inputs and workers are there */
};

graphi_status insertion_create(const struct insertion_input *input, struct insertion **out);
void insertion_destroy(struct insertion *insertion);

/* Tasks in order of decreasing key (one with a smaller key than a successor of it: as that), each where its end + price
 * * width * time / workers is least; with a price below 0 all keep their width. Then pushed against the end and against
 * the begin again, last and first ones before others, as long as that shortens the schedule and costs at most `limit`
 * steps. With `memory` none starts while memory has less to give than it wants. Widths get those chosen. Returns the
 * length in ns, INFINITY if the limit was reached before there was a schedule (widths are then as before); *steps gets
 * what it cost, in looks at the profile. */
double insertion_run(struct insertion *insertion, uint16_t *width, const double *key, double price, bool memory,
                     int64_t limit, int64_t *steps);

/* Start of each task in the schedule of the last run. */
const double *insertion_start(const struct insertion *insertion);

#endif
