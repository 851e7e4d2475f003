/* SPDX-License-Identifier: Apache-2.0 */
/* What the splits of a data set share: the training files, which of their samples are held out for validation, the
 * normalisation, the vocabulary. Immutable once open, counted, so that splits of one may be used by several threads. */
#ifndef TRAIN_CORPUS_H
#define TRAIN_CORPUS_H

#include "train/source.h"
#include "train/tokens.h"

#include <stdatomic.h>

struct corpus {
    atomic_int users;
    struct source source;
    char note[512];              /* what of the folder was joined or left out; empty: nothing */
    graphi_data_options options; /* checked, zeros replaced by the defaults (not height, width, channels, classes) */
    int64_t samples;             /* of the training files; text: tokens */
    int64_t held;                /* of these, held out for validation */
    int64_t classes;             /* or the size of the vocabulary */
    int64_t labels;              /* different ones that occur, or classes */
    /* images */
    struct image_set train;
    uint32_t *chosen; /* [samples]: the training split's samples, then the held ones, each part ascending */
    float mean[GRAPHI_DATA_CHANNELS], std[GRAPHI_DATA_CHANNELS];
    /* text */
    struct vocabulary vocabulary;
    int32_t *tokens; /* [samples]; the held ones are the last */
};

graphi_status corpus_open(const char *path, const graphi_data_options *options, struct corpus **out);

/* Gives up one user; the last one frees. NULL is accepted. */
void corpus_release(struct corpus *corpus);

/* A permutation of 0 … count − 1 that depends on key and epoch alone. */
void permute(uint32_t *order, int64_t count, uint64_t key, uint64_t epoch);

#endif
