/* SPDX-License-Identifier: Apache-2.0 */
/* How parameters start. Every element comes from a counter-based generator keyed by (seed, parameter's name), so the
 * values depend neither on the order of parameters nor on what else the graph holds. */
#include "base/element.h"
#include "base/hash.h"
#include "base/random.h"
#include "engine/run/initialize.h"

#include <math.h>
#include <string.h>

/* Fans of a weight laid out [..., in, out]: leading dimensions are the window of a convolution. */
static void fans(const struct value_type *type, double *in, double *out)
{
    double window = 1;
    for (int i = 0; i + 2 < type->rank; i++)
        window *= (double)type->dims[i];
    double last = type->rank ? (double)type->dims[type->rank - 1] : 1;
    *in = type->rank > 1 ? window * (double)type->dims[type->rank - 2] : last;
    *out = window * last;
    *in = *in > 0 ? *in : 1;
}

static double unit(uint64_t key, int64_t i)
{
    struct random4 r = random_philox(key, 0, (uint64_t)i / 4);
    return (double)random_unit(r.v[i % 4]);
}

/* Box-Muller in double, rounded once at the end. */
static double normal(uint64_t key, int64_t i)
{
    struct random4 r = random_philox(key, 1, (uint64_t)i);
    double u = ((double)r.v[0] + 1) * 0x1p-32, angle = (double)r.v[1] * 0x1p-32 * 2 * M_PI;
    return sqrt(-2 * log(u)) * cos(angle);
}

static double element(const graphi_initializer *init, const struct value_type *type, uint64_t key, int64_t i)
{
    double in, out;
    switch (init->kind) {
    case GRAPHI_INIT_ZERO: return 0;
    case GRAPHI_INIT_CONSTANT: return init->a;
    case GRAPHI_INIT_UNIFORM: return init->a + (init->b - init->a) * unit(key, i);
    case GRAPHI_INIT_NORMAL: return init->a + init->b * normal(key, i);
    case GRAPHI_INIT_GLOROT_UNIFORM:
        fans(type, &in, &out);
        return sqrt(6 / (in + out)) * (2 * unit(key, i) - 1);
    case GRAPHI_INIT_HE_NORMAL:
        fans(type, &in, &out);
        return sqrt(2 / in) * normal(key, i);
    case GRAPHI_INIT_LOG_UNIFORM: return exp(log(init->a) + (log(init->b) - log(init->a)) * unit(key, i));
    }
    return 0;
}

/* As value_bits; but where rounding reaches `below` (NAN: no limit), the next number down that the dtype has. */
static uint64_t bits_below(graphi_dtype dtype, double value, double below)
{
    if (!dtype_is_float(dtype))
        return value_bits(dtype, trunc(value) >= below ? floor(value) : value);
    const uint64_t bits = value_bits(dtype, value), sign = UINT64_C(1) << (8 * graphi_dtype_size(dtype) - 1);
    if (!(float_of_bits(dtype, bits) >= below))
        return bits;
    return bits & sign ? bits + 1 : bits ? bits - 1 : sign | 1;
}

void initialize_parameter(uint64_t seed, const struct value *value, void *data)
{
    int64_t count = type_count(&value->type);
    if (value->data) {
        memcpy(data, value->data, (size_t)type_bytes(&value->type));
        return;
    }
    const graphi_initializer *init = &value->init;
    const double below = init->kind == GRAPHI_INIT_UNIFORM && init->a < init->b ? init->b : (double)NAN;
    const size_t bytes = graphi_dtype_size(value->type.dtype);
    uint64_t key = hash_u64(hash_string(HASH_START, value->name), seed);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = bits_below(value->type.dtype, element(init, &value->type, key, i), below);
        memcpy((char *)data + (size_t)i * bytes, &bits, bytes); /* little-endian: the low bytes */
    }
}
