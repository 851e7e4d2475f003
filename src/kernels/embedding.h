/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by index, and the gradient: a scatter-add in the order of the indices. */
#ifndef KERNELS_EMBEDDING_H
#define KERNELS_EMBEDDING_H

#include "kernels/kernel.h"

struct embedding_spec {
    int64_t count;         /* ids, at the bound */
    int64_t rows, columns; /* of the table */
    int64_t ld_table;      /* row strides: of the table, of y or dy */
    int64_t ld_y;
    int64_t ids_columns; /* ids as a matrix: position i is at ids[i / ids_columns * ld_ids + i % ids_columns] */
    int64_t ld_ids;      /* 0: dense */
    int64_t per_row;     /* ids one row of dimension 0 has where they are bounded, otherwise 0 */
};

/* table float32[rows,columns], ids int32[count] -> y[count,columns]. INVALID, naming position and id, when one is out
 * of range. */
graphi_status embedding_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel);

/* ids, dy[count,columns] -> dtable[rows,columns] (dense): the sum of the rows of dy with that id, in the order of the
 * ids. Shares own blocks of columns and rows of dtable and read all ids. Same failure. */
graphi_status embedding_gradient_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel);

/* ids int32[count] -> y[count,depth], 1 where the column is the id, 0 elsewhere. Same failure. */
graphi_status one_hot_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel);

#endif
