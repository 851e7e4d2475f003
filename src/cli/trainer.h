/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop: data in, steps, validation, checkpoints, a log. `graphi train` and `graphi demo` run it. */
#ifndef CLI_TRAINER_H
#define CLI_TRAINER_H

#include "cli/evaluate.h"
#include "cli/training.h"

struct trainer {
    struct options options; /* the job's: as asked for, and of length and rate as the network is usually trained */
    struct job job;
    graphi_data *data;
    graphi_data_info about;
    graphi_schedule schedule;
    struct evaluator validation;
    bool validates;
    struct batch batch;
    struct output_log log;
    uint64_t step, last_step; /* of the state; where to stop */
    bool owes; /* the validation at `step` was stopped, or the log ends before it */
    int64_t validate_every;
    struct losses mean;
    struct result *result;
};

/* Opens data and network. `split`: what validation runs on. Prints what is wrong. */
graphi_status trainer_open(const struct options *options, const char *name, graphi_data_split split, double tune,
                           struct result *result, struct trainer *trainer);

/* Trains until last_step or an interruption (INTERRUPTED, checkpoint written). Results go into result->train. */
graphi_status trainer_run(struct trainer *trainer);

void trainer_close(struct trainer *trainer);

#endif
