/* SPDX-License-Identifier: Apache-2.0 */
/* Which files hold input graphs, by names and first bytes, and reading one. Any thread. */
#ifndef DYNAMIC_FILES_H
#define DYNAMIC_FILES_H

#include "dynamic/format.h"
#include "train/names.h"

enum { FILES_SPLITS = GRAPHI_TEST + 1 };

struct tree_files {
    const struct tree_format *format;
    char path[FILES_SPLITS][PATH_BYTES]; /* empty: no file of that split */
};

/* Errors: IO (nothing there, no file of the format), INVALID. */
graphi_status tree_files_find(const char *path, graphi_trees_format format, struct tree_files *out);

/* The samples of one split, which has a file, into *forest; forest_free in any case. Errors: IO, INVALID, MEMORY. */
graphi_status tree_files_read(const struct tree_files *files, graphi_data_split split,
                              const graphi_trees_options *options, struct forest *forest);

#endif
