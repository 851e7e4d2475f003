/* SPDX-License-Identifier: Apache-2.0 */
/* The names under which people keep data sets, by format and split. A folder's files are found by them; of a single
 * file its neighbours. Each name may end in .gz. */
#ifndef TRAIN_NAMES_H
#define TRAIN_NAMES_H

#include "graphi/data.h"

enum { PATH_BYTES = 4096 };

struct source {
    graphi_data_format format; /* never AUTO */
    bool folder;
    char path[PATH_BYTES];
};

enum { NAME_BYTES = 256 }; /* of a file in a folder, with its zero */

const char *names_base(const char *path);          /* behind the last slash */
bool names_end(const char *name, const char *end); /* with .gz behind it or without */

/* The files of a split, images[PATH_BYTES] and labels[PATH_BYTES]; false: there are no images of such a name. Labels
 * that are missing have the name that was looked for, so that opening them says which. */
bool names_of_idx(const struct source *source, graphi_data_split split, char *images, char *labels);
bool names_of_npy(const struct source *source, graphi_data_split split, char *images, char *labels);

bool names_of_text(const struct source *source, graphi_data_split split, char *name);

/* The next of CIFAR-10's files of a folder by name, after `last`, which begins as ""; false: there is none, and it
 * begins anew. */
bool names_next_bin(const struct source *source, graphi_data_split split, char last[NAME_BYTES]);
bool names_has_bins(const struct source *source, graphi_data_split split);

/* The split that a word of the name says; false: none does. */
bool names_say(const char *name, graphi_data_split *split);

/* What of a folder was joined, and which of its files that look like data are part of no split, as words for a note;
 * empty if there is nothing to tell. */
void names_note(const struct source *source, char *text, size_t size);

#endif
