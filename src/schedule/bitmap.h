/* SPDX-License-Identifier: Apache-2.0 */
/* The bit map of idle workers: 1 is idle; the first one is found by bit scan (graphi.txt 5.2). A summary word says
 * which words have a bit, so 4096 workers cost two scans. Only the scheduling step touches it. */
#ifndef SCHEDULE_BITMAP_H
#define SCHEDULE_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

enum { BITMAP_WORDS = 64, BITMAP_BITS = 64 * BITMAP_WORDS }; /* MACHINE_MAX_CORES */

struct bitmap {
    uint64_t summary; /* bit i: word[i] != 0 */
    int64_t count;    /* of set bits; on the line of the first words, which are all that most machines use */
    uint64_t word[BITMAP_WORDS];
};

static inline bool bitmap_test(const struct bitmap *map, int bit)
{
    return map->word[bit >> 6] >> (bit & 63) & 1;
}

static inline void bitmap_set(struct bitmap *map, int bit)
{
    map->count += !bitmap_test(map, bit);
    map->word[bit >> 6] |= (uint64_t)1 << (bit & 63);
    map->summary |= (uint64_t)1 << (bit >> 6);
}

static inline void bitmap_clear(struct bitmap *map, int bit)
{
    map->count -= bitmap_test(map, bit);
    map->word[bit >> 6] &= ~((uint64_t)1 << (bit & 63));
    if (!map->word[bit >> 6])
        map->summary &= ~((uint64_t)1 << (bit >> 6));
}

/* The same of several bits, all of them clear before (set before), a word at a time where they are neighbours. */
static inline int bitmap_mask(const uint16_t *bits, int from, int count, uint64_t *mask)
{
    int i = from;
    for (*mask = 0; i < count && bits[i] >> 6 == bits[from] >> 6; i++)
        *mask |= (uint64_t)1 << (bits[i] & 63);
    return i;
}

static inline void bitmap_set_all(struct bitmap *map, const uint16_t *bits, int count)
{
    uint64_t mask;
    map->count += count;
    for (int i = 0, next; i < count; i = next) {
        next = bitmap_mask(bits, i, count, &mask);
        map->word[bits[i] >> 6] |= mask;
        map->summary |= (uint64_t)1 << (bits[i] >> 6);
    }
}

static inline void bitmap_clear_all(struct bitmap *map, const uint16_t *bits, int count)
{
    uint64_t mask;
    map->count -= count;
    for (int i = 0, next; i < count; i = next) {
        next = bitmap_mask(bits, i, count, &mask);
        if (!(map->word[bits[i] >> 6] &= ~mask))
            map->summary &= ~((uint64_t)1 << (bits[i] >> 6));
    }
}

/* The bits of one word among `count` from `from` on; *next: the first beyond it. */
static inline uint64_t bitmap_range(int from, int count, int *next)
{
    int end = (from | 63) + 1;
    *next = end < from + count ? end : from + count;
    return ~(uint64_t)0 >> (64 - (*next - from)) << (from & 63);
}

/* Neighbours, all of them clear before (set before). */
static inline void bitmap_set_range(struct bitmap *map, int from, int count)
{
    map->count += count;
    for (int next, end = from + count; from < end; from = next) {
        map->word[from >> 6] |= bitmap_range(from, end - from, &next);
        map->summary |= (uint64_t)1 << (from >> 6);
    }
}

static inline void bitmap_clear_range(struct bitmap *map, int from, int count)
{
    map->count -= count;
    for (int next, end = from + count; from < end; from = next)
        if (!(map->word[from >> 6] &= ~bitmap_range(from, end - from, &next)))
            map->summary &= ~((uint64_t)1 << (from >> 6));
}

/* First set bit, or -1. */
static inline int bitmap_first(const struct bitmap *map)
{
    if (!map->summary)
        return -1;
    int word = __builtin_ctzll(map->summary);
    return word * 64 + __builtin_ctzll(map->word[word]);
}

/* First set bit in [from, to), or -1. */
static inline int bitmap_next(const struct bitmap *map, int from, int to)
{
    while (from < to) {
        uint64_t bits = map->word[from >> 6] >> (from & 63);
        if (bits) {
            from += __builtin_ctzll(bits);
            return from < to ? from : -1;
        }
        from = (from | 63) + 1;
    }
    return -1;
}

/* First clear bit in [from, to), or `to`. */
static inline int bitmap_next_clear(const struct bitmap *map, int from, int to)
{
    while (from < to) {
        uint64_t bits = ~map->word[from >> 6] >> (from & 63);
        if (bits) {
            from += __builtin_ctzll(bits);
            return from < to ? from : to;
        }
        from = (from | 63) + 1;
    }
    return to;
}

/* The first `count` set bits, which must exist, in order. */
static inline void bitmap_list(const struct bitmap *map, int count, uint16_t *bits)
{
    for (int word = 0, i = 0; i < count; word++)
        for (uint64_t rest = map->word[word]; rest && i < count; rest &= rest - 1)
            bits[i++] = (uint16_t)(word * 64 + __builtin_ctzll(rest));
}

/* Where in a word `width` set bits begin, 1 to 64 of them: runs of 1, 2, 4 … bits are found from each other. */
static inline uint64_t bitmap_starts(uint64_t word, int width)
{
    for (int have = 1, more; word && have < width; have += more) {
        more = have < width - have ? have : width - have;
        word &= word >> more;
    }
    return word;
}

/* First start of `width` set bits, or -1. A word at a time: where a thousand workers come and go there are dozens of
 * runs that are too short. */
static inline int bitmap_neighbours(const struct bitmap *map, int width)
{
    int before = 0, end = 0; /* set bits at the end of the words looked at, and these words' end */
    for (uint64_t rest = map->summary; rest; rest &= rest - 1) {
        int word = __builtin_ctzll(rest);
        uint64_t bits = map->word[word], starts;
        int here = ~bits ? __builtin_ctzll(~bits) : 64;
        before = word == end ? before : 0;
        end = word + 1;
        if (before + here >= width)
            return word * 64 - before;
        if (width < 64 && (starts = bitmap_starts(bits, width)) != 0)
            return word * 64 + __builtin_ctzll(starts);
        before = here == 64 ? before + 64 : __builtin_clzll(~bits);
    }
    return -1;
}

/* First start of `width` set bits in [0, to), start a multiple of `align`; -1 if there is none. */
static inline int bitmap_run(const struct bitmap *map, int width, int align, int to)
{
    for (int at = bitmap_next(map, 0, to); at >= 0 && at + width <= to;) {
        int start = (at + align - 1) / align * align;
        if (start != at && !(start < to && bitmap_test(map, start))) {
            at = bitmap_next(map, start, to);
            continue;
        }
        int end = bitmap_next_clear(map, start, start + width < to ? start + width : to);
        if (end - start >= width)
            return start;
        at = bitmap_next(map, end, to);
    }
    return -1;
}

#endif
