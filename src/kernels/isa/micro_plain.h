/* SPDX-License-Identifier: Apache-2.0 */
/* The plain form of isa/micro.c, and the oracle of all others: three loops. */
#ifndef KERNELS_ISA_MICRO_PLAIN_H
#define KERNELS_ISA_MICRO_PLAIN_H

#include "kernels/isa/isa.h"
#include "kernels/micro.h"

/* The address of A(row, 0) of segment i. */
static inline const char *row_of(const struct micro_call *call, int64_t i, int row)
{
    return (const char *)call->a[i] + (call->row_offset ? call->row_offset[row] : row * call->row_stride * 4);
}

static inline float low_half(uint32_t pair)
{
    float value;
    pair <<= 16;
    memcpy(&value, &pair, sizeof value);
    return value;
}

static inline float high_half(uint32_t pair)
{
    float value;
    pair &= 0xffff0000u;
    memcpy(&value, &pair, sizeof value);
    return value;
}

static void plain_row(const struct micro_call *call, int row)
{
    float *c = call->result_offset ? (float *)((char *)call->c + call->result_offset[row]) : call->c + row * call->ldc;
    if (!call->accumulate)
        memset(c, 0, (size_t)call->n * sizeof *c);
    for (int64_t i = 0; i < call->count; i++) {
        const char *a = row_of(call, i, row);
        const char *b = call->b[i];
        for (int32_t k = 0; k < call->k[i]; k++, a += 4 * call->step_stride, b += 4 * call->ldb) {
            if (!PAIRS) {
                for (int j = 0; j < call->n; j++)
                    c[j] += *(const float *)a * ((const float *)b)[j];
                continue;
            }
            uint32_t pair = *(const uint32_t *)a;
            for (int j = 0; j < call->n; j++) {
                uint32_t other = ((const uint32_t *)b)[j];
                c[j] = c[j] + low_half(pair) * low_half(other) + high_half(pair) * high_half(other);
            }
        }
    }
}

static void tile(const struct micro_call *call)
{
    for (int row = 0; row < call->m; row++)
        plain_row(call, row);
}

#endif
