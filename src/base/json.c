/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values in messages. Pure; on paths that fail only. */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

static void describe_number(const json_t *value, char *text, size_t size)
{
    if (json_is_integer(value)) {
        snprintf(text, size, "%lld", (long long)json_integer_value(value));
        return;
    }
    snprintf(text, size, "%.15g", json_real_value(value));
    size_t used = strlen(text);
    if (strspn(text, "-0123456789") == used)
        snprintf(text + used, size - used, ".0");
}

const char *json_found(const json_t *value, char *text, size_t size)
{
    if (!value)
        snprintf(text, size, "no such key");
    else if (json_is_string(value))
        snprintf(text, size, "\"%.60s\"", json_string_value(value));
    else if (json_is_number(value))
        describe_number(value, text, size);
    else if (json_is_array(value))
        snprintf(text, size, "a list of %zu", json_array_size(value));
    else
        snprintf(text, size, "%s",
                 json_is_object(value) ? "an object"
                 : json_is_null(value) ? "null"
                                       : "true or false");
    return text;
}
