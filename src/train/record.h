/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint says besides its parameters: of which network it is, in which form, on which data, how far. */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "graphi/train.h"
#include "train/network_words.h"

/* Older files have no network, sizes, encoding or losses. */
struct record {
    struct network_words network;
    const char *size, *level;                    /* static text; NULL: not said */
    long long units, classes, vocabulary, limit; /* 0: not said; limit: --vocabulary */
    long long epoch, index, batch;
    unsigned long long seed, hash, encoding, step;
    int found; /* of the five numbers that tell a position */
    bool encoded;
    bool owes; /* a validation was stopped */
    bool own;  /* of a version of Graphi */
    double loss[GRAPHI_TRAINER_LOSSES];
    double best;        /* metric of the best validation; NAN: not said */
    long long since;    /* validations after it */
};

enum { RECORD_PLACED = 5 };

/* For graphi_state_load; context: a struct record, zeroed, its losses NAN. */
void record_add(void *context, const char *key, const char *value);

/* A record of nothing. */
struct record record_none(void);

/* Of images, of text; 0: not said. */
int64_t record_image(const struct record *record);
int64_t record_unroll(const struct record *record);

/* Of recurrent networks; 0, NULL: not said. */
int64_t record_layers(const struct record *record);
double record_dropout(const struct record *record);
const char *record_optimizer(const struct record *record);

/* The built-in network that it is of; NULL: of none, or it does not say. */
const char *record_network(const struct record *record);

/* Which task it says; NULL: none. */
const char *record_task(const struct record *record);
const char *record_size(const struct record *record);

#endif
