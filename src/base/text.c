/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string. */
#include "base/text.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int need = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (text->broken || need < 0 || !array_reserve(text, text->count + (size_t)need + 1)) {
        text->broken = true;
    } else {
        vsnprintf(text->data + text->count, (size_t)need + 1, format, again);
        text->count += (size_t)need;
    }
    va_end(again);
}

void text_add_json_string(struct text *text, const char *string)
{
    text_add(text, "\"");
    for (const char *c = string; *c; c++) {
        if (*c == '"' || *c == '\\')
            text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            text_add(text, "\\u%04x", (unsigned char)*c);
        else
            text_add(text, "%c", *c);
    }
    text_add(text, "\"");
}

void text_free(struct text *text) { array_free(text); }
