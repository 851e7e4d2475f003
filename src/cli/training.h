/* SPDX-License-Identifier: Apache-2.0 */
/* A training by the command: the library's trainer (graphi/train.h) with options, progress, a log and a result around
 * it. `train` and `demo` run it, dcgan's with two players. What is wrong is reported. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include "cli/evaluate.h"
#include "tool/output.h"

enum { TRAINING_STRINGS = 32 };

struct training {
    struct options options; /* the job's: as asked for, and of length and rate as the network is usually trained */
    struct job job;
    struct samples data;
    graphi_feed feed, validation_feed;
    const char *keys[TRAINING_STRINGS], *values[TRAINING_STRINGS]; /* of its checkpoint */
    char encoding[24];                                             /* of input graphs: words and labels */
    graphi_data_info about;
    struct evaluator validation;
    bool validates;
    graphi_trainer *trainer;
    graphi_ranks *ranks; /* processes that train together, the caller's; NULL: this one alone */
    graphi_group *group; /* that takes the steps; NULL: the trainer does */
    struct output_log log;
    struct result *result;
    bool reported; /* what ended training was */
};

/* Data, network and state. `split`: what validation runs on; of a network without a metric nothing does. USAGE where
 * --resume or --every lacks a --checkpoint, or the length is given twice. Closed by training_close in any case. */
graphi_status training_open(const struct options *options, const char *name, graphi_data_split split,
                            struct result *result, struct training *training);

/* How it is usually trained; what differs is changed before training_begin. */
graphi_trainer_options training_usual(struct training *training);

/* The trainer, with --resume where it was left. */
graphi_status training_begin(struct training *training, const graphi_trainer_options *how);

/* After the plans: --log with these columns, and notes on what goes on. */
graphi_status training_log(struct training *training, const char *columns);

/* Trains until the end or an interruption (INTERRUPTED, checkpoint written). Results go into result->train. */
graphi_status training_run(struct training *training);

void training_close(struct training *training);

/* All of this for a network that is judged by validation. */
graphi_status training_prepare(const struct options *options, const char *name, graphi_data_split split, double tune,
                               graphi_ranks *ranks, struct result *result, struct training *training);

/* A row of losses, after progress. */
void training_tell_losses(const struct training *training, double loss, json_t *value);

#endif
