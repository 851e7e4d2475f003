/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of rows of a table: ids that ascend, each once, then -1 to the end of the list, and beside each its row. Sums
 * of rows by id, rows read and written by such lists, and the sum of squares of the table that a list stands for. */
#ifndef KERNELS_SPARSE_H
#define KERNELS_SPARSE_H

#include "kernels/embedding.h"

struct sparse_spec {
    struct embedding_spec ids; /* of what is looked up: as for embedding_gradient_bind, or a dense list */
    int64_t list;              /* rows of the list, at the bound */
};

/* ids, dy[count,columns] -> rows int32[list], sums[list,columns] (dense): the sum of the rows of dy of each id, in the
 * order of the ids, from 0 on; rows behind the last id are 0. `list` is at least the number of different ids. INVALID,
 * naming position and id, when one is out of range. */
graphi_status sparse_sum_bind(const struct sparse_spec *spec, enum isa isa, struct kernel *kernel);

/* table[rows,columns], rows int32[list] -> y[list,columns], 0 where a row is -1. INVALID for one out of range. */
graphi_status sparse_get_bind(const struct sparse_spec *spec, struct kernel *kernel);

/* table, rows int32[list], y[list,columns] -> the table with these rows (dense); it may lie in the bytes of the first.
 * INVALID for rows that do not ascend, or are out of range. */
graphi_status sparse_set_bind(const struct sparse_spec *spec, struct kernel *kernel);

/* rows int32[list], y[list,columns] -> one number: the bits that reduce_bind's sum of squares of the dense table has,
 * with 0 in all other rows. INVALID as above. */
graphi_status sparse_squares_bind(const struct sparse_spec *spec, enum isa isa, struct kernel *kernel);

#endif
