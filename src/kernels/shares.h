/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels are cut: about 64 shares at most, and where memory is the bound a share moves about 32 KB. Everything
 * follows from the bound of the shape, never from the rows of a call, and from the cores of the machine only where no
 * bit does. */
#ifndef KERNELS_SHARES_H
#define KERNELS_SHARES_H

#include "kernels/kernel.h"

enum { SHARES_MAX = 64, SHARE_BYTES = 32 * 1024 };

/* The most shares where they may follow the machine: next to SHARES_MAX as many for each of its cores, an even number
 * where it can be, or, of more cores, for each of their halves, thirds, ... Below twice SHARES_MAX. */
static inline int shares_for_cores(int cores)
{
    if (cores <= 0)
        return SHARES_MAX;
    if (cores > SHARES_MAX)
        return (int)divide_up(cores, cores / SHARES_MAX);
    const int shares = SHARES_MAX / cores * cores;
    return shares % 2 && shares > cores ? shares - cores : shares;
}

/* Shares of kernels whose units of work are not to be divided: as many as these, at most those. At least 1. */
static inline int clamp_shares_for(int64_t units, int cores)
{
    return (int)most(least(units, shares_for_cores(cores)), 1);
}

/* The same whatever the machine. */
static inline int clamp_shares(int64_t units) { return clamp_shares_for(units, 0); }

/* Are tiles to be cut anew so that cores have as many? Two have, of any usual number; where tiles are few for the
 * cores, these have other operations beside, and where they are many the busiest core has little beyond the mean. */
static inline bool worth_evening(int64_t tiles, int cores)
{
    return cores > 2 && 2 * tiles >= cores && tiles <= 32 * (int64_t)cores;
}

/* What the busiest of the cores has of so many tiles, in rows. A tile costs that part of the tallest one beside its
 * rows, since it reads its panel again; to be flatter must pay by so much. Both are estimates. */
static const double TILE_COST = 0.02, WORTH_FLATTER = 0.03;
static inline double rows_of_busiest(int64_t tiles, double rows, double tallest, int cores)
{
    return (double)divide_up(tiles, cores) * (rows + TILE_COST * tallest);
}

/* Of an odd number of shares one of two threads has more, which counts where they are few: then it is one more, if
 * there are as many units. At least 1, at most SHARES_MAX. */
static inline int even_shares(double wanted, int64_t units)
{
    const int most = clamp_shares(units), shares = wanted < 1 ? 1 : wanted < most ? (int)wanted : most;
    return shares > 1 && shares % 2 && shares < most ? shares + 1 : shares;
}

/* Shares for `bytes` of traffic made of `units` things that are not divided. At least 1. */
static inline int shares_for(double bytes, int64_t units)
{
    return even_shares(bytes / SHARE_BYTES, units);
}

/* Channels of one block: whole cache lines but for the last. */
static inline void share_channels(int64_t channels, int blocks, int block, int64_t *begin, int64_t *end)
{
    const int64_t lines = divide_up(channels, 16);
    *begin = least(lines * block / blocks * 16, channels);
    *end = least(lines * (block + 1) / blocks * 16, channels);
}

/* The run of neighbours (of `width` in a call; 0 is one) that this share is in. */
static inline int share_piece(int shares, int width, int share)
{
    const int64_t pieces = most(width, 1);
    return (int)(((share + 1) * pieces - 1) / shares);
}

static inline void share_run(int shares, int width, int share, int64_t *begin, int64_t *end)
{
    split_range(shares, width > 1 ? width : 1, share_piece(shares, width, share), begin, end);
}

/* What the shares of a run have together of `units` of work, for the first of them to do; false: another one does it.
 * Where a call says nothing of its runs (width 0), each share has its own. */
static inline bool share_together(int64_t units, int shares, int width, int share, int64_t *begin, int64_t *end)
{
    int64_t first = share, last = share + 1, none;
    if (width > 0)
        share_run(shares, width, share, &first, &last);
    split_range(units, shares, (int)first, begin, &none);
    split_range(units, shares, (int)last - 1, &none, end);
    return share == first;
}

/* Images of `lines` lines, of few images parts of them: one for each of many cores, if a part has at least `fewest`
 * lines, since neighbours both make what lies between them. Parts of an image. */
static inline int64_t image_parts(int64_t images, int64_t lines, int64_t fewest)
{
    return most(least(divide_up(SHARES_MAX, most(images, 1)), lines / fewest), 1);
}

/* A part has at least so many times the lines that it shares with the next one, and more where one thread does it for
 * itself. */
enum { PART_OVERLAP = 2, PIECE_OVERLAP = 16 };

/* Neighbouring parts of one image are one: of those from *part to `end` as many as can be. */
struct image_lines {
    int64_t image, from, to;
};

static inline struct image_lines image_lines_next(int64_t lines, int64_t parts, int64_t *part, int64_t end)
{
    const int64_t image = *part / parts, next = least(end, (image + 1) * parts);
    struct image_lines found = {.image = image};
    int64_t none;
    split_range(lines, (int)parts, (int)(*part % parts), &found.from, &none);
    split_range(lines, (int)parts, (int)((next - 1) % parts), &none, &found.to);
    *part = next;
    return found;
}

/* Scratch that a share needs only while it runs: a piece for each share, or, where calls have fewer threads than there
 * are shares (`threads` at most; 0: not known), for each thread, which then finds it in its level-2 cache. */
static inline int share_slots(int shares, int threads)
{
    return threads > 0 && threads < shares ? threads : shares;
}

static inline int share_slot(int slots, int shares, int thread, int share)
{
    return slots == shares ? share : thread;
}

#endif
