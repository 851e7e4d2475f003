/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): a number depends on (key, counter) alone, never on
 * who asks first, so results do not depend on threads. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

struct random4 {
    uint32_t v[4];
};

static inline struct random4 random_philox(uint64_t key, uint64_t counter_high, uint64_t counter_low)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    struct random4 x = {{(uint32_t)counter_low, (uint32_t)(counter_low >> 32), (uint32_t)counter_high,
                         (uint32_t)(counter_high >> 32)}};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * x.v[0], b = (uint64_t)0xCD9E8D57u * x.v[2];
        x = (struct random4){
            {(uint32_t)(b >> 32) ^ x.v[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ x.v[3] ^ k1, (uint32_t)a}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return x;
}

/* Uniform in [0, 1), 24 bits. */
static inline float random_unit(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }

#endif
