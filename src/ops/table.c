/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of all operations, family by family. */
#include "graph/op.h"

#include <string.h>

/* Weak references do not pull a family out of the static library: only those whose file is not there yet are weak. */
#define THERE(X) X(elementwise) X(pool) X(norm) X(shape) X(embedding) X(assign) X(delay) X(call)
#define COMING(X) X(reduce) X(softmax) X(dropout) X(matmul) X(conv)

#define X(family) extern const struct op_kind ops_##family[];
THERE(X)
#undef X
#define X(family) extern const struct op_kind ops_##family[] __attribute__((weak));
COMING(X)
#undef X

static const struct op_kind *const families[] = {
#define X(family) ops_##family,
    THERE(X) COMING(X)
#undef X
};

const struct op_kind *op_at(int index)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct op_kind *kind = families[f]; kind && kind->name; kind++)
            if (index-- == 0)
                return kind;
    return NULL;
}

const struct op_kind *op_find(const char *name)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct op_kind *kind = families[f]; kind && kind->name; kind++)
            if (strcmp(kind->name, name) == 0)
                return kind;
    return NULL;
}
