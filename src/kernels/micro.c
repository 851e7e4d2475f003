/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of micro-kernel, transforms and inner loops: isa/micro.c, isa/winograd.c and isa/depthwise.c are compiled once per instruction
 * set, these tables name the results. */
#include "kernels/micro.h"

#include "kernels/depthwise.h"
#include "kernels/pack.h"
#include "kernels/winograd.h"

#define DECLARE(isa)                                \
    void micro_##isa(const struct micro_call *call); \
    void micro_pairs_##isa(const struct micro_call *call); \
    extern const struct winograd_scheme winograd_##isa[]; \
    extern const struct depthwise_functions depthwise_##isa; \
    extern const struct pair_functions pairs_##isa;
DECLARE(plain)
#if defined(__x86_64__)
DECLARE(avx2)
DECLARE(avx512)
DECLARE(bf16)
#endif

micro_function micro_kernel(enum isa isa, bool pairs)
{
#if defined(__x86_64__)
    static const micro_function table[][2] = {
        [ISA_PLAIN] = {micro_plain, micro_pairs_plain},
        [ISA_AVX2] = {micro_avx2, micro_pairs_avx2},
        [ISA_AVX512] = {micro_avx512, micro_pairs_avx512},
        [ISA_BF16] = {micro_bf16, micro_pairs_bf16},
    };
    return table[isa][pairs];
#else
    return pairs ? micro_pairs_plain : micro_plain;
#endif
}

const struct winograd_scheme *winograd_scheme(enum isa isa, int outputs, int taps)
{
#if defined(__x86_64__)
    static const struct winograd_scheme *const table[] = {
        [ISA_PLAIN] = winograd_plain,
        [ISA_AVX2] = winograd_avx2,
        [ISA_AVX512] = winograd_avx512,
        [ISA_BF16] = winograd_bf16,
    };
    const struct winograd_scheme *scheme = table[isa];
#else
    const struct winograd_scheme *scheme = winograd_plain;
#endif
    while (scheme->points && (scheme->outputs != outputs || scheme->taps != taps))
        scheme++;
    return scheme->points ? scheme : NULL;
}

const struct depthwise_functions *depthwise_functions(enum isa isa)
{
#if defined(__x86_64__)
    static const struct depthwise_functions *const table[] = {
        [ISA_PLAIN] = &depthwise_plain,
        [ISA_AVX2] = &depthwise_avx2,
        [ISA_AVX512] = &depthwise_avx512,
        [ISA_BF16] = &depthwise_bf16,
    };
    return table[isa];
#else
    return &depthwise_plain;
#endif
}

const struct pair_functions *pair_functions(enum isa isa)
{
#if defined(__x86_64__)
    static const struct pair_functions *const table[] = {
        [ISA_PLAIN] = &pairs_plain,
        [ISA_AVX2] = &pairs_avx2,
        [ISA_AVX512] = &pairs_avx512,
        [ISA_BF16] = &pairs_bf16,
    };
    return table[isa];
#else
    return &pairs_plain;
#endif
}
