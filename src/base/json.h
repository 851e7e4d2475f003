/* SPDX-License-Identifier: Apache-2.0 */
/* What a JSON value is, for messages of whoever reads a file and expected something else. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Fills and returns `text`: a word, a number (a real one with its point), "a list of 3", "no such key" for NULL. */
const char *json_found(const json_t *value, char *text, size_t size);

#endif
