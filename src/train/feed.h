/* SPDX-License-Identifier: Apache-2.0 */
/* Batches from a data set, arrays or a callback, on their way into runs: one form for all three. */
#ifndef TRAIN_FEED_H
#define TRAIN_FEED_H

#include "graphi/train.h"

struct feeder_input {
    const char *name;
    graphi_dtype dtype;
    size_t sample_bytes;
    void *buffer; /* of a whole batch */
};

struct feeder {
    graphi_feed feed; /* the caller's */
    bool trains;      /* whole batches alone, in an order of each epoch */
    uint64_t seed;
    struct feeder_input input[GRAPHI_FEED_ARRAYS];
    int count;
    bool carried;
    int64_t batch, batches; /* batches of an epoch; 0: not known */
    uint64_t hash;          /* of what they hold; 0 of a callback */
    int64_t rows;           /* samples of the last batch */
    const int32_t *targets; /* of the last batch, target_rows of them, `scored` at least 0; NULL: there are none */
    int64_t target_rows, scored;
    /* arrays */
    uint32_t *order; /* of the samples in `order_epoch`; NULL: as they lie */
    int64_t order_epoch;
    graphi_data_position at; /* of the next batch, but of a data set, which knows it */
};

/* Makes the buffers. Closed by feeder_close also where it fails. Errors: INVALID, MEMORY. */
graphi_status feeder_open(const graphi_feed *feed, bool trains, uint64_t seed, struct feeder *feeder);
void feeder_close(struct feeder *feeder);

/* Whether anything is fed at all. */
bool feeder_is_given(const graphi_feed *feed);

/* The next batch into the buffers; feeder->rows 0: a callback has none, and the epoch is over. */
graphi_status feeder_next(struct feeder *feeder);

/* The buffers into those inputs that the run has; counts them into *taken. Errors: INVALID. */
graphi_status feeder_set(const struct feeder *feeder, graphi_run *run, int *taken);

graphi_data_position feeder_at(const struct feeder *feeder);
graphi_status feeder_move(struct feeder *feeder, graphi_data_position at);

#endif
