/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of a training: the library prints nothing. */
#include "train/trainer_note.h"

#include <stdarg.h>
#include <stdio.h>

void trainer_note(const struct graphi_trainer *t, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (!t->how.note)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    t->how.note(t->how.context, text);
}
