/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps (map.h). Joining dimensions makes most copies rows that lie beside each other. Any thread. */
#include "value/map.h"

#include <string.h>

struct map map_over(int rank, const int64_t *dims)
{
    struct map map = {.rank = rank};
    if (rank)
        memcpy(map.dims, dims, (size_t)rank * sizeof *dims);
    return map;
}

void map_broadcast(struct map *map, int rank, const int64_t *dims)
{
    int64_t stride = 1, *strides = map->strides[map->operands++];
    for (int i = map->rank - 1, k = rank - 1; i >= 0; i--, k--) {
        strides[i] = k >= 0 && dims[k] != 1 ? stride : 0;
        if (k >= 0)
            stride *= dims[k];
    }
}

void map_strided(struct map *map, const int64_t *strides)
{
    if (map->rank)
        memcpy(map->strides[map->operands], strides, (size_t)map->rank * sizeof *strides);
    map->operands++;
}

static bool joins(const struct map *map, int outer, int inner)
{
    for (int o = 0; o < map->operands; o++)
        if (map->strides[o][outer] != map->strides[o][inner] * map->dims[inner])
            return false;
    return true;
}

void map_join(struct map *map)
{
    struct map joined = {.operands = map->operands};
    for (int i = 0; i < map->rank; i++) {
        if (map->dims[i] == 1)
            continue;
        int at = joined.rank;
        joined.dims[at] = map->dims[i];
        for (int o = 0; o < map->operands; o++)
            joined.strides[o][at] = map->strides[o][i];
        if (at > 0 && joins(&joined, at - 1, at)) {
            joined.dims[at - 1] *= joined.dims[at];
            for (int o = 0; o < map->operands; o++)
                joined.strides[o][at - 1] = joined.strides[o][at];
        } else
            joined.rank++;
    }
    if (joined.rank == 0) {
        joined.rank = 1;
        joined.dims[0] = 1;
        for (int o = 0; o < map->operands; o++)
            joined.strides[o][0] = 0;
    }
    *map = joined;
}

bool map_first(const struct map *map, struct map_row *row)
{
    memset(row, 0, sizeof *row);
    row->left = 1;
    for (int i = 0; i < map->rank; i++) {
        if (map->dims[i] == 0)
            return false;
        row->left *= i < map->rank - 1 ? map->dims[i] : 1;
    }
    return true;
}

bool map_next(const struct map *map, struct map_row *row)
{
    if (--row->left == 0)
        return false;
    for (int i = map->rank - 2; i >= 0; i--) {
        for (int o = 0; o < map->operands; o++)
            row->at[o] += map->strides[o][i];
        if (++row->index[i] < map->dims[i])
            return true;
        for (int o = 0; o < map->operands; o++)
            row->at[o] -= map->strides[o][i] * map->dims[i];
        row->index[i] = 0;
    }
    return true;
}

#define COPY(TYPE)                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
    ((TYPE *)to)[i * a] = ((const TYPE *)from)[i * b]

static void copy_row(size_t size, char *to, int64_t a, const char *from, int64_t b, int64_t n)
{
    if (a == 1 && b == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 1)
        COPY(uint8_t);
    else if (size == 2)
        COPY(uint16_t);
    else if (size == 4)
        COPY(uint32_t);
    else
        COPY(uint64_t);
}

void map_copy(struct map map, size_t size, void *to, const void *from)
{
    struct map_row row;
    map_join(&map);
    const int last = map.rank - 1;
    if (!map_first(&map, &row))
        return;
    do
        copy_row(size, (char *)to + row.at[0] * (int64_t)size, map.strides[0][last],
                 (const char *)from + row.at[1] * (int64_t)size, map.strides[1][last], map.dims[last]);
    while (map_next(&map, &row));
}
