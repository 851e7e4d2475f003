/* SPDX-License-Identifier: Apache-2.0 */
/* A feed of the trainer over input graphs. Usual size: batches of 25 samples, 950 vertices. */
#include "dynamic/trees.h"

#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/ports.h"
#include "engine/run/run.h"

static graphi_status open(graphi_trees *trees, const graphi_trees_info *info, const graphi_trees_feed_options *options,
                          struct trees_feed *f)
{
    const size_t vertices = (size_t)info->batch_vertices;
    *f = (struct trees_feed){.trees = trees, .info = *info, .options = *options};
    f->words = mem_zalloc_array(3 * vertices, sizeof *f->words);
    if (!f->words)
        return fail_memory("feed of input graphs", 3 * vertices * sizeof *f->words);
    f->labels = f->words + vertices;
    f->targets = f->labels + vertices;
    return graphi_frontier_create(&(graphi_frontier_options){.vertices = info->batch_vertices,
                                                             .edges = info->batch_edges ? info->batch_edges : 1,
                                                             .functions = options->functions},
                                  &f->frontier);
}

static graphi_status next(void *context, graphi_data_position at, void *const *buffers, int64_t *rows)
{
    struct trees_feed *f = context;
    TRY(graphi_trees_set_position(f->trees, at));
    TRY(graphi_trees_next(f->trees, &f->batch));
    for (int64_t v = 0; v < f->batch.vertices; v++) {
        f->words[v] = f->info.vocabulary ? f->batch.token[v] : 0;
        f->targets[v] = f->options.roots ? -1 : f->batch.label[v];
        f->labels[v] = f->batch.label[v] < 0 ? 0 : f->batch.label[v]; /* of a loss that nobody asks for */
    }
    for (int64_t s = 0; f->options.roots && s < f->batch.samples; s++)
        f->targets[f->batch.root[s]] = f->batch.label[f->batch.root[s]];
    *rows = f->batch.samples;
    return GRAPHI_OK;
}

static graphi_status set(void *context, graphi_run *run)
{
    struct trees_feed *f = context;
    const graphi_vertex_values all[] = {{"words", GRAPHI_I32, 1, f->words}, {"labels", GRAPHI_I32, 1, f->labels}};
    graphi_vertex_values given[2];
    graphi_input_graphs graphs = {.samples = f->batch.samples,
                                  .vertices = f->batch.vertices,
                                  .edges = f->batch.edges,
                                  .sample = f->batch.sample,
                                  .function = f->batch.function,
                                  .child_begin = f->batch.child_begin,
                                  .child = f->batch.child,
                                  .value = given};
    for (int i = 0; i < 2; i++)
        if (plan_input(run->plan->compiled, all[i].input) >= 0)
            given[graphs.values++] = all[i];
    return graphi_frontier_feed(f->frontier, &graphs, f->options.name, run);
}

static const int32_t *targets(void *context, int64_t *rows)
{
    const struct trees_feed *f = context;
    *rows = f->batch.vertices;
    return f->targets;
}

graphi_status graphi_trees_feed(graphi_trees *trees, const graphi_trees_feed_options *options, graphi_feed *feed)
{
    GIVEN(trees);
    GIVEN(feed);
    const graphi_trees_feed_options none = {0};
    struct trees_feed *f = trees_feed_of(trees);
    graphi_trees_info info;
    graphi_trees_get_info(trees, &info);
    if (info.split == GRAPHI_TRAIN && info.unlabelled)
        return fail(GRAPHI_INVALID, "input graphs",
                    "found %lld of %lld vertices without a label, expected one for each", (long long)info.unlabelled,
                    (long long)info.vertices);
    trees_feed_close(f);
    TRY(open(trees, &info, options ? options : &none, f));
    *feed = (graphi_feed){.next = next,
                          .set = set,
                          .targets = targets,
                          .context = f,
                          .hash = info.hash,
                          .batch = info.batch,
                          .batches = info.batches};
    return GRAPHI_OK;
}
