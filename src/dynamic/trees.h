/* SPDX-License-Identifier: Apache-2.0 */
/* What an open data set of input graphs keeps for its feed (trees_feed.c), and frees with itself. */
#ifndef DYNAMIC_TREES_H
#define DYNAMIC_TREES_H

#include "graphi/trees.h"

struct trees_feed {
    graphi_trees *trees; /* whose it is */
    graphi_trees_info info;
    graphi_trees_feed_options options;
    graphi_frontier *frontier;
    graphi_trees_batch batch; /* the last one */
    int32_t *words, *labels, *targets; /* [batch_vertices], in one allocation */
};

/* The data set's; zeroed until there is one. */
struct trees_feed *trees_feed_of(graphi_trees *trees);

/* Frees what it has: it is zeroed then. */
void trees_feed_close(struct trees_feed *feed);

#endif
