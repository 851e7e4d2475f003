/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets that kernels come in and machines are described by. */
#ifndef BASE_ISA_H
#define BASE_ISA_H

#include <stdbool.h>

/* Ordered: a machine that has one has all before it. */
enum isa { ISA_PLAIN, ISA_AVX2, ISA_AVX512, ISA_BF16 /* AVX-512 with bfloat16 dot products */ };

/* The best instruction set of this CPU (cached after the first call). Any thread. */
enum isa isa_detect(void);
const char *isa_name(enum isa isa);
bool isa_parse(const char *name, enum isa *isa); /* false: there is none of this name, *isa untouched */

#endif
