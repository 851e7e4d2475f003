/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation form of a network over the state that training changes: a second graph and plan, one state. */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H

#include "cli/predictions.h"
#include "cli/samples.h"
#include "tool/job.h"

struct evaluator {
    struct job job; /* its machine and state are the training graph's */
    struct samples data;
    struct predictions *predictions; /* of every sample, while it is scored; NULL: nowhere */
    bool whole;                      /* the split is all of a text that training never saw */
    bool reported;                   /* what ended the scoring was */
};

/* Takes over `data` (closed by evaluator_close). main: stored plans and tuning are for this graph, not for the
 * training graph beside it. Prints what is wrong. */
graphi_status evaluator_open(const struct job *job, bool main, struct samples data, struct evaluator *evaluator);

/* Samples, or times of a text, in one pass over the split, of at most `batches` (0: all). */
int64_t evaluator_rows(const struct evaluator *evaluator, int64_t batches);

/* That pass. NONFINITE if the loss is not. Prints what is wrong. Ctrl-C ends it with OK: the caller must ask
 * report_interrupted(), and the score is then of nothing. */
graphi_status evaluator_score(struct evaluator *evaluator, int64_t batches, graphi_score *score);
void evaluator_close(struct evaluator *evaluator);

/* How the network is judged. */
graphi_metric metric_of(const graphi_model_info *info);

/* For `stop` of scoring and training: Ctrl-C was pressed. */
bool evaluator_stopped(void *context);

#endif
