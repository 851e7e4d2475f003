/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string, and numbers in text. */
#include "base/text.h"

#include "base/array.h"
#include "base/utf8.h"

#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Numbers have a point whatever the application's locale: much of what is written here is JSON. */
static locale_t plain;
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;

static void plain_create(void) { plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0); }

static locale_t enter_plain(void)
{
    pthread_once(&plain_once, plain_create);
    return plain ? uselocale(plain) : (locale_t)0;
}

static void leave_plain(locale_t before)
{
    if (before)
        uselocale(before);
}

void text_add(struct text *text, const char *format, ...)
{
    locale_t before = enter_plain();
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
    leave_plain(before);
}

void text_add_json_string(struct text *text, const char *string)
{
    text_add(text, "\"");
    for (const char *c = string; *c;) {
        size_t bytes = utf8_bytes(c);
        if (!bytes)
            text_add(text, "\\ufffd"); /* names are any bytes, JSON is not */
        else if (*c == '"' || *c == '\\')
            text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            text_add(text, "\\u%04x", (unsigned char)*c);
        else
            text_add(text, "%.*s", (int)bytes, c);
        c += bytes ? bytes : 1;
    }
    text_add(text, "\"");
}

double text_number(const char *text, char **end)
{
    locale_t before = enter_plain();
    double value = strtod(text, end);
    leave_plain(before);
    return value;
}

void text_free(struct text *text) { array_free(text); }
