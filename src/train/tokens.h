/* SPDX-License-Identifier: Apache-2.0 */
/* Text to numbers. Words are what stands between white space, a newline is the word <eos>; characters are UTF-8
 * sequences, and any byte that is part of none (text need not be UTF-8). Ids go by descending frequency, then by bytes.
 * <unk> is always in the vocabulary: where the text has it, else as the last one. */
#ifndef TRAIN_TOKENS_H
#define TRAIN_TOKENS_H

#include "base/arena.h"
#include "base/index.h"
#include "graphi/types.h"

struct word {
    const char *text; /* in the vocabulary's arena, a zero byte follows */
    uint32_t length;
    uint32_t count; /* in the text counted */
};

struct vocabulary {
    struct word *words;
    size_t count, capacity;
    struct index index; /* of words */
    int32_t unknown; /* the id of <unk> */
    bool characters;
    struct arena arena;
};

int64_t tokens_count(const void *bytes, size_t size, bool characters); /* of a text */

/* Counts the first `tokens` tokens of a text and orders them. `limit` > 0 keeps so many, <unk> among them. Leaves *out
 * for vocabulary_free whether it fails or not. Errors: INVALID (no token at all, more than 2^30 bytes, limit below 2),
 * MEMORY. */
graphi_status vocabulary_build(const char *where, const void *bytes, size_t size, bool characters, int64_t tokens,
                               int64_t limit, struct vocabulary *out);

/* A vocabulary by its words, in their order: begin, any number of words, end. Leaves *out for vocabulary_free whether
 * it fails or not. Errors of the end: INVALID where a word came twice, or <unk> did not; MEMORY. */
void vocabulary_begin(bool characters, struct vocabulary *out);
bool vocabulary_word(struct vocabulary *vocabulary, const char *word, size_t length); /* false: no memory */
graphi_status vocabulary_end(const char *where, int64_t words, struct vocabulary *vocabulary);

/* For who finds words by himself, after vocabulary_begin: adds `times` to a word's count (a new one is the last), finds
 * a word (-1: it is none of them), and at the end orders as vocabulary_build does, <unk> included where `unknown`. */
bool vocabulary_add(struct vocabulary *vocabulary, const char *word, size_t length, uint32_t times);
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *word, size_t length);
graphi_status vocabulary_order(struct vocabulary *vocabulary, int64_t limit, bool unknown);

/* The ids of a text of at most 2^30 bytes; *ids is the caller's (mem_free). */
graphi_status vocabulary_encode(const struct vocabulary *vocabulary, const char *where, const void *bytes, size_t size,
                                int32_t **ids, int64_t *count);

void vocabulary_free(struct vocabulary *vocabulary);

#endif
