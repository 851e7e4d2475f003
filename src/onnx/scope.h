/* SPDX-License-Identifier: Apache-2.0 */
/* Names of one graph while a model is built, and through its parent those of the graphs that it is in. */
#ifndef ONNX_SCOPE_H
#define ONNX_SCOPE_H

#include "base/array.h"
#include "base/index.h"

struct scope {
    const struct scope *parent; /* NULL: none, as in a function */
    struct index index;
    ARRAY(struct scope_name {
        const char *name; /* lives as long as the model or its message */
        int value;        /* -1: left out */
    })
    names;
};

enum { SCOPE_NOT = -2 };

int scope_own(const struct scope *scope, const char *name);       /* SCOPE_NOT: not in this one */
int scope_find(const struct scope *scope, const char *name);      /* in this one or in one around it */
bool scope_add(struct scope *scope, const char *name, int value); /* false: out of memory */
void scope_free(struct scope *scope);

#endif
