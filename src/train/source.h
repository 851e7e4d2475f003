/* SPDX-License-Identifier: Apache-2.0 */
/* Which files make a data set, by the names found at a path, and loading the images or the text of one split. */
#ifndef TRAIN_SOURCE_H
#define TRAIN_SOURCE_H

#include "graphi/data.h"
#include "train/images.h"
#include "train/names.h"

/* Finds the format. IO: nothing there; INVALID: a folder without any file that is known. */
graphi_status source_find(const char *path, graphi_data_format format, struct source *out);

/* Whether there are validation files of its own. */
bool source_has_validation(const struct source *source);

/* Loads the images of one split. *found false, and GRAPHI_OK: the data set has no files for it. `classes` > 0: labels
 * must be below. Leaves *set for images_free whether it fails or not. */
graphi_status source_images(const struct source *source, graphi_data_split split, int64_t classes,
                            struct image_set *set, bool *found);

/* Loads the text of one split; *bytes is the caller's (mem_free), name[PATH_BYTES] the file's. */
graphi_status source_text(const struct source *source, graphi_data_split split, char *name, void **bytes, size_t *size,
                          bool *found);

#endif
