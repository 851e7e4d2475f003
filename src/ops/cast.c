/* SPDX-License-Identifier: Apache-2.0 */
/* Results whose element type is an attribute, and zeros: cast, fill, zeros_like. The kernels write any strided layout.
 */
#include "ops/shape.h"

#include "kernels/cast.h"

#include <string.h>

#define DTYPES                                                                                                         \
    "a graphi_dtype: 0 float32, 1 bfloat16, 2 int32, 3 int64, 4 uint8, 5 bool, 6 int8, 7 int16, 8 uint16, 9 uint32, "  \
    "10 uint64, 11 float16, 12 float64"
static const struct op_attribute cast_attributes[] = {
    {.name = "dtype", .meaning = DTYPES, .type = GRAPHI_INT, .required = true},
    {0},
};
static const struct op_attribute fill_attributes[] = {
    {.name = "shape", .meaning = "of the result", .type = GRAPHI_INTS, .required = true},
    {.name = "value", .meaning = "of every element", .type = GRAPHI_FLOAT},
    {.name = "dtype", .meaning = DTYPES, .type = GRAPHI_INT},
    {0},
};

static graphi_status dtype_of(const struct shape_call *call, graphi_dtype *dtype)
{
    int64_t given = attr_int(call->node, "dtype");
    if (given < GRAPHI_F32 || given >= GRAPHI_DTYPES)
        return fail(GRAPHI_INVALID, call->where, "found dtype %lld, expected %d to %d", (long long)given, GRAPHI_F32,
                    GRAPHI_DTYPES - 1);
    *dtype = (graphi_dtype)given;
    return GRAPHI_OK;
}

static graphi_status cast_shape(const struct shape_call *call)
{
    graphi_dtype dtype = GRAPHI_F32;
    TRY(dtype_of(call, &dtype));
    call->out[0] = *call->in[0];
    call->out[0].dtype = dtype;
    return GRAPHI_OK;
}

static graphi_status bind_cast(const struct bind_call *call, struct kernel *kernel)
{
    return cast_bind(&call->in[0], &call->out[0], (enum isa)call->isa, kernel);
}

/* Rounding counts as nothing. Only values of floating types have gradients, float32 ones (graph/gradient.c). */
static void cast_gradient(struct gradient_call *call)
{
    call->grad_in[0] = call->grad_out[0];
}

static graphi_status fill_shape(const struct shape_call *call)
{
    const int64_t *shape;
    graphi_dtype dtype = GRAPHI_F32;
    int rank = attr_ints(call->node, "shape", &shape);
    TRY(dtype_of(call, &dtype));
    if (rank > GRAPHI_MAX_RANK)
        return fail(GRAPHI_INVALID, call->where, "found %d dimensions, expected at most %d", rank, GRAPHI_MAX_RANK);
    call->out[0] = (struct value_type){.dtype = dtype, .rank = rank, .symbol = -1};
    memcpy(call->out[0].dims, shape, (size_t)rank * sizeof *shape);
    return GRAPHI_OK;
}

static graphi_status bind_fill(const struct bind_call *call, struct kernel *kernel)
{
    return fill_bind(&call->out[0], attr_float(call->node, "value"), kernel);
}

static graphi_status zeros_shape(const struct shape_call *call)
{
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status bind_zeros(const struct bind_call *call, struct kernel *kernel)
{
    return fill_bind(&call->out[0], 0, kernel);
}

const struct op_kind ops_cast[] = {
    {.name = "cast",
     .summary = "the same numbers in another element type; of floats towards 0, what is beyond the end of the "
                "range, NaN 0; to floats the nearest, of whole numbers to 16 bits through float32; of whole "
                "numbers the low bits; to bool whether it is not 0",
     .shapes = "[...] to the same",
     UNARY,
     .attributes = cast_attributes,
     .flags = STRIDED,
     .shape = cast_shape,
     .gradient = cast_gradient,
     .bind = bind_cast},
    {.name = "fill",
     .summary = "a constant everywhere",
     .shapes = "to [shape]",
     .outputs = 1,
     .attributes = fill_attributes,
     .flags = OP_STRIDED_OUT,
     .scalability = "memory",
     .shape = fill_shape,
     .gradient = no_gradient,
     .flops = no_flops,
     .bind = bind_fill},
    {.name = "zeros_like",
     .summary = "zeros of the input's type and shape",
     .shapes = "[...] to the same",
     UNARY,
     .flags = STRIDED,
     .shape = zeros_shape,
     .gradient = no_gradient,
     .bind = bind_zeros},
    {0},
};
