/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of one file: vertices with words, labels and child lists, one sample after another in flat arrays. A
 * reader begins a sample, adds vertices and edges in any order, and ends it; only then it is looked at as a whole:
 * whether there is a vertex, a cycle, and in trees one root and one parent a vertex. A sample that fails is dropped.
 * Words and names of labels are numbered as they appear, until forest_encode gives them the numbers of the training
 * files. Used by one thread, and never changed after forest_encode. Usual size: 8,500 samples, 320,000 vertices. */
#ifndef DYNAMIC_FOREST_H
#define DYNAMIC_FOREST_H

#include "base/array.h"
#include "dynamic/cursor.h"
#include "train/tokens.h"

enum { FOREST_LABELS_MOST = 1 << 20, FOREST_KEPT_REASONS = 100 };

/* What labels are: the first of the training files decides, or the format. */
enum label_kind { LABELS_OPEN, LABELS_NUMBERS, LABELS_NAMES, LABELS_WORDS };

struct forest_edge {
    int32_t child, parent;
};

struct forest {
    bool tree;                         /* one root, and one parent for every other vertex */
    enum label_kind kind, kind_before; /* kind_before: the sample that is being read */
    int64_t classes;                   /* numbers must be below; 0: FOREST_LABELS_MOST */
    struct vocabulary words, names;    /* as they appear; empty after forest_encode */
    /* Of all samples. Vertices are numbered within their sample, child_start runs through. */
    ARRAY(int64_t) sample_start; /* [samples + 1] */
    ARRAY(int32_t) root;         /* [samples] */
    ARRAY(int64_t) child_start;  /* [vertices + 1] */
    ARRAY(int32_t) children;
    ARRAY(int32_t) word, label;                    /* [vertices]: -1: none */
    ARRAY(uint8_t) function;                       /* [vertices] */
    int64_t children_most, rounds_most, label_end; /* label_end: the highest number + 1 */
    int64_t skipped;
    char *reasons[FOREST_KEPT_REASONS]; /* of the first that were skipped */
    /* Of the sample that is being read. */
    ARRAY(struct forest_edge) edges;
    ARRAY(struct place) places; /* [vertices of the sample] */
    ARRAY(int32_t) scratch;
};

/* Each leaves what it has for forest_free where it fails. Errors: MEMORY, and INVALID where told. */
graphi_status forest_begin(struct forest *forest);

/* A new vertex, which errors about it name by its place: *vertex is its number in the sample. */
graphi_status forest_vertex(struct forest *forest, struct place place, int32_t *vertex);

/* Both for a vertex of the sample. A label that is a number is INVALID where it is out of range, or labels are names;
 * its text is looked at. */
graphi_status forest_word(struct forest *forest, int32_t vertex, struct piece word);
graphi_status forest_label(struct forest *forest, const struct cursor *cursor, int32_t vertex, struct piece label);

/* LINES: the label is a word. */
graphi_status forest_next_word(struct forest *forest, int32_t vertex, struct piece word);

/* Without a call it is 0 where there is a word, else 1. */
void forest_function(struct forest *forest, int32_t vertex, int function);

/* Both are vertices of the sample, at the end at least. */
graphi_status forest_edge(struct forest *forest, int64_t child, int64_t parent);

/* Vertices of the sample so far. */
int32_t forest_size(const struct forest *forest);

/* Ends the sample: INVALID, with the place of a vertex, where it is no graph that is asked for; the sample is still
 * there then, for forest_drop. `start`: where it began. */
graphi_status forest_end(struct forest *forest, const struct cursor *cursor, struct place start);

/* Takes the sample back, and counts it as skipped. False: no memory. */
bool forest_drop(struct forest *forest, const char *reason);

/* Numbers of words and labels become those that the tables say, by the number until now. */
void forest_encode(struct forest *forest, const int32_t *words, const int32_t *names);

int64_t forest_samples(const struct forest *forest);

void forest_free(struct forest *forest);

#endif
