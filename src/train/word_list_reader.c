/* SPDX-License-Identifier: Apache-2.0 */
/* The list that word_list.c writes, or any program, made a vocabulary. Files may come from anywhere. */
#include "train/word_list_reader.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/status.h"

static const char where[] = "data.vocabulary";

/* The bytes of a word that is a list of them: 0 to 255 each. */
static graphi_status add_listed(const json_t *list, struct vocabulary *out)
{
    const size_t length = json_array_size(list);
    char *bytes = mem_alloc(length + 1);
    graphi_status status = bytes ? GRAPHI_OK : fail_memory(where, length);
    for (size_t i = 0; i < length && status == GRAPHI_OK; i++) {
        const json_t *byte = json_array_get(list, i);
        if (!json_is_integer(byte) || json_integer_value(byte) < 0 || json_integer_value(byte) > 255)
            status = fail(GRAPHI_INVALID, where, "found a word with something else than bytes, expected 0 to 255");
        else
            bytes[i] = (char)json_integer_value(byte);
    }
    if (status == GRAPHI_OK && !vocabulary_word(out, bytes, length))
        status = fail_memory(where, length);
    mem_free(bytes);
    return status;
}

static graphi_status add_word(const json_t *word, struct vocabulary *out)
{
    if (json_is_array(word))
        return add_listed(word, out);
    if (!json_is_string(word))
        return fail(GRAPHI_INVALID, where, "found a word that is neither text nor bytes, expected one");
    return vocabulary_word(out, json_string_value(word), json_string_length(word))
               ? GRAPHI_OK
               : fail_memory(where, json_string_length(word));
}

graphi_status word_list_read(const char *list, bool characters, struct vocabulary *out)
{
    const size_t size = strlen(list);
    json_error_t error;
    json_t *root = json_loads(list, JSON_ALLOW_NUL, &error);
    graphi_status status = GRAPHI_OK;
    vocabulary_begin(characters, out);
    if (!root && json_lacks_memory(size))
        return fail_memory(where, size);
    if (!json_is_array(root))
        status = fail(GRAPHI_INVALID, where, "found no list of words, expected a JSON list");
    for (size_t i = 0; status == GRAPHI_OK && i < json_array_size(root); i++)
        status = add_word(json_array_get(root, i), out);
    if (status == GRAPHI_OK)
        status = vocabulary_end(where, (int64_t)json_array_size(root), out);
    json_decref(root);
    return status;
}
