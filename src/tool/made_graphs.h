/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of made input graphs for dynamic networks, where no data are at hand: what `run`, `profile` and `simulate`
 * are fed with, and benchmarks. */
#ifndef TOOL_MADE_GRAPHS_H
#define TOOL_MADE_GRAPHS_H

#include "graphi/dynamic.h"
#include "graphi/models.h"

#include <stdbool.h>

/* A batch with all arrays; made_graphs_free. */
struct made_graphs {
    graphi_input_graphs graphs;
    graphi_vertex_values value[3];
    int32_t *numbers; /* all arrays of int32 */
    float *root;
};

/* As many samples as the network's batch, as far as the bounds allow: complete binary trees (treefc), binary trees of
 * about 19 words as those of the Stanford Sentiment Treebank (treelstm), dependency trees, chains of 64 words
 * (fixed-lstm) or of 1 to 82 (var-lstm), graphs without cycles whose labels are longest distances to a sink. words:
 * below the vocabulary, labels below the classes. Errors are reported: MEMORY. */
graphi_status made_graphs(const graphi_model_info *info, uint64_t seed, struct made_graphs *out);
void made_graphs_free(struct made_graphs *made);

/* Makes and feeds such a batch. Errors are reported. */
graphi_status made_graphs_feed(const graphi_model_info *info, uint64_t seed, graphi_run *run);

/* The bounds of a network's batch. */
graphi_frontier_options made_graphs_bounds(const graphi_model_info *info);

#endif
