/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a checkpoint says is what is asked for. Errors: INVALID, naming the file and both. */
#ifndef TRAIN_RECORD_CHECK_H
#define TRAIN_RECORD_CHECK_H

#include "train/record.h"

/* A network that a state is of. */
struct network {
    const char *name;                  /* NULL: not known, and not compared */
    const graphi_model_options *model; /* NULL: it is no built-in one */
};

/* Of the same function of its parameters. */
graphi_status record_check(const char *path, const struct record *record, const struct network *network);

/* And what training goes on with beside: images and windows of another size are other data. */
graphi_status record_check_form(const char *path, const struct record *record, const struct network *network);

/* The same data in the same order, without which going on is not bit for bit. */
graphi_status record_check_place(const char *path, const struct record *record, uint64_t hash, int64_t batch,
                                 uint64_t seed);

/* graphi_checkpoint_complete. */
graphi_status record_complete(const char *path, const struct record *record, const char *name, graphi_form *form);

#endif
