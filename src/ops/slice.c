/* SPDX-License-Identifier: Apache-2.0 */
/* Part of an array along an axis, and an array with a border: slice, a view unless the memory plan wants a copy, and
 * pad, each the gradient of the other. Any element type; a bounded dimension 0 keeps its size. */
#include "ops/shape.h"

#include <string.h>

static const struct op_attribute slice_attributes[] = {
    {.name = "axis", .meaning = "negative: from the end", .type = GRAPHI_INT, .required = true},
    {.name = "begin", .meaning = "negative: from the end", .type = GRAPHI_INT},
    {.name = "end", .meaning = "excluded; negative: from the end; cut to the size", .type = GRAPHI_INT, .i = INT64_MAX},
    {0},
};
static const struct op_attribute pad_attributes[] = {
    {.name = "before",
     .meaning = "elements added there, one number a dimension",
     .type = GRAPHI_INTS,
     .required = true},
    {.name = "after", .meaning = "the same behind", .type = GRAPHI_INTS, .required = true},
    {.name = "value", .meaning = "of the elements added", .type = GRAPHI_FLOAT},
    {0},
};

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

/* --- pad --- */

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
    return pad_bind(&spec, kernel);
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

const struct op_kind ops_slice[] = {
    {.name = "slice",
     .role = IS_SLICE,
     .summary = "elements begin to end along an axis",
     .shapes = "[...] to the same but along the axis",
     UNARY,
     .attributes = slice_attributes,
     .flags = STRIDED | OP_VIEW,
     .shape = slice_shape,
     .gradient = slice_gradient,
     .bind = slice_bind,
     .view = slice_view},
    {.name = "pad",
     .role = IS_PAD,
     .summary = "a border of constant elements",
     .shapes = "[...] to sizes with what is added",
     UNARY,
     .attributes = pad_attributes,
     .flags = STRIDED,
     .shape = pad_shape,
     .gradient = pad_gradient,
     .bind = bind_pad},
    {0},
};
