/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop: data in, steps, validation, checkpoints, a log. `graphi train` and `graphi demo` run it. */
#ifndef CLI_TRAINER_H
#define CLI_TRAINER_H

#include "cli/evaluate.h"

struct trainer {
    struct job job;
    graphi_data *data;
    graphi_data_info about;
    graphi_schedule schedule;
    struct evaluator validation;
    bool validates;
    struct batch batch;
    FILE *log;
    uint64_t step, last_step; /* of the state; where to stop */
    int64_t validate_every;
    struct result *result;
};

/* Opens data and network. `split`: what validation runs on. Prints what is wrong. */
graphi_status trainer_open(const struct options *options, const char *name, graphi_data_split split, double tune,
                           struct result *result, struct trainer *trainer);

/* Trains until last_step or an interruption (INTERRUPTED, checkpoint written). Results go into result->train. */
graphi_status trainer_run(struct trainer *trainer);

/* Feeds the next batch and the learning rate of this step. */
graphi_status trainer_feed(struct trainer *trainer);
void trainer_close(struct trainer *trainer);

/* What training that ended so has written: --checkpoint, --log. */
void training_files(const struct options *options, graphi_status status, struct result *result);

/* A note where the files have fewer labels than they tell classes apart: one wrong byte makes 256 of 10. */
void note_labels(struct result *result, const graphi_data_info *about);

/* Model options that fit the data: classes, channels, vocabulary. */
graphi_status open_data(const struct options *options, const char *name, graphi_data_split split,
                        graphi_model_options *model, graphi_data **data);

/* Loads --checkpoint into the state; data (may be NULL) is set to its position. INVALID if the checkpoint is of other
 * data or, with data, of another seed. */
graphi_status checkpoint_load(const char *path, uint64_t seed, graphi_state *state, graphi_data *data);
graphi_status checkpoint_save(const char *path, uint64_t seed, const graphi_state *state, const graphi_data *data);

#endif
