/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of float32 rows along lists, between vertices.c and vertices_move.c. Sums begin with the first row, or zeros
 * without any. */
#ifndef KERNELS_VERTICES_ROWS_H
#define KERNELS_VERTICES_ROWS_H

#include <stdint.h>
#include <string.h>

static inline void row_copy(void *to, const void *from, int64_t columns)
{
    memcpy(to, from, (size_t)columns * sizeof(float));
}

static inline void row_clear(void *to, int64_t columns)
{
    memset(to, 0, (size_t)columns * sizeof(float));
}

static inline void row_add(void *to, const void *from, int64_t columns)
{
    float *restrict sum = to;
    const float *restrict x = from;
    for (int64_t c = 0; c < columns; c++)
        sum[c] += x[c];
}

/* The first row of a sum is copied, the others are added. */
static inline void row_gather(void *to, const void *from, int64_t columns, int64_t before)
{
    if (before)
        row_add(to, from, columns);
    else
        row_copy(to, from, columns);
}

#endif
