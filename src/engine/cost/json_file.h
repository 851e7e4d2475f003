/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what the engine stored as JSON: stored plans and stored curves. Every field is checked, since a file may come
 * from anywhere; a message names the file, the key, and what was expected. One thread; nothing is kept after
 * json_file_close. */
#ifndef ENGINE_JSON_FILE_H
#define ENGINE_JSON_FILE_H

#include "graphi/types.h"

#include <jansson.h>

struct json_file {
    const char *path;
    json_t *root;     /* an object */
    const char *list; /* messages are about one element of this list of the root; NULL: about the root */
    size_t index;     /* from 0 */
};

/* INVALID: no JSON, no object, too long; IO: not there. Close after success. */
graphi_status json_file_open(const char *path, struct json_file *file);
void json_file_close(struct json_file *file);

/* INVALID, naming the element, the key and what `value` is (NULL: that there is none). */
graphi_status json_file_wrong(const struct json_file *file, const char *key, const json_t *value,
                              const char *expected);

graphi_status json_file_text(const struct json_file *file, json_t *object, const char *key, const char **out);
graphi_status json_file_integer(const struct json_file *file, json_t *object, const char *key, int64_t low,
                                int64_t high, int64_t *out);
graphi_status json_file_hash(const struct json_file *file, json_t *object, const char *key,
                             uint64_t *out); /* 16 digits */

/* A duration: finite, from `low` to MOST_NS. */
bool json_file_number(const json_t *value, double low, double *out);

/* REFUSED unless the root's `key` is this text, this hash. */
graphi_status json_file_expect(const struct json_file *file, const char *key, const char *expected);
graphi_status json_file_expect_hash(const struct json_file *file, const char *key, uint64_t expected);

#endif
