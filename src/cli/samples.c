/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets of images, text and input graphs behind one door. */
#include "cli/samples.h"

void samples_info(const struct samples *s, graphi_data_info *info)
{
    graphi_trees_info trees;
    if (!s->trees) {
        graphi_data_get_info(s->data, info);
        return;
    }
    graphi_trees_get_info(s->trees, &trees);
    *info = (graphi_data_info){.split = trees.split,
                               .samples = trees.samples,
                               .batches = trees.batches,
                               .batch = trees.batch,
                               .classes = trees.classes,
                               .labels = trees.classes,
                               .hash = trees.hash,
                               .encoding = trees.encoding,
                               .unknown = trees.unknown,
                               .note = trees.note};
}

graphi_status samples_open_split(const struct samples *s, graphi_data_split split, struct samples *out)
{
    *out = (struct samples){.graphs = s->graphs};
    return s->trees ? graphi_trees_open_split(s->trees, split, 0, &out->trees)
                    : graphi_data_open_split(s->data, split, 0, &out->data);
}

graphi_status samples_feed(const struct samples *s, graphi_feed *feed)
{
    *feed = (graphi_feed){.data = s->data};
    return s->trees ? graphi_trees_feed(s->trees, &s->graphs, feed) : GRAPHI_OK;
}

void samples_close(struct samples *s)
{
    graphi_data_close(s->data);
    graphi_trees_close(s->trees);
    *s = (struct samples){0};
}
