/* SPDX-License-Identifier: Apache-2.0 */
/* Words may hold any byte: those that are no UTF-8, which JSON cannot say, become lists of bytes. Longer lists than 1
 * MiB stay with the training files: a file's header holds 16 MiB. */
#include "train/word_list.h"

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
