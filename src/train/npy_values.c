/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of .npy arrays, one by one in C order, whatever type and order they are stored in. What is float32 or int64
 * in C order already is copied whole. Any thread. Usual size: 150 million pixels. */
#include "train/npy.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "what is not big-endian is read without swapping bytes");

/* A number as it is stored: whole, with the sign apart so that uint64 fits, or real. */
struct value {
    bool whole, negative, broken;
    uint64_t magnitude;
    double real; /* of a whole one the nearest double */
};

/* Where the next element in C order is. */
struct walk {
    const struct npy *array;
    size_t offset, stride[GRAPHI_MAX_RANK];
    int64_t at[GRAPHI_MAX_RANK];
};

static struct walk walk_begin(const struct npy *array)
{
    struct walk walk = {.array = array};
    size_t stride = npy_size(array->type);
    for (int i = 0; i < array->rank; i++) {
        const int d = array->fortran ? i : array->rank - 1 - i;
        walk.stride[d] = stride;
        stride *= (size_t)array->dims[d];
    }
    return walk;
}

static void walk_next(struct walk *walk)
{
    for (int d = walk->array->rank - 1; d >= 0; d--) {
        walk->offset += walk->stride[d];
        if (++walk->at[d] < walk->array->dims[d])
            return;
        walk->offset -= walk->stride[d] * (size_t)walk->at[d];
        walk->at[d] = 0;
    }
}

static struct value whole_signed(int64_t value)
{
    return (struct value){.whole = true,
                          .negative = value < 0,
                          .magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value,
                          .real = (double)value};
}

static struct value whole_unsigned(uint64_t value)
{
    return (struct value){.whole = true, .magnitude = value, .real = (double)value};
}

static double half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

/* The longdouble of x86: 64 bits of fraction, the first of them not implied, sign and exponent, and nothing behind
 * them. Another processor's longdouble of this size is broken as one of these: it has bits behind. */
static struct value extended(const uint8_t *bytes, size_t size)
{
    uint64_t fraction;
    memcpy(&fraction, bytes, 8);
    const int top = bytes[8] | bytes[9] << 8, exponent = top & 0x7fff;
    struct value value = {.broken = exponent > 0 && fraction >> 63 == 0};
    for (size_t i = 10; i < size; i++)
        value.broken |= bytes[i] != 0;
    value.real = exponent == 0x7fff ? (fraction << 1 ? (double)NAN : (double)INFINITY)
                                    : ldexp((double)fraction, exponent - 16383 - 63);
    if (top & 0x8000)
        value.real = -value.real;
    return value;
}

static struct value real(double value)
{
    return (struct value){.real = value};
}

static double float_of(const uint8_t *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof value);
    return (double)value;
}

static double double_of(const uint8_t *bytes)
{
    double value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t bits_of(const uint8_t *bytes, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, bytes, size);
    return bits;
}

/* `bytes` are little-endian. */
static struct value decode(enum npy_type type, const uint8_t *bytes)
{
    switch (type) {
    case NPY_F4:
        return real(float_of(bytes));
    case NPY_F8:
        return real(double_of(bytes));
    case NPY_F2:
        return real(half((uint16_t)bits_of(bytes, 2)));
    case NPY_BF16:
        return real(float_of((const uint8_t[4]){0, 0, bytes[0], bytes[1]}));
    case NPY_F12:
        return extended(bytes, 12);
    case NPY_F16:
        return extended(bytes, 16);
    case NPY_B1:
        return whole_unsigned(*bytes != 0);
    case NPY_I1:
        return whole_signed((int8_t)*bytes);
    case NPY_I2:
        return whole_signed((int16_t)bits_of(bytes, 2));
    case NPY_I4:
        return whole_signed((int32_t)bits_of(bytes, 4));
    case NPY_I8:
        return whole_signed((int64_t)bits_of(bytes, 8));
    default:
        return whole_unsigned(bits_of(bytes, npy_size(type)));
    }
}

static struct value walk_value(const struct walk *walk)
{
    const size_t size = npy_size(walk->array->type);
    const uint8_t *at = (const uint8_t *)walk->array->data + walk->offset;
    uint8_t swapped[16];
    if (!walk->array->big_endian)
        return decode(walk->array->type, at);
    for (size_t i = 0; i < size; i++)
        swapped[i] = at[size - 1 - i];
    return decode(walk->array->type, swapped);
}

static bool is_plain(const struct npy *array, enum npy_type type)
{
    return array->type == type && !array->big_endian && !(array->fortran && array->rank > 1);
}

static graphi_status broken(const char *where, int64_t at)
{
    return fail(GRAPHI_UNSUPPORTED, where,
                "found a longdouble at %lld that is not of 80 bits, expected such or float64 (numpy's astype('f8'))",
                (long long)at);
}

/* Whether float32 has exactly this whole number. */
static bool holds(float found, const struct value *value)
{
    return fabsf(found) < 0x1p64F && (uint64_t)fabsf(found) == value->magnitude;
}

graphi_status npy_to_f32(const char *where, const struct npy *array, float *out)
{
    if (is_plain(array, NPY_F4)) {
        if (array->bytes)
            memcpy(out, array->data, array->bytes);
        return GRAPHI_OK;
    }
    struct walk walk = walk_begin(array);
    for (int64_t i = 0; i < array->count; i++, walk_next(&walk)) {
        const struct value value = walk_value(&walk);
        if (value.broken)
            return broken(where, i);
        out[i] = (float)value.real;
        if (value.whole ? !holds(out[i], &value) : isinf(out[i]) && !isinf(value.real))
            return fail(GRAPHI_INVALID, where, "found %.17g at %lld, expected a number that float32 holds", value.real,
                        (long long)i);
    }
    return GRAPHI_OK;
}

static bool to_i64(const struct value *value, int64_t *out)
{
    if (!value->whole) {
        if (!(value->real >= -0x1p63 && value->real < 0x1p63) || value->real != floor(value->real))
            return false;
        *out = (int64_t)value->real;
        return true;
    }
    if (value->magnitude > (uint64_t)INT64_MAX + value->negative)
        return false;
    *out = value->negative ? (int64_t)-value->magnitude : (int64_t)value->magnitude;
    return true;
}

graphi_status npy_to_i64(const char *where, const struct npy *array, int64_t *out)
{
    if (is_plain(array, NPY_I8)) {
        if (array->bytes)
            memcpy(out, array->data, array->bytes);
        return GRAPHI_OK;
    }
    struct walk walk = walk_begin(array);
    for (int64_t i = 0; i < array->count; i++, walk_next(&walk)) {
        const struct value value = walk_value(&walk);
        if (value.broken)
            return broken(where, i);
        if (!to_i64(&value, &out[i]))
            return fail(GRAPHI_INVALID, where, "found %.17g at %lld, expected a whole number%s", value.real,
                        (long long)i, value.real == floor(value.real) ? " of 64 bits" : "");
    }
    return GRAPHI_OK;
}

void npy_to_bytes(const struct npy *array, uint8_t *out)
{
    struct walk walk = walk_begin(array);
    if (!array->fortran && array->bytes)
        memcpy(out, array->data, array->bytes);
    for (int64_t i = 0; array->fortran && i < array->count; i++, walk_next(&walk))
        out[i] = ((const uint8_t *)array->data)[walk.offset];
}
