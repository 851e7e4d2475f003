/* SPDX-License-Identifier: Apache-2.0 */
/* What the splits of a data set of input graphs share: the training samples, which of them are held out, words and
 * labels. Immutable once open, counted, so that splits of one may be used by several threads. */
#ifndef DYNAMIC_TREEBANK_H
#define DYNAMIC_TREEBANK_H

#include "dynamic/files.h"

#include <stdatomic.h>

struct treebank {
    atomic_int users;
    struct tree_files files;
    graphi_trees_options options; /* checked, zeros replaced by the defaults (not classes) */
    struct forest train;
    int64_t held;                    /* of its samples, held out for validation */
    uint32_t *chosen;                /* [samples]: those that are trained on, then the held ones, each part ascending */
    struct vocabulary words, labels; /* labels: of names alone */
    int64_t classes;
    uint64_t encoding;
};

graphi_status treebank_open(const char *path, const graphi_trees_options *options, struct treebank **out);

/* The samples of a split with a file of its own, by the words and labels of the training files; forest_free in any
 * case. */
graphi_status treebank_read(const struct treebank *bank, graphi_data_split split, struct forest *forest);

/* Gives up one user; the last one frees. NULL is accepted. */
void treebank_release(struct treebank *bank);

#endif
