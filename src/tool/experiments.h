/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of graphi bench: a program of bench/ each, which has its words and options from here too. */
#ifndef TOOL_EXPERIMENTS_H
#define TOOL_EXPERIMENTS_H

#include <stdbool.h>
#include <stdio.h>

/* Options that have an effect in an experiment, beside those that all have. What else is typed is refused: hours of
 * measuring something else than was asked for are worse than an error. "M...": words that choose networks or rows. */
#define BENCH_ALWAYS "--json --out --quiet --help --version "
#define BENCH_COMPILE " --cores --isa --conv-error --disable --streaming"
#define BENCH_TRAINING                                                                                                 \
    " --size --task --batch --image --units --unroll --merged --batch-norm --lrn --auxiliary --bottleneck --layers" \
    " --role"
#define BENCH_MODEL BENCH_TRAINING " --inference"
#define BENCH_NETWORKS "M... --seed --precision" BENCH_COMPILE BENCH_MODEL
#define BENCH_SETTING                                                                                                  \
    " --executors --width --driver --pin --policy --depth --backward-executors --light --join --no-inline"
#define BENCH_TUNED " --tune --allow-rounding" /* network_tune with options.tune */
#define STUDY_OPERATIONS BENCH_COMPILE " --precision --machine --tune --interval"
#define STUDY_NETWORKS "M..." STUDY_OPERATIONS BENCH_MODEL " --quick"

struct experiment {
    const char *name;
    const char *summary; /* simulated ones say so */
    const char *honoured;
    const char *program, *option; /* a part of another experiment's rows: whose, and what asks for it; NULL: its own */
};

/* By name, ended by a NULL name. */
extern const struct experiment experiments[];
extern const int experiments_count;
const struct experiment *experiment_find(const char *name); /* NULL: there is none */

#endif
