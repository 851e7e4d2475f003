/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU can do. */
#include "base/isa.h"

#include <string.h>

enum isa isa_detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return ISA_PLAIN;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return ISA_AVX2;
    return __builtin_cpu_supports("avx512bf16") ? ISA_BF16 : ISA_AVX512;
#else
    return ISA_PLAIN;
#endif
}

static const char *const names[] = {"plain", "avx2", "avx512", "bf16"};

const char *isa_name(enum isa isa)
{
    return names[isa];
}

bool isa_parse(const char *name, enum isa *isa)
{
    for (int i = ISA_PLAIN; i <= ISA_BF16; i++)
        if (strcmp(names[i], name) == 0) {
            *isa = (enum isa)i;
            return true;
        }
    return false;
}
