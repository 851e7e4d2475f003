/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels are cut: about 64 shares at most, and where memory is the bound a share moves about 32 KB. Everything
 * follows from the bound of the shape, never from the rows of a call, and from the cores of the machine (`threads`, the
 * most of any call; 0: not known) only where no bit does. */
#ifndef KERNELS_SHARES_H
#define KERNELS_SHARES_H

#include "kernels/kernel.h"

enum { SHARES_MAX = 64, SHARE_BYTES = 32 * 1024 };

/* Shares of kernels whose units of work are not to be divided. At least 1. */
static inline int clamp_shares(int64_t units)
{
    return (int)most(least(units, SHARES_MAX), 1);
}

/* The most shares where they may follow the machine: next to SHARES_MAX as many for each of its cores, an even number
 * where it can be, or, of more cores, for each of their halves, thirds, ... */
static inline int shares_for_cores(int threads)
{
    if (threads <= 0)
        return SHARES_MAX;
    if (threads > SHARES_MAX)
        return (int)divide_up(threads, threads / SHARES_MAX);
    const int shares = SHARES_MAX / threads * threads;
    return shares % 2 && shares > threads ? shares - threads : shares;
}

/* As many shares as `units`, at most those. */
static inline int clamp_shares_for(int64_t units, int threads)
{
    return (int)most(least(units, shares_for_cores(threads)), 1);
}

/* What the busiest thread has of so many tiles of so many rows, in rows; `tallest`: those of the largest tile. A tile
 * costs something whatever its height, since it reads its panel again. */
static inline double rows_of_busiest(int64_t tiles, double rows, double tallest, int threads)
{
    return (double)divide_up(tiles, threads) * (rows + 0.02 * tallest);
}

/* Two threads have as much as each other of any usual number of tiles; of few tiles for many, work that is handed out
 * is worth more beside others. */
static inline bool worth_evening(int64_t tiles, int threads)
{
    return threads > 2 && 2 * tiles >= threads;
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
