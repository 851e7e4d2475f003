/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of micro-kernel, transforms and inner loops: isa/micro.c, isa/winograd.c and isa/depthwise.c are
 * compiled once per instruction set, these tables name the results. */
#include "kernels/micro.h"

#include "kernels/depthwise.h"
#include "kernels/each_isa.h"
#include "kernels/pack.h"
#include "kernels/winograd.h"

#define DECLARE(isa)                                                                                                   \
    void micro_##isa(const struct micro_call *call);                                                                   \
    extern const struct depthwise_functions depthwise_##isa;
#define DECLARE_BF16(isa)                                                                                              \
    void micro_pairs_##isa(const struct micro_call *call);                                                             \
    extern const struct winograd_scheme winograd_##isa[];                                                              \
    extern const struct pair_functions pairs_##isa;
EACH_ISA(DECLARE)
EACH_ISA_BF16(DECLARE_BF16)

#define PRODUCTS(isa) micro_##isa,
#define PRODUCTS_OF_PAIRS(isa) micro_pairs_##isa,
#define WINOGRAD(isa) winograd_##isa,
#define DEPTHWISE(isa) &depthwise_##isa,
#define PAIRS(isa) &pairs_##isa,
static const micro_function products[] = {EACH_ISA(PRODUCTS)};
static const micro_function products_of_pairs[] = {EACH_ISA_BF16(PRODUCTS_OF_PAIRS)};
static const struct winograd_scheme *const schemes[] = {EACH_ISA_BF16(WINOGRAD)};
static const struct depthwise_functions *const depthwise[] = {EACH_ISA(DEPTHWISE)};
static const struct pair_functions *const pairs_of[] = {EACH_ISA_BF16(PAIRS)};

micro_function micro_kernel(enum isa isa, bool pairs) { return (pairs ? products_of_pairs : products)[isa]; }

const struct winograd_scheme *winograd_scheme(enum isa isa, int outputs, int taps)
{
    const struct winograd_scheme *scheme = schemes[isa];
    while (scheme->points && (scheme->outputs != outputs || scheme->taps != taps))
        scheme++;
    return scheme->points ? scheme : NULL;
}

const struct depthwise_functions *depthwise_functions(enum isa isa) { return depthwise[isa]; }

const struct pair_functions *pair_functions(enum isa isa) { return pairs_of[isa]; }
