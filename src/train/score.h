/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over a feed that scores a run, made ready once and repeated as training goes on. */
#ifndef TRAIN_SCORE_H
#define TRAIN_SCORE_H

#include "train/feed.h"

struct scorer {
    graphi_run *run; /* the caller's; may be set between opening and running */
    struct feeder feeder;
    graphi_score_options how;
    int64_t batches; /* of a pass; 0: until there are none */
};

/* Closed also where it fails. As graphi_run_score, in three parts. */
graphi_status scorer_open(graphi_run *run, const graphi_feed *feed, const graphi_score_options *how,
                          struct scorer *scorer);
graphi_status scorer_run(struct scorer *scorer, graphi_score *score);
void scorer_close(struct scorer *scorer);

#endif
