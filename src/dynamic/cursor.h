/* SPDX-License-Identifier: Apache-2.0 */
/* A place in a text that is read from front to end, known by line and column. Columns are bytes, both count from 1.
 * Lines end in LF alone (train/encoding.h has made them so). Used by one thread. */
#ifndef DYNAMIC_CURSOR_H
#define DYNAMIC_CURSOR_H

#include "graphi/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
    const char *name; /* of the file */
    const char *next, *end, *line_begin;
    int64_t line;
};

struct place {
    int64_t line, column;
};

/* A piece of the text. */
struct piece {
    const char *text;
    size_t length;
    struct place place;
};

struct cursor cursor_begin(const char *name, const void *bytes, size_t size);

struct place cursor_place(const struct cursor *cursor);

void cursor_step(struct cursor *cursor); /* over one byte, which is there */

/* The rest of the line, and the cursor onto the next one. */
struct piece cursor_line(struct cursor *cursor);

bool cursor_is_blank(char c); /* an ASCII one; also the end of a line */

/* Whether all of the piece is blank. */
bool piece_is_blank(struct piece piece);

/* Takes the next part off a line, up to `separator`; 0: between blanks, never empty. False: there is none. */
bool piece_next(struct piece *line, char separator, struct piece *part);

bool piece_is(struct piece piece, const char *text);

/* A number of digits alone, at most 999,999,999; -1: it is none. */
int64_t piece_number(struct piece piece);

/* INVALID: "FILE:LINE:COLUMN: found FORMAT, expected EXPECTED". */
graphi_status fail_at(const struct cursor *cursor, struct place place, const char *expected, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* For %.*s in a message: what is longer is cut off. */
#define SHOWN(piece) ((piece).length < 40 ? (int)(piece).length : 40), (piece).text

#endif
