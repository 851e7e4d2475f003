/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, parts and numbers of a text, and messages that say where. Usual size: 2 MB, 480,000 words. */
#include "dynamic/cursor.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MOST = 9 };

struct cursor cursor_begin(const char *name, const void *bytes, size_t size)
{
    return (struct cursor){name, bytes, (const char *)bytes + size, bytes, 1};
}

struct place cursor_place(const struct cursor *c)
{
    return (struct place){c->line, c->next - c->line_begin + 1};
}

void cursor_step(struct cursor *c)
{
    if (*c->next++ != '\n')
        return;
    c->line++;
    c->line_begin = c->next;
}

struct piece cursor_line(struct cursor *c)
{
    const char *end = memchr(c->next, '\n', (size_t)(c->end - c->next));
    const struct piece line = {c->next, (size_t)((end ? end : c->end) - c->next), cursor_place(c)};
    c->next = end ? end + 1 : c->end;
    c->line += end != NULL;
    c->line_begin = end ? c->next : c->line_begin;
    return line;
}

bool cursor_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool piece_is_blank(struct piece piece)
{
    size_t i = 0;
    while (i < piece.length && cursor_is_blank(piece.text[i]))
        i++;
    return i == piece.length;
}

static void skip(struct piece *line, size_t bytes)
{
    line->text += bytes;
    line->length -= bytes;
    line->place.column += (int64_t)bytes;
}

bool piece_next(struct piece *line, char separator, struct piece *part)
{
    while (!separator && line->length && cursor_is_blank(*line->text))
        skip(line, 1);
    if (!line->length)
        return false;
    size_t length = 0;
    while (length < line->length &&
           (separator ? line->text[length] != separator : !cursor_is_blank(line->text[length])))
        length++;
    *part = (struct piece){line->text, length, line->place};
    skip(line, length + (length < line->length));
    return true;
}

bool piece_is(struct piece piece, const char *text)
{
    return piece.length == strlen(text) && !memcmp(piece.text, text, piece.length);
}

int64_t piece_number(struct piece piece)
{
    int64_t number = 0;
    if (!piece.length || piece.length > DIGITS_MOST)
        return -1;
    for (size_t i = 0; i < piece.length; i++) {
        if (piece.text[i] < '0' || piece.text[i] > '9')
            return -1;
        number = 10 * number + (piece.text[i] - '0');
    }
    return number;
}

graphi_status fail_at(const struct cursor *cursor, struct place place, const char *expected, const char *format, ...)
{
    char where[600], found[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(found, sizeof found, format, arguments);
    va_end(arguments);
    const size_t length = strlen(cursor->name), most = sizeof where - 48; /* of a long name, the end */
    snprintf(where, sizeof where, "%s:%lld:%lld", cursor->name + (length > most ? length - most : 0),
             (long long)place.line, (long long)place.column);
    return fail(GRAPHI_INVALID, where, "found %s, expected %s", found, expected);
}
