/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string for printers. A failed allocation is remembered (`broken`) and later appends do nothing, so a
 * printer checks once at its end. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data; /* zero-terminated once anything was appended */
    size_t count, capacity;
    bool broken;
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_json_string(struct text *text, const char *string); /* quoted, escaped, in UTF-8 */
void text_free(struct text *text);

/* As strtod, but a number has a point in every locale. */
double text_number(const char *text, char **end);

#endif
