/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps: loops over up to eight dimensions, in which each operand has a stride for every dimension. Copies by them
 * are slices, transposes, concatenations, expansions and the like. Pure functions. */
#ifndef VALUE_MAP_H
#define VALUE_MAP_H

#include "value/value.h"

enum { MAP_OPERANDS = 4 };

struct map {
    int rank, operands;
    int64_t dims[VALUE_RANK];
    int64_t strides[MAP_OPERANDS][VALUE_RANK]; /* in elements */
};

/* A loop over `dims`; operands are added one after the other. */
struct map map_over(int rank, const int64_t *dims);
/* An operand in C order that is broadcast to the loop's dimensions. */
void map_broadcast(struct map *map, int rank, const int64_t *dims);
void map_strided(struct map *map, const int64_t *strides);
/* Joins dimensions that lie beside each other for every operand, and drops those of size 1. Rank 1 is the least. */
void map_join(struct map *map);

/* The outer dimensions, one row (of the last dimension) after the other: offsets of the operands. Start zeroed. */
struct map_row {
    int64_t index[VALUE_RANK];
    int64_t at[MAP_OPERANDS];
    int64_t left; /* rows, set by map_first */
};
/* False: there are no elements. */
bool map_first(const struct map *map, struct map_row *row);
bool map_next(const struct map *map, struct map_row *row);

/* Copies elements of `size` bytes: operand 0 is written, operand 1 read; offsets are the pointers'. */
void map_copy(struct map map, size_t size, void *to, const void *from);

#endif
