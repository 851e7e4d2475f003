/* SPDX-License-Identifier: Apache-2.0 */
/* What `eval --output DIR` writes: the network's answer to every sample of the split, a row of a .npy file as each
 * comes, since all of them may be more than memory. What is wrong is reported.
 *   images  logits.npy float32 [samples, classes], predictions.npy and labels.npy int32 [samples]
 *   text    losses.npy float32 [time, batch], of a token after those before it, predictions.npy and labels.npy int32
 *           [time, batch]: the likeliest and the one that is there. A column is a row of the batch, which is a part of
 *           the text; logits of all tokens would be the vocabulary's size times the text */
#ifndef CLI_PREDICTIONS_H
#define CLI_PREDICTIONS_H

#include "tool/options.h"
#include "tool/output.h"
#include "tool/result.h"

enum { PREDICTION_FILES = 3 };

struct predictions {
    struct output output[PREDICTION_FILES]; /* file NULL: not open */
    graphi_model_info info;
};

/* Opens the files in the folder of --output for so many rows: samples, or times of a text. The old ones stay until
 * predictions_end. Errors: USAGE, the command reads one of these; IO. */
graphi_status predictions_begin(const struct options *options, int64_t rows, const graphi_model_info *info,
                            struct predictions *files);

/* Those of a scored batch, whose logits were asked for. Errors: IO. */
graphi_status predictions_add(struct predictions *files, const graphi_scored *batch);

/* The files take their places and are named in the result; `good` false: the old ones stay. Zeroed answers have none.
 * Errors: IO. */
graphi_status predictions_end(struct predictions *files, bool good, struct result *result);

#endif
