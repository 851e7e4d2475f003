/* SPDX-License-Identifier: Apache-2.0 */
/* What operations on ids share: the family of embedding.c and the lists of rows of sparse.c. */
#ifndef OPS_EMBEDDING_H
#define OPS_EMBEDDING_H

#include "graph/op.h"
#include "kernels/embedding.h"

/* The type of ids, input `ids`, with one more dimension of n, float32, into call->out[0]; INVALID for other types. */
graphi_status append_dimension(const struct shape_call *call, int ids, int64_t n);

/* INVALID unless input 0 is a table, float32[rows,columns]. */
graphi_status expect_table(const struct shape_call *call);

/* Fills in how ids lie, how many there are, and the stride of `rows`, the array with one row an id. UNSUPPORTED for
 * layouts that kernels do not take. */
graphi_status ids_of(const struct bind_call *call, const struct array_desc *ids, const struct array_desc *rows,
                     struct embedding_spec *spec);

#endif
