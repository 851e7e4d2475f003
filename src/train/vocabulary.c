/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint's vocabulary for who has no data set at hand. */
#include "graphi/generate.h"

#include "base/memory.h"
#include "base/status.h"
#include "train/word_list_reader.h"

#include <string.h>

struct graphi_vocabulary {
    struct vocabulary words;
};

graphi_status graphi_vocabulary_open(const char *words, bool characters, graphi_vocabulary **out)
{
    if (!words || !out)
        return fail(GRAPHI_INVALID, "vocabulary", "found NULL, expected a JSON list of words and room for the result");
    graphi_vocabulary *v = mem_zalloc(sizeof *v);
    if (!v)
        return fail_memory("vocabulary", sizeof *v);
    graphi_status status = word_list_read(words, characters, &v->words);
    if (status)
        graphi_vocabulary_close(v);
    else
        *out = v;
    return status;
}

void graphi_vocabulary_close(graphi_vocabulary *vocabulary)
{
    if (vocabulary)
        vocabulary_free(&vocabulary->words);
    mem_free(vocabulary);
}

int64_t graphi_vocabulary_count(const graphi_vocabulary *vocabulary)
{
    return vocabulary ? (int64_t)vocabulary->words.count : 0;
}

const char *graphi_vocabulary_text(const graphi_vocabulary *vocabulary, int64_t token, size_t *length)
{
    if (token < 0 || token >= graphi_vocabulary_count(vocabulary))
        return NULL;
    const struct word *word = &vocabulary->words.words[token];
    if (length)
        *length = word->length;
    return word->text;
}

graphi_status graphi_vocabulary_encode(const graphi_vocabulary *vocabulary, const char *text, size_t bytes,
                                       int32_t **tokens, int64_t *count)
{
    if (!vocabulary || !text || !tokens || !count)
        return fail(GRAPHI_INVALID, "vocabulary", "found NULL, expected a vocabulary, a text and room for its tokens");
    return vocabulary_encode(&vocabulary->words, "text", text, bytes, tokens, count);
}
