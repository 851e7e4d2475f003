/* SPDX-License-Identifier: Apache-2.0 */
/* One split of a data set of input graphs: its order, and the making of batches. Everything is allocated when it is
 * opened, for the largest samples together, so that a training step allocates nothing. Used by one thread at a time;
 * what splits share (struct treebank) never changes. Usual size: batches of 25 samples, 950 vertices. */
#include "graphi/trees.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "dynamic/treebank.h"
#include "dynamic/trees.h"
#include "train/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct graphi_trees {
    struct treebank *bank;
    const struct forest *forest;
    struct forest own;      /* the file of this split, if not the training one */
    const uint32_t *chosen; /* the samples of this split within the forest; NULL: all */
    uint32_t *order;        /* of the training samples in `order_epoch`; NULL: as they are */
    int64_t order_epoch;
    graphi_trees_info info;
    graphi_data_position position;
    char note[512];
    int32_t *arrays; /* of a batch, all in one */
    struct trees_feed feed;
    int32_t *sample_begin, *sample, *child_begin, *child, *function, *token, *label, *root;
};

/* --- opening --- */

static graphi_status choose(graphi_trees *t)
{
    struct treebank *b = t->bank;
    const graphi_data_split split = t->info.split;
    const int64_t all = forest_samples(&b->train), kept = all - b->held;
    t->forest = &b->train;
    t->chosen = b->chosen + (split == GRAPHI_TRAIN ? 0 : kept);
    t->info.samples = split == GRAPHI_TRAIN ? kept : b->held;
    if (split == GRAPHI_TRAIN || (split == GRAPHI_VALIDATION && b->held))
        return GRAPHI_OK;
    if (!*b->files.path[split])
        return fail(GRAPHI_UNSUPPORTED, b->files.path[GRAPHI_TRAIN], "found no file of the %s split%s, expected one",
                    split == GRAPHI_TEST ? "test" : "validation",
                    split == GRAPHI_TEST ? "" : " beside it and nothing held out");
    TRY(treebank_read(b, split, &t->own));
    t->forest = &t->own;
    t->chosen = NULL;
    t->info.samples = forest_samples(&t->own);
    return GRAPHI_OK;
}

static int64_t sample_at(const graphi_trees *t, int64_t i)
{
    return t->chosen ? t->chosen[i] : i;
}

static int64_t vertices_of(const struct forest *f, int64_t s)
{
    return f->sample_start.data[s + 1] - f->sample_start.data[s];
}

static int64_t edges_of(const struct forest *f, int64_t s)
{
    return f->child_start.data[f->sample_start.data[s + 1]] - f->child_start.data[f->sample_start.data[s]];
}

static int larger_first(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

/* The sum of all sizes, the largest, and that of a batch of the largest. */
static void sum_sizes(graphi_trees *t, int64_t *sizes, int64_t (*size_of)(const struct forest *, int64_t), int64_t *all,
                      int64_t *largest, int64_t *batch)
{
    for (int64_t i = 0; i < t->info.samples; i++)
        sizes[i] = size_of(t->forest, sample_at(t, i));
    qsort(sizes, (size_t)t->info.samples, sizeof *sizes, larger_first);
    *largest = sizes[0];
    for (int64_t i = 0; i < t->info.samples; i++) {
        *all += sizes[i];
        *batch += i < t->info.batch ? sizes[i] : 0;
    }
}

static graphi_status measure(graphi_trees *t)
{
    int64_t *sizes = mem_zalloc_array((size_t)t->info.samples, sizeof *sizes), edges;
    if (!sizes)
        return fail_memory("sizes of samples", (size_t)t->info.samples * sizeof *sizes);
    sum_sizes(t, sizes, vertices_of, &t->info.vertices, &t->info.sample_vertices, &t->info.batch_vertices);
    sum_sizes(t, sizes, edges_of, &t->info.edges, &edges, &t->info.batch_edges);
    mem_free(sizes);
    return GRAPHI_OK;
}

static uint64_t hash_array(uint64_t hash, const int32_t *array, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = hash_u64(hash, (uint32_t)array[i]);
    return hash;
}

/* Labels and words that are not known, and the hash of everything. */
static void look(graphi_trees *t)
{
    const struct forest *f = t->forest;
    for (int64_t i = 0; i < t->info.samples; i++) {
        const int64_t s = sample_at(t, i);
        for (int64_t v = f->sample_start.data[s]; v < f->sample_start.data[s + 1]; v++) {
            t->info.unlabelled += f->label.data[v] < 0;
            t->info.unknown += t->bank->words.count && f->word.data[v] == t->bank->words.unknown;
        }
    }
    uint64_t hash = hash_u64(hash_u64(t->bank->encoding, (uint64_t)t->info.samples), (uint64_t)t->info.batch);
    hash = hash_array(hash, f->word.data, f->word.count);
    hash = hash_array(hash, f->label.data, f->label.count);
    hash = hash_array(hash, f->children.data, f->children.count);
    hash = hash_bytes(hash, f->function.data, f->function.count);
    t->info.hash = hash_bytes(hash, f->child_start.data, f->child_start.count * sizeof *f->child_start.data);
}

static graphi_status make_arrays(graphi_trees *t)
{
    const size_t samples = (size_t)t->info.batch, vertices = (size_t)t->info.batch_vertices;
    const size_t edges = (size_t)t->info.batch_edges, all = 2 * samples + 5 * vertices + edges + 2;
    const bool shuffle = t->info.split == GRAPHI_TRAIN && !t->bank->options.ordered;
    t->arrays = mem_zalloc_array(all, sizeof *t->arrays);
    t->order = shuffle ? mem_zalloc_array((size_t)t->info.samples, sizeof *t->order) : NULL;
    t->order_epoch = -1;
    if (!t->arrays || (shuffle && !t->order))
        return fail_memory("batches of input graphs", all * sizeof *t->arrays);
    t->sample_begin = t->arrays;
    t->root = t->sample_begin + samples + 1;
    t->child_begin = t->root + samples;
    t->sample = t->child_begin + vertices + 1;
    t->function = t->sample + vertices;
    t->token = t->function + vertices;
    t->label = t->token + vertices;
    t->child = t->label + vertices;
    return GRAPHI_OK;
}

static void note_skipped(graphi_trees *t)
{
    const struct forest *f = t->forest;
    t->info.skipped = f->skipped;
    if (!f->skipped)
        return;
    snprintf(t->note, sizeof t->note, "%lld of %lld samples were left out; the first: %s", (long long)f->skipped,
             (long long)(f->skipped + forest_samples(f)), f->reasons[0]);
    t->info.note = t->note;
}

static graphi_status open_split(graphi_trees *t)
{
    const struct treebank *b = t->bank;
    TRY(choose(t));
    const bool train = t->info.split == GRAPHI_TRAIN;
    t->info.format = b->files.format->format;
    t->info.vocabulary = (int64_t)b->words.count;
    t->info.classes = b->classes;
    t->info.encoding = b->encoding;
    t->info.children = t->forest->children_most;
    t->info.rounds = t->forest->rounds_most;
    t->info.batches = (t->info.samples + (train ? 0 : t->info.batch - 1)) / t->info.batch;
    if (!t->info.batches)
        return fail(GRAPHI_INVALID, b->files.path[GRAPHI_TRAIN],
                    "found %lld training samples, expected at least a batch of %lld", (long long)t->info.samples,
                    (long long)t->info.batch);
    TRY(measure(t));
    if (t->info.batch_vertices > INT32_MAX || t->info.batch_edges > INT32_MAX)
        return fail(GRAPHI_INVALID, b->files.path[GRAPHI_TRAIN],
                    "found batches of up to %lld vertices and %lld edges, expected at most 2^31 - 1",
                    (long long)t->info.batch_vertices, (long long)t->info.batch_edges);
    look(t);
    note_skipped(t);
    return make_arrays(t);
}

/* Takes over one user of the treebank, also when it fails. */
static graphi_status open_view(struct treebank *bank, graphi_data_split split, int64_t batch, graphi_trees **out)
{
    graphi_trees *t = mem_zalloc(sizeof *t);
    if (!t) {
        treebank_release(bank);
        return fail_memory("input graphs", sizeof *t);
    }
    t->bank = bank;
    t->info = (graphi_trees_info){.split = split, .batch = batch};
    graphi_status status = open_split(t);
    if (status == GRAPHI_OK)
        *out = t;
    else
        graphi_trees_close(t);
    return status;
}

graphi_status graphi_trees_open(const char *path, const graphi_trees_options *options, graphi_trees **out)
{
    GIVEN(out);
    struct treebank *bank;
    TRY(treebank_open(path, options, &bank));
    return open_view(bank, bank->options.split, bank->options.batch, out);
}

graphi_status graphi_trees_open_split(const graphi_trees *trees, graphi_data_split split, int64_t batch,
                                      graphi_trees **out)
{
    GIVEN(trees);
    GIVEN(out);
    if ((unsigned)split > GRAPHI_TEST || batch < 0 || batch > 1 << 20)
        return fail(GRAPHI_INVALID, "split of input graphs",
                    "found split %d and batch %lld, expected one of graphi_data_split and 0 to %d", (int)split,
                    (long long)batch, 1 << 20);
    atomic_fetch_add_explicit(&trees->bank->users, 1, memory_order_relaxed); /* pairs with treebank_release */
    return open_view(trees->bank, split, batch ? batch : trees->info.batch, out);
}

void graphi_trees_close(graphi_trees *trees)
{
    if (!trees)
        return;
    treebank_release(trees->bank);
    trees_feed_close(&trees->feed);
    forest_free(&trees->own);
    mem_free(trees->order);
    mem_free(trees->arrays);
    mem_free(trees);
}

/* --- batches --- */

/* Sample s behind what the batch has. */
static void add_sample(graphi_trees *t, int64_t s, graphi_trees_batch *batch)
{
    const struct forest *f = t->forest;
    const int64_t first = f->sample_start.data[s], vertices = vertices_of(f, s), edges = edges_of(f, s);
    const int64_t first_edge = f->child_start.data[first];
    const int32_t vertex = (int32_t)batch->vertices, edge = (int32_t)batch->edges;
    const size_t bytes = (size_t)vertices * sizeof *t->token;
    memcpy(t->token + vertex, f->word.data + first, bytes);
    memcpy(t->label + vertex, f->label.data + first, bytes);
    for (int64_t v = 0; v < vertices; v++) {
        t->sample[vertex + v] = (int32_t)batch->samples;
        t->function[vertex + v] = f->function.data[first + v];
        t->child_begin[vertex + v] = edge + (int32_t)(f->child_start.data[first + v] - first_edge);
    }
    for (int64_t e = 0; e < edges; e++)
        t->child[edge + e] = vertex + f->children.data[first_edge + e];
    t->root[batch->samples] = vertex + f->root.data[s];
    t->sample_begin[batch->samples++] = vertex;
    batch->vertices += vertices;
    batch->edges += edges;
}

graphi_status graphi_trees_next(graphi_trees *trees, graphi_trees_batch *batch)
{
    GIVEN(trees);
    GIVEN(batch);
    graphi_trees *t = trees;
    const int64_t first = t->position.index * t->info.batch;
    if (t->order && t->order_epoch != t->position.epoch) {
        permute(t->order, t->info.samples, t->bank->options.seed, (uint64_t)t->position.epoch);
        t->order_epoch = t->position.epoch;
    }
    *batch = (graphi_trees_batch){.sample_begin = t->sample_begin,
                                  .sample = t->sample,
                                  .child_begin = t->child_begin,
                                  .child = t->child,
                                  .function = t->function,
                                  .token = t->token,
                                  .label = t->label,
                                  .root = t->root};
    for (int64_t i = first; i < first + t->info.batch && i < t->info.samples; i++)
        add_sample(t, sample_at(t, t->order ? t->order[i] : i), batch);
    t->sample_begin[batch->samples] = (int32_t)batch->vertices;
    t->child_begin[batch->vertices] = (int32_t)batch->edges;
    if (++t->position.index == t->info.batches)
        t->position = (graphi_data_position){t->position.epoch + 1, 0};
    return GRAPHI_OK;
}

void graphi_trees_get_info(const graphi_trees *trees, graphi_trees_info *info)
{
    if (info)
        *info = trees ? trees->info : (graphi_trees_info){0};
}

graphi_data_position graphi_trees_get_position(const graphi_trees *trees)
{
    return trees ? trees->position : (graphi_data_position){0};
}

graphi_status graphi_trees_set_position(graphi_trees *trees, graphi_data_position position)
{
    GIVEN(trees);
    if (position.epoch < 0 || position.epoch == INT64_MAX || position.index < 0 ||
        position.index >= trees->info.batches)
        return fail(GRAPHI_INVALID, trees->bank->files.path[GRAPHI_TRAIN],
                    "found position epoch %lld, batch %lld, expected epochs from 0 and batches 0 to %lld",
                    (long long)position.epoch, (long long)position.index, (long long)trees->info.batches - 1);
    trees->position = position;
    return GRAPHI_OK;
}

static const char *text_of(const struct vocabulary *v, int64_t id, size_t *length)
{
    if (id < 0 || (uint64_t)id >= v->count)
        return NULL;
    if (length)
        *length = v->words[id].length;
    return v->words[id].text;
}

const char *graphi_trees_word(const graphi_trees *trees, int64_t id, size_t *length)
{
    return trees ? text_of(&trees->bank->words, id, length) : NULL;
}

const char *graphi_trees_label(const graphi_trees *trees, int64_t id, size_t *length)
{
    if (!trees)
        return NULL;
    const struct treebank *b = trees->bank;
    return text_of(b->train.kind == LABELS_WORDS ? &b->words : &b->labels, id, length);
}

const char *graphi_trees_skipped(const graphi_trees *trees, int64_t i)
{
    return trees && i >= 0 && i < trees->forest->skipped && i < FOREST_KEPT_REASONS ? trees->forest->reasons[i] : NULL;
}

struct trees_feed *trees_feed_of(graphi_trees *trees) { return &trees->feed; }

void trees_feed_close(struct trees_feed *feed)
{
    graphi_frontier_destroy(feed->frontier);
    mem_free(feed->words);
    *feed = (struct trees_feed){0};
}
