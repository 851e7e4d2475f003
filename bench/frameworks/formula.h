/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers by formula, as bench/frameworks/common.py has them: both sides fill their arrays alike. */
#ifndef BENCH_FRAMEWORKS_FORMULA_H
#define BENCH_FRAMEWORKS_FORMULA_H

#include <stdint.h>

static inline uint64_t formula_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static inline uint64_t formula_key(const char *prefix, const char *name)
{
    uint64_t key = 14695981039346656037ull;
    for (const char *c = prefix; *c; c++)
        key = (key ^ (uint8_t)*c) * 1099511628211ull;
    for (const char *c = name; *c; c++)
        key = (key ^ (uint8_t)*c) * 1099511628211ull;
    return key;
}

/* The i-th of the numbers of [0, 1) that belong to a key. */
static inline double formula_unit(uint64_t key, int64_t i)
{
    return (double)(formula_mix(key + (uint64_t)(i + 1) * 0x9e3779b97f4a7c15ull) >> 40) * 0x1p-24;
}

/* `count` numbers of [low, high) that belong to a name. */
static inline void formula_fill(const char *name, double low, double high, float *data, int64_t count)
{
    const uint64_t key = formula_key("", name);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(low + (high - low) * formula_unit(key, i));
}

#endif
