/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that make a tensor out of little: constants, ranges, identity matrices, windows. Source: ONNX Constant,
 * ConstantOfShape, Range, EyeLike, OneHot, HannWindow, HammingWindow, BlackmanWindow. Any thread. */
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

static graphi_status run_constant(struct op_call *call)
{
    if (call->attribute_count < 1)
        return op_fail(call, "found no content of Constant, expected an attribute");
    const struct attribute *a = &call->attributes[0];
    graphi_tensor *out;
    const int64_t count = (int64_t)a->count;
    switch (a->kind) {
    case ATTRIBUTE_TENSOR:
        call->out[0] = value_keep(a->tensor);
        return GRAPHI_OK;
    case ATTRIBUTE_INT:
        TRY(op_new(call, 0, T_I64, 0, NULL, &out));
        *(int64_t *)out->data = a->i;
        return GRAPHI_OK;
    case ATTRIBUTE_INTS:
        return value_list(call->where, count, a->ints, &call->out[0]);
    case ATTRIBUTE_FLOAT:
        return value_number(call->where, T_F32, a->f, &call->out[0]);
    case ATTRIBUTE_FLOATS:
        TRY(op_new(call, 0, T_F32, 1, &count, &out));
        if (count)
            memcpy(out->data, a->floats, out->bytes);
        return GRAPHI_OK;
    default:
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a constant of strings, expected numbers");
    }
}

static void fill(graphi_tensor *out, const void *element, size_t size)
{
    for (int64_t i = 0; i < out->count; i++)
        memcpy((char *)out->data + (size_t)i * size, element, size);
}

static graphi_status run_constant_of_shape(struct op_call *call)
{
    static const int64_t zero = 0;
    int64_t dims[VALUE_RANK];
    int rank;
    graphi_tensor *out;
    TRY(op_numbers(call, 0, dims, &rank));
    const struct attribute *a = op_attribute(call, "value");
    const graphi_tensor *value = a && a->kind == ATTRIBUTE_TENSOR ? a->tensor : NULL;
    if (value && value->count != 1)
        return op_fail(call, "found %lld elements as value, expected 1", (long long)value->count);
    TRY(op_new(call, 0, value ? value->type : T_F32, rank, dims, &out));
    fill(out, value ? value->data : &zero, element_size(out->type));
    return GRAPHI_OK;
}

static graphi_status run_range(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_same_types(call, 0, 3));
    for (int i = 0; i < 3; i++)
        if (call->in[i]->count != 1)
            return op_fail(call, "found %lld elements as input %d of Range, expected 1", (long long)call->in[i]->count,
                           i);
    const bool floats = element_is_float(call->in[0]->type);
    const double d[3] = {value_double(call->in[0], 0), value_double(call->in[1], 0), value_double(call->in[2], 0)};
    const int64_t start = value_int(call->in[0], 0), step = value_int(call->in[2], 0);
    if (!(d[2] != 0) || isinf(d[0]) || isinf(d[1]) || isnan(d[0]) || isnan(d[1]))
        return op_fail(call, "found the range %g to %g by %g, expected finite limits and a step", d[0], d[1], d[2]);
    const double wanted = ceil((d[1] - d[0]) / d[2]);
    if (wanted > 0x1p40)
        return op_fail(call, "found a range of %g elements, expected fewer than 2^40", wanted);
    const int64_t count = wanted > 0 ? (int64_t)wanted : 0;
    TRY(op_new(call, 0, call->in[0]->type, 1, &count, &out));
    const size_t size = element_size(out->type);
    for (int64_t i = 0; i < count; i++) {
        const double number = d[0] + (double)i * d[2];
        const int64_t integer = start + i * step;
        element_store(floats ? DOMAIN_F64 : DOMAIN_I64, out->type, floats ? (const void *)&number : &integer, 1,
                      (char *)out->data + (size_t)i * size);
    }
    return GRAPHI_OK;
}

static graphi_status run_eye(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    if (x->rank != 2)
        return op_fail(call, "found rank %d for EyeLike, expected 2", x->rank);
    const int64_t k = op_int(call, "k", 0), one = 1;
    TRY(op_new(call, 0, (graphi_element)op_int(call, "dtype", x->type), 2, x->dims, &out));
    memset(out->data, 0, out->bytes);
    for (int64_t i = 0; i < x->dims[0]; i++)
        if (i + k >= 0 && i + k < x->dims[1])
            element_store(DOMAIN_I64, out->type, &one, 1,
                          (char *)out->data + (size_t)(i * x->dims[1] + i + k) * element_size(out->type));
    return GRAPHI_OK;
}

static graphi_status run_one_hot(struct op_call *call)
{
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], inner = 1;
    int axis;
    for (int i = 0; i < 3; i++)
        TRY(op_tensor(call, i, 0));
    const graphi_tensor *indices = call->in[0], *values = call->in[2];
    if (call->in[1]->count != 1 || values->count != 2)
        return op_fail(call, "found %lld depths and %lld values, expected 1 and 2", (long long)call->in[1]->count,
                       (long long)values->count);
    if (indices->rank == VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, call->where, "found rank %d, expected at most 7", indices->rank);
    const int64_t depth = value_int(call->in[1], 0);
    TRY(op_axis(call, op_int(call, "axis", -1), indices->rank + 1, &axis));
    for (int i = 0; i <= indices->rank; i++) {
        dims[i] = i == axis ? depth : indices->dims[i - (i > axis)];
        inner *= i > axis ? dims[i] : 1;
    }
    TRY(op_new(call, 0, values->type, indices->rank + 1, dims, &out));
    const size_t size = element_size(values->type);
    fill(out, values->data, size);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t k = value_int(indices, i);
        k = k < 0 ? k + depth : k;
        if (k >= 0 && k < depth)
            memcpy((char *)out->data + (size_t)((i / inner * depth + k) * inner + i % inner) * size,
                   (const char *)values->data + size, size);
    }
    return GRAPHI_OK;
}

/* a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N). */
static graphi_status run_window(struct op_call *call)
{
    static const double forms[3][3] = {{0.5, 0.5, 0}, {25.0 / 46, 1 - 25.0 / 46, 0}, {0.42, 0.5, 0.08}};
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const int64_t count = call->in[0]->count == 1 ? value_int(call->in[0], 0) : -1;
    const double *a = forms[call->op->variant];
    const double length = (double)(op_int(call, "periodic", 1) ? count : count - 1);
    TRY(op_new(call, 0, (graphi_element)op_int(call, "output_datatype", T_F32), 1, &count, &out));
    for (int64_t i = 0; i < count; i++) {
        const double angle = 2 * M_PI * (double)i / length, number = a[0] - a[1] * cos(angle) + a[2] * cos(2 * angle);
        element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
    }
    return GRAPHI_OK;
}

const struct host_op host_ops_create[] = {
    {"Constant", 0, 0, 1, "value value_float value_floats value_int value_ints value_string value_strings sparse_value",
     run_constant, 0},
    {"ConstantOfShape", 1, 1, 1, "value", run_constant_of_shape, 0},
    {"Range", 3, 3, 1, "", run_range, 0},
    {"EyeLike", 1, 1, 1, "dtype k", run_eye, 0},
    {"OneHot", 3, 3, 1, "axis", run_one_hot, 0},
    {"HannWindow", 1, 1, 1, "output_datatype periodic", run_window, 0},
    {"HammingWindow", 1, 1, 1, "output_datatype periodic", run_window, 1},
    {"BlackmanWindow", 1, 1, 1, "output_datatype periodic", run_window, 2},
    {0},
};
