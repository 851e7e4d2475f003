/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets of input graphs for dynamic networks: every sample is a graph of its own, a tree, a chain or any graph
 * without cycles. A batch is flat arrays of int32, which go into a graph's inputs as they are.
 *
 * What a path may be, a file or a folder (the format is found by names and first bytes, or said in the options):
 *   SEXPR    trees as s-expressions: (3 (2 It) (4 works)). The first word behind a parenthesis is the label, a second
 *            one makes a leaf; a label may be missing before a parenthesis. A line that begins with a parenthesis
 *            begins a tree, whatever is open. Words end at ASCII blanks and parentheses alone. *.txt, *.mrg, *.ptb
 *   PARENTS  *.parents: a line a sample, for each vertex the number of its parent (from 1; 0: the root), between blanks
 *            or bars. Beside it STEM.tokens (or .toks): the words of the first vertices; STEM.labels, if there is one:
 *            a label a vertex, # or _ for none
 *   CONLLU   *.conllu: dependency trees. A word's child is what has it as its head, its label the relation. Ranges of
 *            words (3-4), empty nodes (5.1) and comments are passed over
 *   EDGES    *.edges, *.gspan: any graphs without cycles. Samples end at blank lines or at "t ..."; "e CHILD PARENT" or
 *            "CHILD PARENT" is an edge, counted as often as it stands there; "v NUMBER LABEL [WORD [FUNCTION]]" is a
 *            vertex, in order from 0. Without such lines the vertices are those that edges name. # begins a comment
 *   LINES    any other text: a line a chain of <eos> and its words, each labelled with the word that follows, the last
 *            one with <eos>. With `steps`, chains of so many words that pass over the ends of lines
 * Files of a folder belong to the split that a word of their names says, as those of graphi/data.h; any may be gzip.
 *
 * A data set is used by one thread at a time; several data sets may be used by several threads. graphi_trees_next
 * allocates nothing. */
#ifndef GRAPHI_TREES_H
#define GRAPHI_TREES_H

#include "graphi/frontier.h"
#include "graphi/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_trees graphi_trees;

typedef enum graphi_trees_format {
    GRAPHI_TREES_AUTO,
    GRAPHI_TREES_SEXPR,
    GRAPHI_TREES_PARENTS,
    GRAPHI_TREES_CONLLU,
    GRAPHI_TREES_EDGES,
    GRAPHI_TREES_LINES
} graphi_trees_format;

/* Zero is the default everywhere. */
typedef struct graphi_trees_options {
    graphi_trees_format format;
    graphi_data_split split;
    int64_t batch; /* samples a batch. 0: 25 */
    /* Where validation has no files of its own: the fraction of the training samples that is held out for it, fixed by
     * their number alone. 0: 0.1; negative: nothing. */
    double validation;
    uint64_t seed;      /* of the order of training samples, a new one each epoch */
    bool ordered;       /* training samples in the order of the files */
    bool skip;          /* a sample that is wrong is left out and told (graphi_trees_skipped) instead of an error */
    int64_t classes;    /* labels that are numbers must be below; 0: the highest of the training files + 1 */
    int64_t vocabulary; /* most words told apart, the rarest become <unk>. 0: all */
    int64_t steps;      /* LINES: words of a sample. 0: those of a line */
    /* The words by number instead of those of the training files: a JSON list, of which <unk> is one. NULL: of the
     * training files, by descending frequency, then by bytes. */
    const char *words;
} graphi_trees_options;

typedef struct graphi_trees_info {
    graphi_trees_format format;
    graphi_data_split split;
    int64_t samples, vertices, edges;    /* of this split */
    int64_t batches, batch;              /* of one epoch; samples a batch */
    int64_t batch_vertices, batch_edges; /* no batch of this split has more */
    int64_t sample_vertices;             /* nor a sample */
    int64_t children;                    /* most of a vertex */
    int64_t rounds;                      /* most vertices on a path of a sample: a single vertex has one */
    int64_t vocabulary;                  /* words, <unk> included */
    int64_t classes;                     /* of labels; LINES: vocabulary. 0: there are no labels */
    int64_t unknown;                     /* vertices whose word is <unk> */
    int64_t unlabelled;                  /* vertices without a label, and those whose label no training sample has */
    int64_t skipped;                     /* samples of this split's file that were left out */
    uint64_t hash;                       /* of what the batches hold; for refusing to resume on other data */
    uint64_t encoding;                   /* of what the numbers mean: words and labels. Every split has the same */
    const char *note;                    /* samples that were left out; NULL: none. Lives as long as the data set */
} graphi_trees_info;

/* A batch: samples lie one after another, and vertices are numbered through. The arrays belong to the data set and hold
 * until its next batch. */
typedef struct graphi_trees_batch {
    int64_t samples, vertices, edges;
    const int32_t *sample_begin; /* [samples + 1]: the first vertex of each, then `vertices` */
    const int32_t *sample;       /* [vertices]: which sample */
    const int32_t *child_begin;  /* [vertices + 1]: the first of its children in `child`, then `edges` */
    const int32_t *child;        /* [edges]: vertices, in the order of the file */
    const int32_t *function;     /* [vertices]: as the file says, else 0 where there is a word and 1 where none is */
    const int32_t *token;        /* [vertices]: the word; -1: none */
    const int32_t *label;        /* [vertices]: 0 … classes − 1; -1: none */
    const int32_t *root;         /* [samples]: the first vertex that is nobody's child */
} graphi_trees_batch;

/* Opens one split of the data at `path`; `options` may be NULL. *out is the caller's (graphi_trees_close). Errors, *out
 * untouched: IO (missing, unreadable); INVALID, with FILE:LINE:COLUMN, for the first sample that is wrong (a cycle, a
 * second root, a child or parent that is not there, no vertex, a label out of range, a file that ends within a sample)
 * unless they are skipped; for no sample at all, options out of range, fewer training samples than a batch;
 * UNSUPPORTED: there is no such split; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_trees_open(const char *path, const graphi_trees_options *options, graphi_trees **out);

/* Opens another split of the same files with the same options, `batch` excepted (0: the same); words and labels are
 * shared. `trees` may be closed before the new one. Errors as graphi_trees_open. */
GRAPHI_API graphi_status graphi_trees_open_split(const graphi_trees *trees, graphi_data_split split, int64_t batch,
                                                 graphi_trees **out);

GRAPHI_API void graphi_trees_get_info(const graphi_trees *trees, graphi_trees_info *info);

/* Gives the next batch and steps on, at the end of an epoch into the next one. The last batch of an epoch of validation
 * or test may have fewer samples; training leaves out what does not fill a batch. INVALID for NULL. */
GRAPHI_API graphi_status graphi_trees_next(graphi_trees *trees, graphi_trees_batch *batch);

/* Position, for resuming: after set(get()) the same batches follow, on any machine. Set gives INVALID for an epoch
 * below zero or an index outside 0 … batches − 1, position unchanged. */
GRAPHI_API graphi_data_position graphi_trees_get_position(const graphi_trees *trees);
GRAPHI_API graphi_status graphi_trees_set_position(graphi_trees *trees, graphi_data_position position);

/* The text of word or label `id`, and its length in bytes (it may hold any byte; a zero follows). NULL outside the
 * vocabulary and the classes, and of labels that are numbers. Lives as long as the data set. */
GRAPHI_API const char *graphi_trees_word(const graphi_trees *trees, int64_t id, size_t *length);
GRAPHI_API const char *graphi_trees_label(const graphi_trees *trees, int64_t id, size_t *length);

/* Why the i-th sample that was left out is no sample, as an error says it; the first hundred are kept. NULL past them.
 * Lives as long as the data set. */
GRAPHI_API const char *graphi_trees_skipped(const graphi_trees *trees, int64_t i);

/* How batches go into a network with a dynamic part (graphi/dynamic.h). */
typedef struct graphi_trees_feed_options {
    const char *name; /* of the dynamic part; NULL: "graph" */
    int functions;    /* of the dynamic part; 0: 1 */
    bool roots;       /* scored are roots alone instead of all vertices that have a label */
} graphi_trees_feed_options;

/* Makes a feed of the data set for graphi_trainer_create and graphi_run_score: structure, and inputs "words" and
 * "labels", int32 [vertices], as far as the graph has them; targets are labels. The graph's bounds have to be
 * batch_vertices and batch_edges at least. Where there are no words at all, all are 0. The data set is the feed's while
 * it is used, and position with it. INVALID where vertices of a training split have no label; errors of
 * graphi_frontier_create. */
GRAPHI_API graphi_status graphi_trees_feed(graphi_trees *trees, const graphi_trees_feed_options *options,
                                           graphi_feed *feed);

/* NULL is accepted. */
GRAPHI_API void graphi_trees_close(graphi_trees *trees);

#ifdef __cplusplus
}
#endif
#endif
