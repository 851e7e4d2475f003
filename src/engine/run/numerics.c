/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for NaN and infinities in an array (check_numerics). A float is not finite when all exponent bits are set, so
 * the scan is integer arithmetic that compilers vectorize. Any thread. */
#include "base/element.h"
#include "engine/run/numerics.h"

#include <string.h>

static bool finite_f32(const uint32_t *bits, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad |= (bits[i] & 0x7F800000u) == 0x7F800000u;
    return !bad;
}

static bool finite_bf16(const uint16_t *bits, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad |= (bits[i] & 0x7F80u) == 0x7F80u;
    return !bad;
}

static bool finite_f16(const uint16_t *bits, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad |= (bits[i] & 0x7C00u) == 0x7C00u;
    return !bad;
}

static bool finite_f64(const uint64_t *bits, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad |= (bits[i] >> 52 & 0x7FF) == 0x7FF;
    return !bad;
}

static bool finite_line(graphi_dtype dtype, const void *from, int64_t count)
{
    switch (dtype) {
    case GRAPHI_F32: return finite_f32(from, count);
    case GRAPHI_BF16: return finite_bf16(from, count);
    case GRAPHI_F16: return finite_f16(from, count);
    default: return finite_f64(from, count);
    }
}

bool finite_array(const struct array_desc *desc, const void *data, int64_t rows)
{
    if (!dtype_is_float(desc->dtype))
        return true;
    int64_t dims[GRAPHI_MAX_RANK + 1] = {1}, strides[GRAPHI_MAX_RANK + 1] = {1}, index[GRAPHI_MAX_RANK] = {0};
    int rank = desc->rank ? desc->rank : 1;
    size_t size = graphi_dtype_size(desc->dtype);
    for (int d = 0; d < desc->rank; d++) {
        dims[d] = d == 0 && desc->bounded ? rows : desc->dims[d];
        strides[d] = desc->strides[d];
        if (dims[d] == 0)
            return true;
    }
    int last = rank - 1;
    for (int64_t at = 0;;) {
        const void *from = (const char *)data + (size_t)at * size;
        if (!finite_line(desc->dtype, from, dims[last]))
            return false;
        int d = last - 1;
        for (; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < dims[d])
                break;
            at -= strides[d] * dims[d];
            index[d] = 0;
        }
        if (d < 0)
            return true;
    }
}
