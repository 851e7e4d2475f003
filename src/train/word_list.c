/* SPDX-License-Identifier: Apache-2.0 */
/* Words may hold any byte: those that are no UTF-8, which JSON cannot say, become lists of bytes. Longer lists than 1
 * MiB stay with the training files: a file's header holds 16 MiB. */
#include "train/word_list.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/utf8.h"

static const size_t bytes_most = 1 << 20;

static bool is_utf8(const char *word, size_t length)
{
    for (size_t i = 0, bytes; i < length; i += bytes)
        if (!(bytes = utf8_bytes(word + i)))
            return false;
    return true;
}

static void add_string(struct text *text, const char *word, size_t length)
{
    text_add(text, "\"");
    for (size_t i = 0, bytes; i < length; i += bytes) {
        const char *c = word + i;
        bytes = utf8_bytes(c);
        if (*c == '"' || *c == '\\')
            text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            text_add(text, "\\u%04x", (unsigned char)*c);
        else
            text_add(text, "%.*s", (int)bytes, c);
    }
    text_add(text, "\"");
}

static void add_bytes(struct text *text, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        text_add(text, "%s%d", i ? "," : "[", (unsigned char)word[i]);
    text_add(text, "]");
}

void word_list_make(const graphi_data *data, int64_t count, struct word_list *list)
{
    *list = (struct word_list){.first = -1};
    text_add(&list->text, "[");
    for (int64_t i = 0; i < count && !list->text.broken && list->text.count <= bytes_most; i++) {
        size_t length;
        const char *word = graphi_data_word(data, i, &length);
        const bool readable = is_utf8(word, length);
        text_add(&list->text, "%s", i ? "," : "");
        (readable ? add_string : add_bytes)(&list->text, word, length);
        if (!readable && list->bare++ == 0)
            list->first = i;
    }
    text_add(&list->text, "]");
    list->long_one = list->text.count > bytes_most;
}

/* --- reading --- */

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
