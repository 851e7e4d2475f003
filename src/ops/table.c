/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of all operations, family by family. */
#include "graph/op.h"

#include <string.h>

#define FAMILIES(X)                                                                                                    \
    X(elementwise) X(reduce) X(softmax) X(dropout) X(matmul) X(conv) X(pool) X(norm) X(reshape) X(concat) X(slice)     \
    X(cast) X(embedding) X(sparse) X(recurrence) X(recurrence_gradient) X(vertex) X(vertices) X(assign) X(delay)       \
    X(event) X(call)

#define X(family) extern const struct op_kind ops_##family[];
FAMILIES(X)
#undef X

static const struct op_kind *const families[] = {
#define X(family) ops_##family,
    FAMILIES(X)
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
