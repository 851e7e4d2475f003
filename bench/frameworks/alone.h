/* SPDX-License-Identifier: Apache-2.0 */
/* What only a fresh process shows: peak memory beyond start-up and the first step. `graphi bench frameworks` runs
 * itself again with every option that it was given, but for tuning: a setting of several executors may need more. */
#ifndef BENCH_FRAMEWORKS_ALONE_H
#define BENCH_FRAMEWORKS_ALONE_H

#include "bench.h"

/* In the fresh process: measures the network that the first word names, adds one row. */
graphi_status alone_run(struct bench *bench);

/* Starts it and puts what it measured into `row`; notes say that it failed, or that `plan`, which is timed, keeps
 * more in its arena than what was measured. `title` names them; `mode` is training or inference. */
void alone_measure(struct bench *bench, const char *title, const char *mode, const char *name, const char *size,
                   const graphi_plan *plan, json_t *row);

#endif
