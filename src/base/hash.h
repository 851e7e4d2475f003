/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit hash that is the same on every machine and in every version of the file formats (FNV-1a with a final mix).
 * Not cryptographic; SHA-256 of a state comes from nettle. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325ull

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    return hash;
}

static inline uint64_t hash_u64(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* Eight bytes at a time, for parameters of kernels and arrays of gigabytes; another number than hash_bytes gives. */
static inline uint64_t hash_wide(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t word;
    for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = hash_u64(hash, word);
    }
    return hash_bytes(hash, bytes, size);
}

static inline uint64_t hash_double(uint64_t hash, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return hash_u64(hash, bits);
}

static inline uint64_t hash_string(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

#endif
