/* SPDX-License-Identifier: Apache-2.0 */
/* What a format of input graphs is: one file read_NAME.c that ends in one table; formats.c lists them. A reader takes
 * one sample after another off a text. What is wrong with a sample is INVALID, and `recover` goes to where the next one
 * begins. Readers use no recursion, and no memory but in proportion to the text. Used by one thread. */
#ifndef DYNAMIC_FORMAT_H
#define DYNAMIC_FORMAT_H

#include "dynamic/forest.h"
#include "graphi/trees.h"

enum { FORMAT_ENDS = 4, FORMAT_BESIDE = 2 };

struct reading {
    struct cursor at;
    struct cursor beside[FORMAT_BESIDE]; /* of the files beside; name NULL: it is not there */
    struct forest *forest;
    int64_t steps;        /* LINES */
    struct piece carried; /* LINES with steps: the word before; length 0: none */
};

struct tree_format {
    const char *name; /* as messages say it */
    graphi_trees_format format;
    const char *ends[FORMAT_ENDS]; /* of names of files */
    struct {
        const char *ends[2]; /* in place of the file's own */
        bool needed;
    } beside[FORMAT_BESIDE];
    bool tree; /* one root, one parent a vertex */
    /* Goes to the next sample; false: there is none. */
    bool (*more)(struct reading *);
    /* Adds the sample's vertices and edges, between forest_begin and forest_end, and goes past it; where it fails, by a
     * byte at least. */
    graphi_status (*sample)(struct reading *);
    /* To the next sample, or the end, after a failure. */
    void (*recover)(struct reading *);
};

extern const struct tree_format tree_format_sexpr, tree_format_parents, tree_format_conllu, tree_format_edges,
    tree_format_lines;

/* The i-th; NULL: there are no more. */
const struct tree_format *tree_format_at(int i);
const struct tree_format *tree_format_of(graphi_trees_format format);

/* Reads all samples of reading->at. Those that are INVALID are dropped where `skip`, else the first ends it. Errors:
 * INVALID, MEMORY. */
graphi_status tree_format_read(const struct tree_format *format, struct reading *reading, bool skip);

#endif
