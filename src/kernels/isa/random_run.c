/* SPDX-License-Identifier: Apache-2.0 */
/* Philox 4x32-10 over many counters at once (base/random.h has it for one), compiled once per instruction set. The
 * loops are plain C over independent counters, which the compiler turns into vectors. */
#include "kernels/random_isa.h"

#include "kernels/isa/isa.h"

void ISA_NAME(random_block)(uint64_t key, uint64_t high, uint64_t low, uint32_t *bits)
{
    enum { N = RANDOM_BLOCK / 4 };
    uint32_t x0[N], x1[N], x2[N], x3[N], k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < N; i++) {
        x0[i] = (uint32_t)(low + (uint64_t)i);
        x1[i] = (uint32_t)((low + (uint64_t)i) >> 32);
        x2[i] = (uint32_t)high;
        x3[i] = (uint32_t)(high >> 32);
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
        for (int i = 0; i < N; i++) {
            uint64_t a = (uint64_t)0xD2511F53u * x0[i], b = (uint64_t)0xCD9E8D57u * x2[i];
            x0[i] = (uint32_t)(b >> 32) ^ x1[i] ^ k0;
            x1[i] = (uint32_t)b;
            x2[i] = (uint32_t)(a >> 32) ^ x3[i] ^ k1;
            x3[i] = (uint32_t)a;
        }
    for (int i = 0; i < N; i++) {
        bits[4 * i] = x0[i];
        bits[4 * i + 1] = x1[i];
        bits[4 * i + 2] = x2[i];
        bits[4 * i + 3] = x3[i];
    }
}

void ISA_NAME(random_dropout)(const uint32_t *bits, float threshold, float factor, const float *x, float *y,
                              float *mask, int n)
{
    for (int i = 0; i < n; i++) {
        float keep = (float)(int32_t)(bits[i] >> 8) * 0x1p-24f < threshold ? factor : 0;
        float value = x[i] * keep;
        y[i] = keep != 0 ? value : 0;
        mask[i] = keep;
    }
}
