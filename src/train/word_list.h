/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of a text as a JSON list, for checkpoints. */
#ifndef TRAIN_WORD_LIST_H
#define TRAIN_WORD_LIST_H

#include "base/text.h"
#include "graphi/data.h"

struct word_list {
    struct text text;    /* the caller's (text_free); may be broken */
    bool long_one;       /* beyond 1 MiB: the text is cut off */
    int64_t bare, first; /* words that are no UTF-8, and are lists of bytes; which is the first of them */
};

/* The i-th word is token i. */
void word_list_make(const graphi_data *data, int64_t count, struct word_list *list);

#endif
