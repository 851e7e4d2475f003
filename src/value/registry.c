/* SPDX-License-Identifier: Apache-2.0 */
/* The list of families of host operators, and how one is found: about 170 rows are compared, once for each node of a
 * model that is opened. Any thread. */
#include "value/families.h"

#include <string.h>

static const struct host_op *const families[] = {
#define X(family) host_ops_##family,
    FAMILIES(X)
#undef X
};

const struct host_op *host_op_at(size_t i)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct host_op *op = families[f]; op->name; op++)
            if (i-- == 0)
                return op;
    return NULL;
}

const struct host_op *host_op_find(const char *name)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct host_op *op = families[f]; op->name; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    return NULL;
}
