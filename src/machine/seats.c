/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores the executors of a run sit on, so that no two of them share a level-2 cache that they need not
 * (graphi.txt 4.4: executors have cores and tiles of their own). Usual size: 2 to 64 groups, tiles of one, two or four
 * cores; called when a lease is taken. */
#include "machine/machine.h"

int machine_tile_end(const graphi_machine *machine, int first)
{
    int end = first + 1;
    while (end < machine->cores && machine->core[end].tile == machine->core[first].tile)
        end++;
    return end;
}

/* Cores to sit on, by their index in the machine. */
struct cores {
    const graphi_machine *machine;
    const int *list; /* NULL: all */
    int count;
};

static int tile_of(const struct cores *cores, int i)
{
    return cores->machine->core[cores->list ? cores->list[i] : i].tile;
}

/* The end of the whole tiles, from that core on, which `width` cores need. */
static int tiles_end(const struct cores *cores, int first, int width)
{
    int end = first;
    while (end < first + width && end < cores->count) {
        const int tile = tile_of(cores, end);
        while (end < cores->count && tile_of(cores, end) == tile)
            end++;
    }
    return end;
}

static bool all_fit(const struct cores *cores, int groups, int width)
{
    int first = 0;
    for (; groups > 0 && first + width <= cores->count; groups--)
        first = tiles_end(cores, first, width);
    return groups <= 0;
}

void machine_seats(const graphi_machine *machine, const int *list, int count, int groups, int width, int *order)
{
    const struct cores cores = {machine, list, count};
    int seated = 0, left = groups * width, first = 0;
    if (!all_fit(&cores, groups, width))
        groups = left = 0;
    for (; groups > 0; groups--) {
        const int end = tiles_end(&cores, first, width);
        for (int i = first; i < end; i++)
            order[i < first + width ? seated++ : left++] = i;
        first = end;
    }
    for (int i = first; i < count; i++)
        order[left++] = i;
}
