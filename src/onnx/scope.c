/* SPDX-License-Identifier: Apache-2.0 */
/* Names while a model is built (scope.h). One thread builds a model. */
#include "onnx/scope.h"

#include "base/hash.h"

#include <string.h>

int scope_own(const struct scope *scope, const char *name)
{
    const uint64_t hash = hash_string(HASH_START, name);
    size_t seen = 0;
    for (int32_t place; (place = index_next(&scope->index, hash, &seen)) >= 0;)
        if (strcmp(scope->names.data[place].name, name) == 0)
            return scope->names.data[place].value;
    return SCOPE_NOT;
}

int scope_find(const struct scope *scope, const char *name)
{
    for (; scope; scope = scope->parent) {
        const int value = scope_own(scope, name);
        if (value != SCOPE_NOT)
            return value;
    }
    return SCOPE_NOT;
}

bool scope_add(struct scope *scope, const char *name, int value)
{
    const struct scope_name entry = {name, value};
    return array_push(&scope->names, entry) &&
           index_add(&scope->index, hash_string(HASH_START, name), (int32_t)scope->names.count - 1);
}

void scope_free(struct scope *scope)
{
    index_free(&scope->index);
    array_free(&scope->names);
}
