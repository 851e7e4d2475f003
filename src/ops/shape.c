/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that change the shape or place of elements, not their values: reshape, slice, concat, split, transpose,
 * pad; and cast, fill, zeros_like. reshape and slice are views whenever strides allow, the inputs of concat are
 * parts of its output whenever the memory plan places them so; their kernels copy otherwise. Any element type.
 *
 * A bounded dimension 0 passes through where it stays dimension 0; reshape may multiply or divide it by a constant. */
#include "ops/shape.h"

#include "ops/check.h"

#include "kernels/cast.h"
#include "kernels/copy.h"

#include <string.h>

static const struct op_attribute shape_attributes[] = {{.name = "shape", .type = GRAPHI_INTS, .required = true}, {0}};
static const struct op_attribute perm_attributes[] = {{.name = "perm", .type = GRAPHI_INTS}, {0}}; /* empty: reversed */
static const struct op_attribute axis_attributes[] = {{.name = "axis", .type = GRAPHI_INT, .required = true}, {0}};
static const struct op_attribute slice_attributes[] = {
    {.name = "axis", .type = GRAPHI_INT, .required = true},
    {.name = "begin", .type = GRAPHI_INT},               /* negative: from the end */
    {.name = "end", .type = GRAPHI_INT, .i = INT64_MAX}, /* cut to the size */
    {0},
};
static const struct op_attribute split_attributes[] = {
    {.name = "axis", .type = GRAPHI_INT, .required = true},
    {.name = "sizes", .type = GRAPHI_INTS}, /* of the outputs; empty: equal */
    {.name = "outputs", .type = GRAPHI_INT, .required = true},
    {0},
};
static const struct op_attribute pad_attributes[] = {
    {.name = "before", .type = GRAPHI_INTS, .required = true}, /* elements added, one number a dimension */
    {.name = "after", .type = GRAPHI_INTS, .required = true},
    {.name = "value", .type = GRAPHI_FLOAT},
    {0},
};
static const struct op_attribute cast_attributes[] = {{.name = "dtype", .type = GRAPHI_INT, .required = true}, {0}};
static const struct op_attribute fill_attributes[] = {
    {.name = "shape", .type = GRAPHI_INTS, .required = true},
    {.name = "value", .type = GRAPHI_FLOAT},
    {.name = "dtype", .type = GRAPHI_INT}, /* graphi_dtype; float32 */
    {0},
};

static graphi_status rank_error(const struct shape_call *call, int found, const char *what)
{
    return fail(GRAPHI_INVALID, call->where, "found %d %s, expected at most %d", found, what, GRAPHI_MAX_RANK);
}

/* --- reshape --- */

/* The shape asked for: -1 takes what is left (once), 0 keeps the input's size at that place (as ONNX). */
static graphi_status reshape_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    const int64_t *shape;
    int rank = attr_ints(call->node, "shape", &shape), open = -1;
    if (rank > GRAPHI_MAX_RANK)
        return rank_error(call, rank, "dimensions");
    struct value_type out = {.dtype = in->dtype, .rank = rank, .symbol = in->symbol};
    int64_t known = 1, count = type_count(in);
    for (int i = 0; i < rank; i++) {
        out.dims[i] = shape[i] == 0 && i < in->rank ? in->dims[i] : shape[i];
        if (shape[i] < -1 || (shape[i] == -1 && open >= 0))
            return fail(GRAPHI_INVALID, call->where, "found size %lld in dimension %d, expected 0 or more, or one -1",
                        (long long)shape[i], i);
        if (shape[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(known, out.dims[i], &known))
            return fail(GRAPHI_INVALID, call->where, "found a shape of more than 2^63 elements, expected %lld",
                        (long long)count);
    }
    if (open >= 0)
        out.dims[open] = known ? count / known : 0;
    if ((open >= 0 ? known * out.dims[open] : known) != count) {
        char found[96], wanted[96];
        type_text(in, found, sizeof found);
        type_text(&out, wanted, sizeof wanted);
        return fail(GRAPHI_INVALID, call->where, "found %s, expected as many elements as in %s", found, wanted);
    }
    bool follows = in->symbol < 0 || /* a scalar has no dimension 0 to divide by */
                   (rank > 0 && out.dims[0] > 0 && (out.dims[0] % in->dims[0] == 0 || in->dims[0] % out.dims[0] == 0));
    TRY(expect(call, 0, follows, "a bounded dimension 0 that stays dimension 0, times or over a constant"));
    call->out[0] = out;
    return GRAPHI_OK;
}

static bool reshape_view(const struct bind_call *call, struct array_desc *out, int64_t *offset)
{
    *offset = 0;
    return restride(&call->in[0], out);
}

/* Copies where a view is not possible or not taken: both arrays walked with the dims of the one that is strided. */
static graphi_status reshape_bind(const struct bind_call *call, struct kernel *kernel)
{
    const struct array_desc *in = &call->in[0], *out = &call->out[0];
    struct array_desc from = *out, to = *in;
    const struct array_desc *dims;
    if (restride(in, &from)) {
        to = *out;
        dims = out;
    } else if (restride(out, &to)) {
        from = *in;
        dims = in;
    } else {
        return fail(GRAPHI_UNSUPPORTED, call->where,
                    "found strided layouts that no copy joins, expected one of them dense");
    }
    struct copy_part part = copy_part_of(dims, &from, &to);
    part.rows = in->bounded ? in->dims[0] : 0;
    return bind_parts(call, "reshape", 1, &part, kernel);
}

static void reshape_gradient(struct gradient_call *call)
{
    const struct value_type type = graph_value(call->graph, call->in[0])->type;
    graphi_attribute shape = ints_attribute("shape", type.dims, type.rank);
    call->grad_in[0] = graphi_op(call->graph, "reshape", 1, call->grad_out, 1, &shape);
}

/* --- transpose --- */

static graphi_status perm_of(const char *where, const struct node *node, int rank, int64_t *perm)
{
    const int64_t *given;
    int count = attr_ints(node, "perm", &given);
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) {
        perm[i] = count ? (i < count ? given[i] : -1) : rank - 1 - i;
        if (perm[i] >= 0 && perm[i] < rank)
            seen |= 1u << perm[i];
    }
    if ((count == 0 || count == rank) && seen == (1u << rank) - 1)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found a perm of %d numbers, expected each of 0 to %d once", count, rank - 1);
}

static graphi_status transpose_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    int64_t perm[GRAPHI_MAX_RANK];
    TRY(perm_of(call->where, call->node, in->rank, perm));
    TRY(expect(call, 0, in->symbol < 0 || perm[0] == 0, "a bounded dimension 0 that stays dimension 0"));
    call->out[0] = *in;
    for (int i = 0; i < in->rank; i++)
        call->out[0].dims[i] = in->dims[perm[i]];
    return GRAPHI_OK;
}

/* Moving dimensions of size 1 moves nothing. */
static bool transpose_view(const struct bind_call *call, struct array_desc *out, int64_t *offset)
{
    int64_t perm[GRAPHI_MAX_RANK], before = -1;
    if (perm_of(call->where, call->node, out->rank, perm) != GRAPHI_OK)
        return false;
    for (int i = 0; i < out->rank; i++) {
        if (out->dims[i] == 1)
            continue;
        if (perm[i] < before)
            return false;
        before = perm[i];
    }
    *offset = 0;
    return restride(&call->in[0], out);
}

static graphi_status transpose_bind(const struct bind_call *call, struct kernel *kernel)
{
    int64_t perm[GRAPHI_MAX_RANK];
    struct array_desc from = call->out[0];
    TRY(perm_of(call->where, call->node, from.rank, perm));
    for (int i = 0; i < from.rank; i++)
        from.strides[i] = call->in[0].strides[perm[i]];
    struct copy_part part = copy_part_of(&call->out[0], &from, &call->out[0]);
    return bind_parts(call, "transpose", 1, &part, kernel);
}

static void transpose_gradient(struct gradient_call *call)
{
    int rank = graph_value(call->graph, call->in[0])->type.rank;
    int64_t perm[GRAPHI_MAX_RANK], inverse[GRAPHI_MAX_RANK];
    if (perm_of("transpose", call->op, rank, perm) != GRAPHI_OK)
        return;
    for (int i = 0; i < rank; i++)
        inverse[perm[i]] = i;
    graphi_attribute attribute = ints_attribute("perm", inverse, rank);
    call->grad_in[0] = graphi_op(call->graph, "transpose", 1, call->grad_out, 1, &attribute);
}

/* --- concat and split --- */

static graphi_status concat_shape(const struct shape_call *call)
{
    int axis = 0;
    struct value_type out = *call->in[0];
    TRY(axis_of(call, out.rank, &axis));
    TRY(expect(call, 0, out.symbol < 0 || axis > 0, "a fixed size along the axis"));
    for (int i = 1; i < call->node->inputs; i++) {
        struct value_type like = *call->in[0];
        if (axis < call->in[i]->rank)
            like.dims[axis] = call->in[i]->dims[axis];
        TRY(expect_type(call, i, &like));
        out.dims[axis] += like.dims[axis];
    }
    call->out[0] = out;
    return GRAPHI_OK;
}

/* The axis of a checked node. */
static int node_axis(const struct node *node, int rank)
{
    int axis = (int)attr_int(node, "axis");
    return axis < 0 ? axis + rank : axis;
}

static bool concat_part(const struct bind_call *call, int input, struct array_desc *part, int64_t *offset)
{
    const struct array_desc *out = &call->out[0];
    int axis = node_axis(call->node, out->rank);
    *part = call->in[input];
    memcpy(part->strides, out->strides, sizeof part->strides);
    *offset = 0;
    for (int i = 0; i < input; i++)
        *offset += call->in[i].dims[axis] * out->strides[axis];
    return true;
}

static graphi_status concat_bind(const struct bind_call *call, struct kernel *kernel)
{
    int n = call->node->inputs;
    struct copy_part *part = mem_zalloc_array((size_t)n, sizeof *part);
    if (!part)
        return fail_memory(call->where, (size_t)n * sizeof *part);
    for (int i = 0; i < n; i++) {
        struct array_desc to;
        int64_t offset;
        concat_part(call, i, &to, &offset);
        part[i] = copy_part_of(&call->in[i], &call->in[i], &to);
        part[i].input = i;
        part[i].to_offset = offset;
    }
    graphi_status status = bind_parts(call, "concat", n, part, kernel);
    mem_free(part);
    return status;
}

static graphi_value slice_value(graphi_graph *graph, graphi_value value, int axis, int64_t begin, int64_t end)
{
    graphi_attribute attribute[] = {int_attribute("axis", axis), int_attribute("begin", begin),
                                    int_attribute("end", end)};
    return graphi_op(graph, "slice", 1, &value, 3, attribute);
}

static void concat_gradient(struct gradient_call *call)
{
    int64_t begin = 0;
    for (int i = 0; i < call->op->inputs; i++) {
        const struct value_type in = graph_value(call->graph, call->in[i])->type;
        int axis = node_axis(call->op, in.rank);
        if (call->needed[i])
            call->grad_in[i] = slice_value(call->graph, call->grad_out[0], axis, begin, begin + in.dims[axis]);
        begin += in.dims[axis];
    }
}

static graphi_status split_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    const int64_t *sizes;
    int axis = 0, n = call->node->outputs, given = attr_ints(call->node, "sizes", &sizes);
    TRY(axis_of(call, in->rank, &axis));
    TRY(expect(call, 0, in->symbol < 0 || axis > 0, "a fixed size along the axis"));
    if (given && given != n)
        return fail(GRAPHI_INVALID, call->where, "found %d sizes, expected %d, one an output", given, n);
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        call->out[i] = *in;
        call->out[i].dims[axis] = given ? sizes[i] : in->dims[axis] / n;
        sum += call->out[i].dims[axis];
    }
    if (sum != in->dims[axis])
        return fail(GRAPHI_INVALID, call->where, "found outputs of %lld in all, expected %lld, the size of axis %d",
                    (long long)sum, (long long)in->dims[axis], axis);
    return GRAPHI_OK;
}

static graphi_status split_bind(const struct bind_call *call, struct kernel *kernel)
{
    int n = call->node->outputs, axis = node_axis(call->node, call->in[0].rank);
    struct copy_part *part = mem_zalloc_array((size_t)n, sizeof *part);
    if (!part)
        return fail_memory(call->where, (size_t)n * sizeof *part);
    int64_t offset = 0;
    for (int i = 0; i < n; i++) {
        part[i] = copy_part_of(&call->out[i], &call->in[0], &call->out[i]);
        part[i].output = i;
        part[i].from_offset = offset;
        offset += call->out[i].dims[axis] * call->in[0].strides[axis];
    }
    graphi_status status = bind_parts(call, "split", n, part, kernel);
    mem_free(part);
    return status;
}

static void split_gradient(struct gradient_call *call)
{
    int n = call->op->outputs, axis = (int)attr_int(call->op, "axis");
    graphi_value *part = mem_zalloc_array((size_t)n, sizeof *part);
    if (!part) {
        graph_broken(call->graph, fail_memory("split", (size_t)n * sizeof *part));
        return;
    }
    for (int i = 0; i < n; i++)
        part[i] = call->grad_out[i] != GRAPHI_NONE ? call->grad_out[i]
                                                   : graphi_op(call->graph, "zeros_like", 1, &call->out[i], 0, NULL);
    graphi_attribute attribute = int_attribute("axis", axis);
    call->grad_in[0] = graphi_op(call->graph, "concat", n, part, 1, &attribute);
    mem_free(part);
}

/* --- slice and pad --- */

static void slice_range(const struct node *node, int64_t size, int64_t *begin, int64_t *end)
{
    *begin = attr_int(node, "begin");
    *end = attr_int(node, "end");
    *begin += *begin < 0 ? size : 0;
    *end += *end < 0 ? size : 0;
    *end = *end > size ? size : *end;
}

static graphi_status slice_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    int axis = 0;
    int64_t begin, end;
    TRY(axis_of(call, in->rank, &axis));
    TRY(expect(call, 0, in->symbol < 0 || axis > 0, "a fixed size along the axis"));
    slice_range(call->node, in->dims[axis], &begin, &end);
    if (begin < 0 || begin >= end)
        return fail(GRAPHI_INVALID, call->where, "found the range %lld to %lld, expected a part of 0 to %lld",
                    (long long)attr_int(call->node, "begin"), (long long)attr_int(call->node, "end"),
                    (long long)in->dims[axis]);
    call->out[0] = *in;
    call->out[0].dims[axis] = end - begin;
    return GRAPHI_OK;
}

static bool slice_view(const struct bind_call *call, struct array_desc *out, int64_t *offset)
{
    const struct array_desc *in = &call->in[0];
    int axis = node_axis(call->node, in->rank);
    int64_t begin, end;
    slice_range(call->node, in->dims[axis], &begin, &end);
    memcpy(out->strides, in->strides, sizeof out->strides);
    *offset = begin * in->strides[axis];
    return true;
}

static graphi_status slice_bind(const struct bind_call *call, struct kernel *kernel)
{
    struct array_desc from = call->out[0];
    int64_t offset;
    slice_view(call, &from, &offset);
    struct copy_part part = copy_part_of(&call->out[0], &from, &call->out[0]);
    part.from_offset = offset;
    return bind_parts(call, "slice", 1, &part, kernel);
}

static void slice_gradient(struct gradient_call *call)
{
    const struct value_type in = graph_value(call->graph, call->in[0])->type;
    int axis = node_axis(call->op, in.rank);
    int64_t before[GRAPHI_MAX_RANK] = {0}, after[GRAPHI_MAX_RANK] = {0}, begin, end;
    slice_range(call->op, in.dims[axis], &begin, &end);
    before[axis] = begin;
    after[axis] = in.dims[axis] - end;
    graphi_attribute attribute[] = {ints_attribute("before", before, in.rank), ints_attribute("after", after, in.rank)};
    call->grad_in[0] = graphi_op(call->graph, "pad", 1, call->grad_out, 2, attribute);
}

static graphi_status pad_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    const int64_t *before, *after;
    int b = attr_ints(call->node, "before", &before), a = attr_ints(call->node, "after", &after);
    if (b != in->rank || a != in->rank)
        return fail(GRAPHI_INVALID, call->where,
                    "found %d numbers before and %d after, expected %d each, one a dimension", b, a, in->rank);
    call->out[0] = *in;
    for (int i = 0; i < in->rank; i++) {
        if (before[i] < 0 || after[i] < 0)
            return fail(GRAPHI_INVALID, call->where,
                        "found %lld before and %lld after dimension %d, expected 0 or more", (long long)before[i],
                        (long long)after[i], i);
        if (before[i] > TYPE_MOST_BYTES || after[i] > TYPE_MOST_BYTES)
            return fail(GRAPHI_INVALID, call->where,
                        "found %lld before and %lld after dimension %d, expected at most 2^44", (long long)before[i],
                        (long long)after[i], i);
        call->out[0].dims[i] += before[i] + after[i];
    }
    return expect(call, 0, in->symbol < 0 || call->out[0].dims[0] == in->dims[0],
                  "a fixed size where something is added");
}

static graphi_status bind_pad(const struct bind_call *call, struct kernel *kernel)
{
    const int64_t *before;
    struct pad_spec spec = {
        .name = "pad", .in = &call->in[0], .out = &call->out[0], .value = attr_float(call->node, "value")};
    int rank = attr_ints(call->node, "before", &before);
    memcpy(spec.before, before, (size_t)rank * sizeof *before);
    return pad_bind(&spec, (enum isa)call->isa, kernel);
}

static void pad_gradient(struct gradient_call *call)
{
    const struct value_type in = graph_value(call->graph, call->in[0])->type;
    const struct value_type out = graph_value(call->graph, call->out[0])->type;
    const int64_t *before;
    attr_ints(call->op, "before", &before);
    graphi_value value = call->grad_out[0];
    for (int i = 0; i < in.rank; i++)
        if (in.dims[i] != out.dims[i])
            value = slice_value(call->graph, value, i, before[i], before[i] + in.dims[i]);
    call->grad_in[0] = value;
}

/* --- cast, fill, zeros_like --- */

static graphi_status dtype_of(const struct shape_call *call, graphi_dtype *dtype)
{
    int64_t given = attr_int(call->node, "dtype");
    if (given < GRAPHI_F32 || given > GRAPHI_U8)
        return fail(GRAPHI_INVALID, call->where, "found dtype %lld, expected %d to %d", (long long)given, GRAPHI_F32,
                    GRAPHI_U8);
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

static bool floating(graphi_dtype dtype)
{
    return dtype == GRAPHI_F32 || dtype == GRAPHI_BF16;
}

static void cast_gradient(struct gradient_call *call)
{
    graphi_dtype from = graph_value(call->graph, call->in[0])->type.dtype,
                 to = graph_value(call->graph, call->out[0])->type.dtype;
    graphi_attribute dtype = int_attribute("dtype", from);
    if (floating(from) && floating(to))
        call->grad_in[0] = graphi_op(call->graph, "cast", 1, call->grad_out, 1, &dtype);
}

static graphi_status fill_shape(const struct shape_call *call)
{
    const int64_t *shape;
    graphi_dtype dtype = GRAPHI_F32;
    int rank = attr_ints(call->node, "shape", &shape);
    TRY(dtype_of(call, &dtype));
    if (rank > GRAPHI_MAX_RANK)
        return rank_error(call, rank, "dimensions");
    call->out[0] = (struct value_type){.dtype = dtype, .rank = rank, .symbol = -1};
    memcpy(call->out[0].dims, shape, (size_t)rank * sizeof *shape);
    return GRAPHI_OK;
}

static graphi_status bind_fill(const struct bind_call *call, struct kernel *kernel)
{
    return fill_bind(&call->out[0], attr_float(call->node, "value"), (enum isa)call->isa, kernel);
}

static graphi_status zeros_shape(const struct shape_call *call)
{
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status bind_zeros(const struct bind_call *call, struct kernel *kernel)
{
    return fill_bind(&call->out[0], 0, (enum isa)call->isa, kernel);
}

static void no_gradient(struct gradient_call *call) {}

static double no_flops(const struct shape_call *call)
{
    return 0;
}

#define STRIDED OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED
#define UNARY .min_inputs = 1, .max_inputs = 1, .outputs = 1, .scalability = "memory", .flops = no_flops
const struct op_kind ops_shape[] = {
    {.name = "reshape",
     .summary = "the same elements in another shape; -1 takes what is left, 0 keeps a size",
     UNARY,
     .attributes = shape_attributes,
     .flags = STRIDED | OP_VIEW,
     .shape = reshape_shape,
     .gradient = reshape_gradient,
     .bind = reshape_bind,
     .view = reshape_view},
    {.name = "transpose",
     .summary = "dimensions in another order: output dimension i is input dimension perm[i]",
     UNARY,
     .attributes = perm_attributes,
     .flags = STRIDED | OP_VIEW,
     .shape = transpose_shape,
     .gradient = transpose_gradient,
     .bind = transpose_bind,
     .view = transpose_view},
    {.name = "concat",
     .summary = "arrays one after the other along an axis",
     .min_inputs = 1,
     .max_inputs = -1,
     .outputs = 1,
     .attributes = axis_attributes,
     .flags = STRIDED | OP_PARTS,
     .scalability = "memory",
     .shape = concat_shape,
     .gradient = concat_gradient,
     .flops = no_flops,
     .bind = concat_bind,
     .part = concat_part},
    {.name = "split",
     .summary = "an array cut along an axis into `outputs` parts: the first, which the others follow",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = -1,
     .attributes = split_attributes,
     .flags = STRIDED,
     .scalability = "memory",
     .shape = split_shape,
     .gradient = split_gradient,
     .flops = no_flops,
     .bind = split_bind},
    {.name = "slice",
     .summary = "elements begin to end (excluded) along an axis",
     UNARY,
     .attributes = slice_attributes,
     .flags = STRIDED | OP_VIEW,
     .shape = slice_shape,
     .gradient = slice_gradient,
     .bind = slice_bind,
     .view = slice_view},
    {.name = "pad",
     .summary = "a border of constant elements",
     UNARY,
     .attributes = pad_attributes,
     .flags = STRIDED,
     .shape = pad_shape,
     .gradient = pad_gradient,
     .bind = bind_pad},
    {.name = "cast",
     .summary = "the same numbers in another element type",
     UNARY,
     .attributes = cast_attributes,
     .flags = STRIDED,
     .shape = cast_shape,
     .gradient = cast_gradient,
     .bind = bind_cast},
    {.name = "fill",
     .summary = "a constant everywhere",
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
     UNARY,
     .flags = STRIDED,
     .shape = zeros_shape,
     .gradient = no_gradient,
     .bind = bind_zeros},
    {0},
};
