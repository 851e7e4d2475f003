/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary from a JSON list of its words. */
#ifndef TRAIN_WORD_LIST_READER_H
#define TRAIN_WORD_LIST_READER_H

#include "train/tokens.h"

/* The i-th word, a text or a list of bytes, is token i. Leaves *out for vocabulary_free whether it fails or not.
 * Errors: INVALID, MEMORY. */
graphi_status word_list_read(const char *list, bool characters, struct vocabulary *out);

#endif
