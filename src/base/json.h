/* SPDX-License-Identifier: Apache-2.0 */
/* What a JSON value is, and why there is none, for messages of whoever reads a file and expected something else. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Did parsing a text of so many bytes, which failed, lack memory? The parser tells some of that as errors of the text:
 * there is none where what a text takes at most cannot be had. */
static inline bool json_lacks_memory(size_t size)
{
    enum { BYTES_A_BYTE = 32 };
    json_malloc_t take;
    json_free_t give;
    json_get_alloc_funcs(&take, &give);
    void *room = take(BYTES_A_BYTE * (size + 64));
    give(room);
    return !room;
}

/* Fills and returns `text`: a word, a number (a real one with its point), "a list of 3", "no such key" for NULL. */
const char *json_found(const json_t *value, char *text, size_t size);

#endif
