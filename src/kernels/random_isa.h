/* SPDX-License-Identifier: Apache-2.0 */
/* Between random.c and isa/random_run.c. */
#ifndef KERNELS_RANDOM_ISA_H
#define KERNELS_RANDOM_ISA_H

#include <stdint.h>

enum { RANDOM_BLOCK = 256 }; /* numbers of one call, four a counter */

/* bits[4 i + k] = random_philox(key, high, low + i).v[k]; dropout of n <= RANDOM_BLOCK elements (y may be x). */
#define RANDOM_LOOPS(isa)                                                                                              \
    void random_block_##isa(uint64_t key, uint64_t high, uint64_t low, uint32_t *bits);                                \
    void random_dropout_##isa(const uint32_t *bits, float threshold, float factor, const float *x, float *y,           \
                              float *mask, int n);
RANDOM_LOOPS(plain)
RANDOM_LOOPS(avx2)
RANDOM_LOOPS(avx512)

#endif
