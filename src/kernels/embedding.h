/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by index, and the gradient: a scatter-add in the order of the indices. */
#ifndef KERNELS_EMBEDDING_H
#define KERNELS_EMBEDDING_H

#include "kernels/kernel.h"

#include "base/status.h"

struct embedding_spec {
    int64_t count;         /* ids, at the bound */
    int64_t rows, columns; /* of the table */
    int64_t ld_table;      /* row strides: of the table, of y or dy */
    int64_t ld_y;
    int64_t ids_columns; /* ids as a matrix: position i is at ids[i / ids_columns * ld_ids + i % ids_columns] */
    int64_t ld_ids;      /* 0: dense */
    int64_t per_row;     /* ids one row of dimension 0 has where they are bounded, otherwise 0 */
};

/* Ids that a call has. */
static inline int64_t embedding_count(const struct embedding_spec *spec, const struct kernel_array *ids)
{
    return spec->per_row ? ids->rows * spec->per_row : spec->count;
}

/* The id at `position`; INVALID, naming both, when it is out of range. */
static inline graphi_status embedding_id(const struct embedding_spec *spec, const char *where, const int32_t *ids,
                                         int64_t position, int32_t *out)
{
    const int32_t id =
        ids[spec->ld_ids ? position / spec->ids_columns * spec->ld_ids + position % spec->ids_columns : position];
    *out = id;
    if (id >= 0 && id < spec->rows)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found id %d at position %lld, expected 0 to %lld", id, (long long)position,
                (long long)(spec->rows - 1));
}

/* to[i] += from[i] for n elements. */
typedef void (*row_add)(float *to, const float *from, int64_t n);
row_add row_add_of(enum isa isa);

/* table float32[rows,columns], ids int32[count] -> y[count,columns]. INVALID, naming position and id, when one is out
 * of range. */
graphi_status embedding_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel);

/* ids, dy[count,columns] -> dtable[rows,columns] (dense): the sum of the rows of dy with that id, in the order of the
 * ids. Shares own blocks of columns and rows of dtable and read all ids. Same failure. */
graphi_status embedding_gradient_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel);

/* ids int32[count] -> y[count,depth], 1 where the column is the id, 0 elsewhere. Same failure. */
graphi_status one_hot_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel);

#endif
