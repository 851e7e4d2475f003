/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a row to a row, once per instruction set. Usual length: 128 to 512. */
#include "kernels/isa/isa.h"

void ISA_NAME(embedding_add)(float *to, const float *from, int64_t n);

void ISA_NAME(embedding_add)(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vstore(to + i, vload(to + i) + vload(from + i));
    int rest = (int)(n - i);
    if (rest)
        vstore_n(to + i, vload_n(to + i, rest) + vload_n(from + i, rest), rest);
}
