/* SPDX-License-Identifier: Apache-2.0 */
/* A training: what its files share. trainer.c opens it, trainer_run.c takes steps, trainer_save.c writes checkpoints.
 */
#ifndef TRAIN_TRAINING_H
#define TRAIN_TRAINING_H

#include <sys/stat.h>

#include "graphi/schedule.h"
#include "train/record_check.h"
#include "train/score.h"

struct graphi_trainer {
    graphi_trainer_options how; /* the caller's, its defaults settled */
    graphi_trainer_info info;
    graphi_schedule schedule;
    struct feeder feeder;
    struct scorer scorer;
    bool validates;
    int parts, runs_a_step; /* executions with updates of a step, which the state counts */
    /* Made here where the caller gave none. */
    graphi_machine *machine;
    graphi_state *own_state, *state;
    graphi_plan *plan[GRAPHI_TRAINER_PARTS + 1]; /* of the parts, then of the evaluation */
    graphi_run *own_run[GRAPHI_TRAINER_PARTS + 1], *run[GRAPHI_TRAINER_PARTS + 1];
    bool stopped;        /* it was asked to */
    graphi_status ended; /* what a callback ended it with */
    bool told_rate, told_words, told_others;
    struct stat seen; /* the checkpoint as it was last known */
    bool is_there;
};

enum { EVALUATION = GRAPHI_TRAINER_PARTS };

static inline struct network trainer_network(const struct graphi_trainer *trainer)
{
    return (struct network){trainer->how.network, trainer->how.model};
}

#endif
