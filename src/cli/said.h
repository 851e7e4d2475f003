/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint says besides its parameters: of which network it is, in which form, on which data, how far. */
#ifndef CLI_SAID_H
#define CLI_SAID_H

#include "cli/training.h"

enum { SAID_BYTES = 256 };

/* The network as it would be typed, since parameters of the same names and shapes may belong to another: with what
 * changes the function that they parametrize, what else training goes on with, and what of that a text's has: dropout
 * and clipping may go by the size. */
struct said_network {
    char computes[SAID_BYTES], trained[SAID_BYTES], text[SAID_BYTES]; /* "": not said */
};

/* Older files have no network, sizes, encoding or losses. */
struct said {
    struct said_network network;
    const char *size, *level; /* static text; NULL: not said */
    long long units, classes, vocabulary, limit; /* 0: not said; limit: --vocabulary */
    long long epoch, index, batch;
    unsigned long long seed, hash, encoding;
    int found; /* of the five numbers that tell a position */
    bool encoded;
    bool owes; /* a validation was stopped */
    struct losses mean;
};

/* For graphi_state_load; context: a struct said, zeroed but for its losses. */
void said_add(void *context, const char *key, const char *value);

/* The job's network in these words. */
void said_of(const struct job *job, struct said_network *network);

/* Of images, of text; 0: not said. */
int64_t said_image(const struct said *said);
int64_t said_unroll(const struct said *said);

/* INVALID, reported, where these are words of another network. */
graphi_status said_words(const char *path, const char *found, const char *expected);

/* Whether the file is of the network that the job has. Reported. */
graphi_status said_check(const char *path, const struct said *said, const struct job *job);

/* Options of the network `name` that were not typed become those that the file says. INVALID, reported, where it is of
 * another network, or of other classes, another level or vocabulary than were typed. */
graphi_status said_complete(const char *path, const struct said *said, const char *name, struct options *options);

#endif
