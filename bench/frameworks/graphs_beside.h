/* SPDX-License-Identifier: Apache-2.0 */
/* DyNet and PyTorch beside a dynamic network of ours, in turns (peer_dynamic.py): the same input graphs, weights by the
 * same formula, loss and gradients held against each other before anything is timed. */
#ifndef BENCH_FRAMEWORKS_GRAPHS_BESIDE_H
#define BENCH_FRAMEWORKS_GRAPHS_BESIDE_H

#include "bench.h"

/* A network of ours with what the peers are asked for. A cycle is forward, backward and update of every batch. */
struct graphs_row {
    struct bench *bench;
    const char *id;
    const graphi_model_info *info; /* its name is the peers' word, too */
    int64_t features;              /* columns of words */
    json_t *row;                   /* ours, borrowed */
    json_t *batches;               /* list of {sample_begin, child_begin, child, token, label}, borrowed */
    int64_t vertices;              /* of a cycle */
    double loss;                   /* of the first batch, by the first weights */
    json_t *gradients;             /* of it: name to [norm, probe], borrowed */
    graphi_status (*cycle)(void *context);
    void *context;
    double best; /* least of the peers' times over ours; 0: none */
};

/* Rows of all peers that words of the command ask for; those that fail say why. Sets best, and the row's times and
 * speed-up. */
graphi_status graphs_beside(struct graphs_row *row);

/* Whether the word names a peer. */
bool graphs_is_peer(const char *word);

#endif
