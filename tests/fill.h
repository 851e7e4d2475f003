/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that tests/data/reference.json was computed with: an array is filled from its name alone, by the same formula
 * as in tools/reference.py (splitmix64 at positions 1, 2, ... after the FNV-1a hash of the name, 24 bits a number). */
#ifndef TESTS_FILL_H
#define TESTS_FILL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t fill_key(const char *name)
{
    uint64_t key = 14695981039346656037ull;
    for (; *name; name++)
        key = (key ^ (unsigned char)*name) * 1099511628211ull;
    return key;
}

/* The i-th number of [0, 1). */
static inline double fill_unit(uint64_t key, int64_t i)
{
    uint64_t z = key + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return (double)(z >> 40) / (1 << 24);
}

static inline void fill_uniform(const char *name, double low, double high, int64_t count, float *data)
{
    for (int64_t i = 0, key = (int64_t)fill_key(name); i < count; i++)
        data[i] = (float)(low + (high - low) * fill_unit((uint64_t)key, i));
}

static inline void fill_integers(const char *name, int64_t below, int64_t count, int32_t *data)
{
    for (int64_t i = 0, key = (int64_t)fill_key(name); i < count; i++)
        data[i] = (int32_t)floor(fill_unit((uint64_t)key, i) * (double)below);
}

/* The range of a parameter by the last part of its name, else by its rank and fan; false: it stays as it is initialized
 * (zero): carried states and the optimizer's slots. `gain` scales what goes by fan. */
static inline bool fill_range(const char *name, int rank, const int64_t *dims, double gain, double range[2])
{
    static const struct {
        const char *last;
        double low, high;
    } known[] = {{"period", 1.5, 20}, {"shift", 1, 2}, {"ratio", 0.3, 0.6}, {"scale", 0.5, 1.5}, {"variance", 2, 5}};
    static const char *const zero[] = {"momentum", "adam_m", "adam_v", "step"};
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    if (strncmp(name, "state/", 6) == 0 || strncmp(name, "eval/", 5) == 0)
        return false;
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
        if (strcmp(last, zero[i]) == 0)
            return false;
    if (strcmp(last, "shift") == 0 && strncmp(name, "layer", 5) == 0) { /* a PhasedLSTM's; the other is batch_norm's */
        range[0] = 0;
        range[1] = 1;
        return true;
    }
    if (strcmp(last, "shift") == 0 &&
        (strncmp(name, "discriminator/", 14) == 0 || strncmp(name, "generator/", 10) == 0)) {
        range[0] = -0.5;
        range[1] = 0.5;
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(last, known[i].last) == 0) {
            range[0] = known[i].low;
            range[1] = known[i].high;
            return true;
        }
    double a = 0.1;
    if (rank > 1)
        a = gain * sqrt(6 / (double)(rank == 4 ? dims[0] * dims[1] * dims[2] : dims[0] + dims[1]));
    range[0] = -a;
    range[1] = a;
    return true;
}

#endif
