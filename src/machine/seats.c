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

/* The end of the whole tiles, from that core on, which `width` cores need. */
static int tiles_end(const graphi_machine *machine, int first, int width)
{
    int end = first;
    while (end < first + width)
        end = machine_tile_end(machine, end);
    return end;
}

static bool all_fit(const graphi_machine *machine, int groups, int width)
{
    int first = 0;
    for (; groups > 0 && first + width <= machine->cores; groups--)
        first = tiles_end(machine, first, width);
    return groups <= 0;
}

void machine_seats(const graphi_machine *machine, int groups, int width, int *order)
{
    int seated = 0, left = groups * width, first = 0;
    if (!all_fit(machine, groups, width))
        groups = left = 0;
    for (; groups > 0; groups--) {
        const int end = tiles_end(machine, first, width);
        for (int i = first; i < end; i++)
            order[i < first + width ? seated++ : left++] = i;
        first = end;
    }
    for (int i = first; i < machine->cores; i++)
        order[left++] = i;
}
