/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose only limit is the core: independent multiply-adds in registers, and reads of an array. One copy an
 * instruction set, compiled for it by attribute and chosen once by name. 12 accumulators cover two units of latency 4
 * to 5; operands are arguments the compiler cannot see through, so nothing is folded away. Pure functions; any thread.
 */
#include "machine/private.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHAINS = 12 };

/* Hides a value from the optimizer. */
static float opaque(float value)
{
    volatile float hidden = value;
    return hidden;
}

/* 12 independent chains a = a * m + c; with m near 1 and c near 0 they stay finite for any number of rounds. */
#define MULTIPLY_LOOP(type, set, multiply_add, lanes, first)                                                           \
    type a[CHAINS], m = set(opaque(0.999f)), c = set(opaque(0.001f));                                                  \
    for (int i = 0; i < CHAINS; i++)                                                                                   \
        a[i] = set(opaque((float)i));                                                                                  \
    for (long round = 0; round < rounds; round++) {                                                                    \
        a[0] = multiply_add(a[0], m, c), a[1] = multiply_add(a[1], m, c), a[2] = multiply_add(a[2], m, c);             \
        a[3] = multiply_add(a[3], m, c), a[4] = multiply_add(a[4], m, c), a[5] = multiply_add(a[5], m, c);             \
        a[6] = multiply_add(a[6], m, c), a[7] = multiply_add(a[7], m, c), a[8] = multiply_add(a[8], m, c);             \
        a[9] = multiply_add(a[9], m, c), a[10] = multiply_add(a[10], m, c), a[11] = multiply_add(a[11], m, c);         \
    }                                                                                                                  \
    float sum = 0;                                                                                                     \
    for (int i = 0; i < CHAINS; i++)                                                                                   \
        sum += first(a[i]);                                                                                            \
    opaque(sum);                                                                                                       \
    return (double)rounds * CHAINS * (lanes)*2

/* Reads vector by vector in eight chains: bound by the loads, not by the additions. */
#define READ_LOOP(type, zero, load, add, first)                                                                        \
    const char *at = data;                                                                                             \
    type s[8];                                                                                                         \
    for (int i = 0; i < 8; i++)                                                                                        \
        s[i] = zero;                                                                                                   \
    for (const char *end = at + bytes; at < end; at += 8 * sizeof(type)) {                                             \
        s[0] = add(s[0], load(at, 0)), s[1] = add(s[1], load(at, 1)), s[2] = add(s[2], load(at, 2));                   \
        s[3] = add(s[3], load(at, 3)), s[4] = add(s[4], load(at, 4)), s[5] = add(s[5], load(at, 5));                   \
        s[6] = add(s[6], load(at, 6)), s[7] = add(s[7], load(at, 7));                                                  \
    }                                                                                                                  \
    double sum = 0;                                                                                                    \
    for (int i = 0; i < 8; i++)                                                                                        \
        sum += first(s[i]);                                                                                            \
    return sum

/* --- any machine: 16-byte vectors of the compiler --- */

typedef float four __attribute__((vector_size(16)));
#define four_set(x) ((four){(x), (x), (x), (x)})
#define four_multiply_add(a, m, c) ((a) * (m) + (c))
#define four_first(v) ((v)[0])
#define four_add(a, b) ((a) + (b))
#define four_load(at, i) (((const four *)(at))[i])

static double multiply_plain(long rounds) { MULTIPLY_LOOP(four, four_set, four_multiply_add, 4, four_first); }

static double read_plain(const void *data, long bytes)
{
    READ_LOOP(four, four_set(0.0f), four_load, four_add, four_first);
}

#if defined(__x86_64__)
#define eight_load(at, i) _mm256_load_ps((const float *)(at) + 8 * (i))
#define sixteen_load(at, i) _mm512_load_ps((const float *)(at) + 16 * (i))

__attribute__((target("avx2,fma"))) static double multiply_avx2(long rounds)
{
    MULTIPLY_LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps, 8, _mm256_cvtss_f32);
}

__attribute__((target("avx2,fma"))) static double read_avx2(const void *data, long bytes)
{
    READ_LOOP(__m256, _mm256_setzero_ps(), eight_load, _mm256_add_ps, _mm256_cvtss_f32);
}

__attribute__((target("avx512f"))) static double multiply_avx512(long rounds)
{
    MULTIPLY_LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps, 16, _mm512_cvtss_f32);
}

__attribute__((target("avx512f"))) static double read_avx512(const void *data, long bytes)
{
    READ_LOOP(__m512, _mm512_setzero_ps(), sixteen_load, _mm512_add_ps, _mm512_cvtss_f32);
}

/* A dot product adds two products in every lane: 64 FLOPs an instruction. Here the operands, not the sums, are
 * constant. */
#define dot_sum(a, m, c) _mm512_dpbf16_ps((a), (__m512bh)(m), (__m512bh)(c))
__attribute__((target("avx512f,avx512bf16"))) static double dot_bf16(long rounds)
{
    MULTIPLY_LOOP(__m512, _mm512_set1_ps, dot_sum, 32, _mm512_cvtss_f32);
}
#endif

static const struct roof_kernel table[] = {
    {"plain", multiply_plain, NULL, read_plain},
#if defined(__x86_64__)
    {"avx2", multiply_avx2, NULL, read_avx2},
    {"avx512", multiply_avx512, NULL, read_avx512},
    {"bf16", multiply_avx512, dot_bf16, read_avx512},
#endif
};

const struct roof_kernel *roof_kernel(const char *isa)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].isa, isa) == 0)
            return &table[i];
    return &table[0];
}
