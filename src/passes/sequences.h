/* SPDX-License-Identifier: Apache-2.0 */
/* How recurrences of a plan run, in words: graphi_plan_options.sequences and --sequences. */
#ifndef PASSES_SEQUENCES_H
#define PASSES_SEQUENCES_H

#include "graphi/recurrent.h"

struct sequences {
    graphi_lowering lowering;
    int cut[3]; /* parts of rows, units, k; 0: chosen */
    int chunk;  /* steps of a chunk */
};

/* Of "streamlined+:2", "partitioned:1x2x1", "chunked:25"; NULL and "auto": chosen. USAGE, saying which words there are;
 * of k in several parts without `rounding` that it rounds otherwise. */
graphi_status sequences_parse(const char *text, bool rounding, struct sequences *out);

/* The partition <rows, units, k> of one step's product of `rows` rows by weights [units, columns] over `workers` that
 * moves the least data through caches of `cache` bytes each, in `steps` steps (deepcpu.txt 5.2.3): Xj |A| + Xi |B| + 2
 * Xk |C| bytes a step, |B| once if a worker's part of it stays in its cache. k stays whole without `rounding`. Pure. */
struct sequences_work {
    double rows, units, columns, steps;
    double cache;
    int workers;
    bool rounding;
};
double sequences_moved(const struct sequences_work *work, const int cut[3]); /* bytes in all steps */
void sequences_partition(const struct sequences_work *work, int cut[3]);

#endif
