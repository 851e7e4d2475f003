/* SPDX-License-Identifier: Apache-2.0 */
/* What a network learns from or is judged by: images or text (graphi/data.h), or input graphs (graphi/trees.h), in one
 * form for the commands. */
#ifndef CLI_SAMPLES_H
#define CLI_SAMPLES_H

#include "graphi/graphi.h"

/* One of the two, or none. */
struct samples {
    graphi_data *data;
    graphi_trees *trees;
    graphi_trees_feed_options graphs; /* of trees */
};

/* Of trees: samples, batches, classes, hashes, unknown words and note, as far as they have them. */
void samples_info(const struct samples *samples, graphi_data_info *info);

/* Another split of the same files. What is wrong is not reported: UNSUPPORTED is no mistake everywhere. */
graphi_status samples_open_split(const struct samples *samples, graphi_data_split split, struct samples *out);

/* A feed of it; a failure is not reported. */
graphi_status samples_feed(const struct samples *samples, graphi_feed *feed);

void samples_close(struct samples *samples);

#endif
