/* SPDX-License-Identifier: Apache-2.0 */
/* The families of host operators: a file and a table each, which ends in a row without a name. */
#ifndef VALUE_FAMILIES_H
#define VALUE_FAMILIES_H

#include "value/op.h"

#define FAMILIES(X)                                                                                                    \
    X(unary)                                                                                                           \
    X(binary)                                                                                                          \
    X(cast)                                                                                                            \
    X(reduce)                                                                                                          \
    X(scan_along)                                                                                                      \
    X(shape)                                                                                                           \
    X(create)                                                                                                          \
    X(move)                                                                                                            \
    X(gather)                                                                                                          \
    X(search)                                                                                                          \
    X(product)                                                                                                         \
    X(conv)                                                                                                            \
    X(pool)                                                                                                            \
    X(normalize)                                                                                                       \
    X(softmax)                                                                                                         \
    X(quantize)                                                                                                        \
    X(recurrent)                                                                                                       \
    X(loss)                                                                                                            \
    X(resize)                                                                                                          \
    X(sequence)                                                                                                        \
    X(einsum)                                                                                                          \
    X(grid)                                                                                                            \
    X(signal)                                                                                                          \
    X(region)                                                                                                          \
    X(attention)                                                                                                       \
    X(update)                                                                                                          \
    X(ml)

#define X(family) extern const struct host_op host_ops_##family[];
FAMILIES(X)
#undef X

#endif
