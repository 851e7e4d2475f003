/* SPDX-License-Identifier: Apache-2.0 */
/* The message of the last failure, one buffer a thread. */
#include "base/status.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifndef GRAPHI_VERSION
#define GRAPHI_VERSION "0.0.0"
#endif

static _Thread_local char message[1024];

const char *graphi_message(void) { return message; }

const char *graphi_version(void) { return GRAPHI_VERSION; }

graphi_status fail(graphi_status code, const char *where, const char *format, ...)
{
    char text[sizeof message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char whole[sizeof message];
    int n = snprintf(whole, sizeof whole, "%s: %s: ", graphi_status_name(code), where);
    if (n >= 0 && (size_t)n < sizeof whole)
        snprintf(whole + n, sizeof whole - (size_t)n, "%s", text);
    utf8_tame(whole, false); /* one line, whatever bytes a file or a name brought in */
    memcpy(message, whole, sizeof whole);
    return code;
}

graphi_status fail_memory(const char *what, size_t bytes)
{
    return fail(GRAPHI_MEMORY, what, "found no memory for %zu bytes, expected an allocation", bytes);
}

void expect_name(struct expected_names *names, const char *name)
{
    enum { REST = 32 }; /* ", N more" */
    const size_t used = strlen(names->text), room = sizeof names->text - REST - used;
    if (names->left_out || strlen(name) + strlen("one of ") >= room)
        names->left_out++;
    else
        snprintf(names->text + used, room, "%s%s", names->count ? ", " : "one of ", name);
    names->count++;
}

const char *expected_text(struct expected_names *names)
{
    const size_t used = strlen(names->text), room = sizeof names->text - used;
    if (!names->count)
        return "none";
    if (names->left_out)
        snprintf(names->text + used, room, used ? ", %zu more" : "one of %zu", names->left_out);
    names->left_out = 0;
    return names->text;
}

void message_get(char *text, size_t size) { snprintf(text, size, "%s", message); }

void message_set(const char *text) { snprintf(message, sizeof message, "%s", text); }
