/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation form of a network over the state that training changes: a second graph and plan, one state. */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H

#include "cli/answers.h"
#include "tool/job.h"

/* What one batch of a network takes, on its way from a data set to a run. */
struct batch {
    void *inputs;
    int32_t *targets;
    size_t input_bytes, target_bytes;
};

/* Zeroed memory for a network of images or text. Prints what is wrong; closed in any case. */
graphi_status batch_open(const graphi_model_info *info, struct batch *batch);

/* The last batch goes into the run; not printed. */
graphi_status batch_set(const struct batch *batch, const graphi_model_info *info, graphi_run *run);

/* The next one, into the memory and the run; not printed. */
graphi_status batch_next(struct batch *batch, const graphi_model_info *info, graphi_data *data, graphi_run *run,
                         int64_t *rows);
void batch_close(struct batch *batch);

struct evaluator {
    struct job job; /* its machine and state are the training graph's */
    graphi_data *data;
    struct batch batch;
    float *logits;
    struct answers *answers; /* of every sample, while it is scored; NULL: nowhere */
};

struct score {
    double loss, metric; /* accuracy in [0, 1] or perplexity */
    int64_t samples;
};

/* Takes over `data` (closed by evaluator_close). main: stored plans and tuning are for this graph, not for the
 * training graph beside it. Prints what is wrong. */
graphi_status evaluator_open(const struct job *job, bool main, graphi_data *data, struct evaluator *evaluator);

/* Samples, or times of a text, in one pass over the split, of at most `batches` (0: all). */
int64_t evaluator_rows(const struct evaluator *evaluator, int64_t batches);

/* That pass. NONFINITE if the loss is not. Prints what is wrong. Ctrl-C ends
 * it with OK: the caller, who may have a checkpoint to write first, must ask report_interrupted(), and the score is
 * then of nothing. */
graphi_status evaluator_score(struct evaluator *evaluator, int64_t batches, struct score *score);
void evaluator_close(struct evaluator *evaluator);

/* Sets every parameter whose name starts with `prefix` to zero: carried states at the start of a text. */
graphi_status zero_states(graphi_state *state, const char *prefix);

/* What a metric is better at. */
bool metric_is_accuracy(const graphi_model_info *info);

#endif
