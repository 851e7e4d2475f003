/* SPDX-License-Identifier: Apache-2.0 */
/* A square of 4 x 4 elements of 32 bits transposed in registers: to[i * stride + j] = line[j][i]. Any alignment. */
#ifndef KERNELS_SQUARE_H
#define KERNELS_SQUARE_H

#include <stdint.h>
#include <string.h>

typedef uint32_t square_row __attribute__((vector_size(16)));

static inline square_row square_load(const void *from)
{
    square_row row;
    memcpy(&row, from, sizeof row);
    return row;
}

static inline void square_transpose(const void *const line[4], void *to, int64_t stride)
{
    const square_row a = square_load(line[0]), b = square_load(line[1]), c = square_load(line[2]),
                     d = square_load(line[3]);
    const square_row ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const square_row cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const square_row row[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                               __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5),
                               __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
#pragma GCC unroll 4 /* rows stay in registers */
    for (int i = 0; i < 4; i++)
        memcpy((uint32_t *)to + i * stride, &row[i], sizeof row[i]);
}

#endif
