/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores the executors of a run sit on, so that no two of them share a level-2 cache that they need not
 * (graphi.txt 4.4: executors have cores and tiles of their own). Usual size: 2 to 64 groups, tiles of one, two or four
 * cores; called when a lease is taken. */
#include "machine/machine.h"

/* The end of the tile that begins there. */
static int tile_end(const graphi_machine *machine, int first)
{
    int end = first + 1;
    while (end < machine->cores && machine->core[end].tile == machine->core[first].tile)
        end++;
    return end;
}

/* Where the group that begins at `first`, on whole tiles, ends with its last core; beyond all cores: there are not
 * enough. *next: the tile behind it. */
static int group_end(const graphi_machine *machine, int first, int width, int *next)
{
    *next = first;
    while (*next < machine->cores && *next < first + width)
        *next = tile_end(machine, *next);
    return first + width;
}

void machine_seats(const graphi_machine *machine, int groups, int width, int *order)
{
    const int cores = machine->cores;
    int placed = 0, left = groups * width, first = 0, next = 0;
    for (int g = 0; g < groups; g++, first = next)
        if (group_end(machine, first, width, &next) > cores) {
            for (int i = 0; i < cores; i++)
                order[i] = i;
            return;
        }
    first = next = 0;
    for (int g = 0; g <= groups; g++, first = next) {
        const int end = g < groups ? group_end(machine, first, width, &next) : first;
        next = g < groups ? next : cores;
        for (int i = first; i < next; i++)
            order[i < end ? placed++ : left++] = i;
    }
}
