/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the kernel experiment share: a graph of copies of one operation timed, rows, which rows were asked
 * for. */
#ifndef BENCH_ROWS_KERNELS_H
#define BENCH_ROWS_KERNELS_H

#include "bench.h"

enum { KERNELS_ROUNDS = 5 };

/* Median time in ms of one copy, out of `repeat` executions of a graph that has `copies` independent ones. The plan is
 * the options' of the command with `more` on top: its disable, conv_error, streaming, bfloat16. Integers that are fed
 * lie below `below`. */
graphi_status kernels_time(struct bench *bench, const graphi_graph *graph, const graphi_plan_options *more,
                           int64_t below, int threads, int repeat, int copies, double *ms);

/* "ID, 2 threads" of ours, "ID, 2 threads: ENGINE" of a peer: one row of the result with the times of `n` rounds; n 0:
 * missing, for this reason. Gives the row's name in full[200]. */
json_t *kernels_row(struct bench *bench, const char *id, const char *engine, const char *version, int threads,
                    const double *ms, int n, const char *reason, char *full);

/* Words after the experiment choose rows: those whose name has one of them. */
bool kernels_asked(const struct bench *bench, const char *id);

/* The same of a row that --quick leaves out: a word that chooses no others is told. */
void kernels_leaves_out(const struct bench *bench, const char *id);

/* While it is on, no row is asked for, but names are noted. */
void kernels_only_name(bool on);

/* When all rows have been named: USAGE, with how names begin, when some word chose none, or only what --quick leaves
 * out; INVALID when two have one
 * name: other rows are compared with them by it. */
graphi_status kernels_chosen(const struct bench *bench);

/* The next number of threads that is measured: one, then all, then 0. */
int kernels_next_threads(const struct bench *bench, int threads);

graphi_status kernels_memory(struct bench *bench);    /* memory.c: what is bound by memory */
graphi_status kernels_streaming(struct bench *bench); /* streaming.c: ordinary and streaming stores */
graphi_status kernels_pooled(struct bench *bench);    /* pooled.c: convolutions that pool their results */

#endif
