/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized tensors: one scale and zero point, one an index along an axis, or one a block of an axis; and the integer
 * products. Source: ONNX QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger, QLinearMatMul,
 * ConvInteger, QLinearConv. Any thread. */
#include "base/memory.h"
#include "value/conv.h"
#include "value/families.h"
#include "value/matmul.h"
#include "value/small_float.h"

#include <math.h>
#include <string.h>

/* Where an element's scale lies. */
struct scales {
    const graphi_tensor *scale, *zero;
    int64_t axis, inner, n, block, blocks; /* of x: elements behind the axis, along it; of the scale, along the axis */
};

static graphi_status find_scales(const struct op_call *call, const graphi_tensor *x, int scale, struct scales *s)
{
    struct value_text a, b;
    int axis = 0;
    TRY(op_tensor(call, scale, 0));
    *s = (struct scales){.scale = call->in[scale], .zero = op_in(call, scale + 1), .inner = 1, .n = 1, .block = 1};
    s->blocks = 1;
    if (s->zero && (s->zero->count != s->scale->count))
        return op_fail(call, "found zero points %s for scales %s, expected as many", value_describe(s->zero, &a),
                       value_describe(s->scale, &b));
    if (s->scale->count == 1 && s->scale->rank <= 1)
        return GRAPHI_OK;
    TRY(op_axis(call, op_int(call, "axis", 1), x->rank, &axis));
    const int64_t block = op_int(call, "block_size", 0);
    s->n = x->dims[axis];
    for (int i = axis + 1; i < x->rank; i++)
        s->inner *= x->dims[i];
    s->block = block > 0 ? block : 1;
    s->blocks = block > 0 ? (s->n + block - 1) / block : s->n;
    const int64_t wanted = block > 0 ? (s->n ? x->count / s->n * s->blocks : 0) : s->n;
    s->axis = block > 0 ? 1 : 0;
    if (s->scale->count != wanted)
        return op_fail(call, "found scales %s for %s, expected %lld", value_describe(s->scale, &a),
                       value_describe(x, &b), (long long)wanted);
    return GRAPHI_OK;
}

static int64_t scale_of(const struct scales *s, int64_t i)
{
    if (s->scale->count == 1)
        return 0;
    const int64_t along = i / s->inner % s->n / s->block;
    return s->axis ? (i / s->inner / s->n * s->blocks + along) * s->inner + i % s->inner : along;
}

static double zero_of(const struct scales *s, int64_t k)
{
    return s->zero ? value_double(s->zero, k) : 0;
}

/* Limits of an integer type; false: it is a float. */
static bool limits(graphi_element type, double *least, double *most)
{
    static const struct {
        graphi_element type;
        double least, most;
    } table[] = {
        {T_U8, 0, 255},
        {T_I8, -128, 127},
        {T_U16, 0, 65535},
        {T_I16, -32768, 32767},
        {T_I32, -0x1p31, 0x1p31 - 1},
        {GRAPHI_ELEMENT_UINT4, 0, 15},
        {GRAPHI_ELEMENT_INT4, -8, 7},
        {GRAPHI_ELEMENT_UINT2, 0, 3},
        {GRAPHI_ELEMENT_INT2, -2, 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].type == type) {
            *least = table[i].least;
            *most = table[i].most;
            return true;
        }
    return false;
}

static void store_quantized(graphi_tensor *out, int64_t i, double x, double zero, bool saturate)
{
    double least, most;
    uint8_t *to = (uint8_t *)out->data + (size_t)i * element_size(out->type);
    if (limits(out->type, &least, &most)) {
        const double number = fmin(fmax(rint(x) + zero, least), most);
        element_store(DOMAIN_F64, out->type, &number, 1, to);
    } else if (element_size(out->type) == 1)
        *to = small_float_from(out->type, (float)(x + zero), saturate);
    else {
        const double number = x + zero;
        element_store(DOMAIN_F64, out->type, &number, 1, to);
    }
}

static graphi_status run_quantize(struct op_call *call)
{
    struct scales s;
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    TRY(find_scales(call, x, 1, &s));
    const int64_t asked = op_int(call, "output_dtype", 0);
    const graphi_element type = s.zero ? s.zero->type : asked ? (graphi_element)asked : T_U8;
    const bool saturate = op_int(call, "saturate", 1) != 0, single = x->type != T_F64;
    TRY(op_new(call, 0, type, x->rank, x->dims, &out));
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t k = scale_of(&s, i);
        const double a = value_double(x, i), b = value_double(s.scale, k);
        store_quantized(out, i, single ? (double)((float)a / (float)b) : a / b, zero_of(&s, k), saturate);
    }
    return GRAPHI_OK;
}

static graphi_status run_dequantize(struct op_call *call)
{
    struct scales s;
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    TRY(find_scales(call, x, 1, &s));
    const int64_t asked = op_int(call, "output_dtype", 0);
    TRY(op_new(call, 0, asked ? (graphi_element)asked : s.scale->type, x->rank, x->dims, &out));
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t k = scale_of(&s, i);
        const float number = (float)(value_double(x, i) - zero_of(&s, k)) * (float)value_double(s.scale, k);
        element_store(DOMAIN_F32, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
    }
    return GRAPHI_OK;
}

static graphi_status run_dynamic(struct op_call *call)
{
    graphi_tensor *out, *scale, *zero;
    TRY(op_tensor(call, 0, T_F32));
    const graphi_tensor *x = call->in[0];
    float least = 0, most = 0;
    for (int64_t i = 0; i < x->count; i++) {
        const float number = ((const float *)x->data)[i];
        least = number < least ? number : least;
        most = number > most ? number : most;
    }
    const float by = (most - least) / 255;
    const double point = by > 0 ? fmin(fmax(rint(-(double)least / (double)by), 0), 255) : 0;
    if (call->outs < 3)
        return op_fail(call, "found %d outputs of DynamicQuantizeLinear, expected 3", call->outs);
    TRY(op_new(call, 0, T_U8, x->rank, x->dims, &out));
    TRY(op_new(call, 1, T_F32, 0, NULL, &scale));
    TRY(op_new(call, 2, T_U8, 0, NULL, &zero));
    for (int64_t i = 0; i < x->count; i++)
        store_quantized(out, i, by > 0 ? (double)(((const float *)x->data)[i] / by) : 0, point, true);
    *(float *)scale->data = by;
    *(uint8_t *)zero->data = (uint8_t)point;
    return GRAPHI_OK;
}

/* A tensor less its zero points, as 64-bit integers: one point, or one for every index along `axis`. */
static graphi_status centred(const struct op_call *call, int i, int point, int axis, struct dense *out)
{
    const graphi_tensor *x = call->in[i], *zero = op_in(call, point);
    TRY(op_tensor(call, i, 0));
    if (element_is_float(x->type))
        return op_fail(call, "found %s as input %d, expected integers", graphi_element_name(x->type), i);
    *out = (struct dense){.domain = DOMAIN_I64, .room = mem_alloc((size_t)x->count * 8)};
    if (!out->room)
        return fail_memory(call->where, (size_t)x->count * 8);
    element_load(DOMAIN_I64, x->type, x->data, 1, x->count, out->room);
    out->data = out->room;
    if (!zero)
        return GRAPHI_OK;
    axis = axis < 0 ? axis + x->rank : axis;
    int64_t inner = 1;
    for (int k = axis + 1; k < x->rank; k++)
        inner *= x->dims[k];
    if (zero->count != 1 && (axis < 0 || zero->count != x->dims[axis]))
        return op_fail(call, "found %lld zero points of input %d, expected 1 or %lld", (long long)zero->count, i,
                       (long long)(axis < 0 ? 1 : x->dims[axis]));
    for (int64_t k = 0; k < x->count; k++)
        ((int64_t *)out->room)[k] -= value_int(zero, zero->count == 1 ? 0 : k / inner % zero->count);
    return GRAPHI_OK;
}

static graphi_status run_matmul_integer(struct op_call *call)
{
    struct dense a = {0}, b = {0};
    TRY(op_tensor(call, 1, 0));
    graphi_status status = centred(call, 0, 2, -2, &a);
    if (status == GRAPHI_OK)
        status = centred(call, 1, 3, -1, &b);
    if (status == GRAPHI_OK)
        status = matmul_run(call, 0, call->in[0], call->in[1], &a, &b, T_I32);
    dense_free(&a);
    dense_free(&b);
    return status;
}

/* Output 0 of int32 sums becomes quantized: times the scales, by that of y. `axis` counts the scales of b. */
static graphi_status requantize(struct op_call *call, const int *scales, int axis, const graphi_tensor *bias)
{
    graphi_tensor *sums = call->out[0], *out;
    const graphi_tensor *zero = call->in[scales[2] + 1], *by = call->in[scales[1]];
    call->out[0] = NULL;
    int64_t inner = 1;
    for (int i = axis + 1; i < sums->rank; i++)
        inner *= sums->dims[i];
    graphi_status status =
        by->count != 1 && (axis >= sums->rank || by->count != sums->dims[axis])
            ? op_fail(call, "found %lld scales of weights, expected 1 or one a channel", (long long)by->count)
            : GRAPHI_OK;
    if (status == GRAPHI_OK && bias && bias->count != sums->dims[axis])
        status = op_fail(call, "found %lld biases, expected %lld", (long long)bias->count, (long long)sums->dims[axis]);
    if (status == GRAPHI_OK)
        status = op_new(call, 0, zero->type, sums->rank, sums->dims, &out);
    for (int64_t i = 0; i < sums->count && status == GRAPHI_OK; i++) {
        const int64_t c = axis < sums->rank ? i / inner % sums->dims[axis] : 0;
        const double scale = value_double(call->in[scales[0]], 0) * value_double(by, by->count == 1 ? 0 : c) /
                             value_double(call->in[scales[2]], 0);
        const int64_t sum = ((const int32_t *)sums->data)[i] + (bias ? value_int(bias, c) : 0);
        store_quantized(out, i, (double)sum * scale, value_double(zero, 0), true);
    }
    value_drop(sums);
    return status;
}

static graphi_status run_qlinear_matmul(struct op_call *call)
{
    struct dense a = {0}, b = {0};
    for (int i = 0; i < 8; i++)
        TRY(op_tensor(call, i, 0));
    graphi_status status = centred(call, 0, 2, -2, &a);
    if (status == GRAPHI_OK)
        status = centred(call, 3, 5, -1, &b);
    if (status == GRAPHI_OK)
        status = matmul_run(call, 0, call->in[0], call->in[3], &a, &b, T_I32);
    dense_free(&a);
    dense_free(&b);
    if (status != GRAPHI_OK)
        return status;
    return requantize(call, (const int[]){1, 4, 6}, call->out[0]->rank - 1, NULL);
}

static graphi_status integer_conv(struct op_call *call, int x, int x_zero, int w, int w_zero)
{
    struct convolution c;
    struct dense a = {0}, b = {0};
    graphi_tensor *out;
    int64_t dims[VALUE_RANK];
    TRY(op_tensor(call, x, 0));
    TRY(op_tensor(call, w, 0));
    TRY(convolution_find(call, call->in[x], call->in[w], &c));
    dims[0] = c.n;
    dims[1] = c.filters;
    memcpy(dims + 2, c.w.out, (size_t)c.w.rank * sizeof *dims);
    TRY(op_new(call, 0, T_I32, c.w.rank + 2, dims, &out));
    int64_t *to = mem_alloc((size_t)out->count * sizeof *to);
    graphi_status status = to ? centred(call, x, x_zero, 1, &a) : fail_memory(call->where, (size_t)out->count * 8);
    if (status == GRAPHI_OK)
        status = centred(call, w, w_zero, 0, &b);
    if (status == GRAPHI_OK)
        status = convolution_run(call->where, &c, &a, &b, to);
    if (status == GRAPHI_OK)
        element_store(DOMAIN_I64, T_I32, to, out->count, out->data);
    dense_free(&a);
    dense_free(&b);
    mem_free(to);
    return status;
}

static graphi_status run_conv_integer(struct op_call *call)
{
    return integer_conv(call, 0, 2, 1, 3);
}

static graphi_status run_qlinear_conv(struct op_call *call)
{
    for (int i = 0; i < 8; i++)
        TRY(op_tensor(call, i, 0));
    TRY(integer_conv(call, 0, 2, 3, 5));
    return requantize(call, (const int[]){1, 4, 6}, 1, op_in(call, 8));
}

#define GEOMETRY "auto_pad dilations group kernel_shape pads strides"
const struct host_op host_ops_quantize[] = {
    {"QuantizeLinear", 2, 3, 1, "axis block_size output_dtype precision saturate", run_quantize, 0},
    {"DequantizeLinear", 2, 3, 1, "axis block_size output_dtype", run_dequantize, 0},
    {"DynamicQuantizeLinear", 1, 1, 3, "", run_dynamic, 0},
    {"MatMulInteger", 2, 4, 1, "", run_matmul_integer, 0},
    {"QLinearMatMul", 8, 8, 1, "", run_qlinear_matmul, 0},
    {"ConvInteger", 2, 4, 1, GEOMETRY, run_conv_integer, 0},
    {"QLinearConv", 8, 9, 1, GEOMETRY, run_qlinear_conv, 0},
    {0},
};
