/* SPDX-License-Identifier: Apache-2.0 */
/* Checked reading of stored files. Usual size: 20 KB. */
#include "engine/cost/json_file.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/status.h"
#include "engine/cost/cost.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20 };

graphi_status json_file_open(const char *path, struct json_file *r)
{
    void *data;
    size_t size;
    json_error_t error;
    TRY(file_read(path, MOST_BYTES, &data, &size));
    *r = (struct json_file){.path = path, .root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error)};
    mem_free(data);
    if (!r->root) {
        char where[512];
        snprintf(where, sizeof where, "%.400s, line %d", path, error.line);
        if (json_lacks_memory(size)) /* who takes it for a broken file would make it anew */
            return fail_memory(path, size);
        return fail(GRAPHI_INVALID, where, "found %s, expected JSON", error.text);
    }
    if (json_is_object(r->root))
        return GRAPHI_OK;
    json_file_close(r);
    return fail(GRAPHI_INVALID, path, "found a list, expected a JSON object");
}

void json_file_close(struct json_file *r)
{
    json_decref(r->root);
    r->root = NULL;
}

graphi_status json_file_wrong(const struct json_file *r, const char *key, const json_t *value, const char *expected)
{
    char where[512], element[64] = "", found[96];
    if (r->list)
        snprintf(element, sizeof element, ": %s[%zu]", r->list, r->index);
    snprintf(where, sizeof where, "%.400s%s: key \"%s\"", r->path, element, key);
    return fail(GRAPHI_INVALID, where, "found %s, expected %s", json_found(value, found, sizeof found), expected);
}

graphi_status json_file_text(const struct json_file *r, json_t *object, const char *key, const char **out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return json_file_wrong(r, key, value, "a text");
    *out = json_string_value(value);
    return GRAPHI_OK;
}

graphi_status json_file_integer(const struct json_file *r, json_t *object, const char *key, int64_t low, int64_t high,
                                int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    char expected[96];
    snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, low, high);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        return json_file_wrong(r, key, value, expected);
    *out = json_integer_value(value);
    return GRAPHI_OK;
}

graphi_status json_file_hash(const struct json_file *r, json_t *object, const char *key, uint64_t *out)
{
    const char *word = NULL;
    TRY(json_file_text(r, object, key, &word));
    if (strlen(word) != 16 || strspn(word, "0123456789abcdef") != 16)
        return json_file_wrong(r, key, json_object_get(object, key), "16 hexadecimal digits");
    *out = strtoull(word, NULL, 16);
    return GRAPHI_OK;
}

bool json_file_number(const json_t *value, double low, double *out)
{
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= low && *out <= MOST_NS;
}

graphi_status json_file_expect(const struct json_file *r, const char *key, const char *expected)
{
    const char *found = NULL;
    char where[512];
    TRY(json_file_text(r, r->root, key, &found));
    if (strcmp(found, expected) == 0)
        return GRAPHI_OK;
    snprintf(where, sizeof where, "%.400s", r->path);
    return fail(GRAPHI_REFUSED, where, "found what was stored for %s %.100s, expected %s", key, found, expected);
}

graphi_status json_file_expect_hash(const struct json_file *r, const char *key, uint64_t expected)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, expected);
    return json_file_expect(r, key, text);
}
