/* SPDX-License-Identifier: Apache-2.0 */
/* Several arrays as one along an axis, and one as several: concat and split. The inputs of concat are parts of its
 * output whenever the memory plan places them so; the kernels copy otherwise. Any element type; a bounded dimension 0
 * is never the axis. */
#include "ops/shape.h"

#include <string.h>

#define AXIS_ATTRIBUTE                                                                                                 \
    {                                                                                                                  \
        .name = "axis", .meaning = "negative: from the end", .type = GRAPHI_INT, .required = true                      \
    }
static const struct op_attribute axis_attributes[] = {AXIS_ATTRIBUTE, {0}};
static const struct op_attribute split_attributes[] = {
    AXIS_ATTRIBUTE,
    {.name = "sizes", .meaning = "of the outputs along the axis; empty: equal", .type = GRAPHI_INTS},
    {.name = "outputs", .meaning = "how many", .type = GRAPHI_INT, .required = true},
    {0},
};

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
        if (__builtin_add_overflow(out.dims[axis], like.dims[axis], &out.dims[axis]))
            return fail(GRAPHI_INVALID, call->where, "found sizes beyond 2^63 along axis %d, expected a sum below it",
                        axis);
    }
    call->out[0] = out;
    return GRAPHI_OK;
}

static bool concat_part(const struct bind_call *call, int input, struct array_desc *part, int64_t *end)
{
    const struct array_desc *out = &call->out[0];
    int axis = node_axis(call->node, out->rank);
    *part = call->in[input];
    memcpy(part->strides, out->strides, sizeof part->strides);
    *end += call->in[input].dims[axis] * out->strides[axis];
    return true;
}

static graphi_status concat_bind(const struct bind_call *call, struct kernel *kernel)
{
    int n = call->node->inputs;
    struct copy_part *part = mem_zalloc_array((size_t)n, sizeof *part);
    if (!part)
        return fail_memory(call->where, (size_t)n * sizeof *part);
    int64_t end = 0;
    for (int i = 0; i < n; i++) {
        struct array_desc to;
        int64_t begin = end;
        concat_part(call, i, &to, &end);
        part[i] = copy_part_of(&call->in[i], &call->in[i], &to);
        part[i].input = i;
        part[i].to_offset = begin;
    }
    graphi_status status = bind_parts(call, "concat", n, part, kernel);
    mem_free(part);
    return status;
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

/* --- split --- */

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
        if (__builtin_add_overflow(sum, call->out[i].dims[axis], &sum))
            return fail(GRAPHI_INVALID, call->where,
                        "found sizes beyond 2^63 in all, expected %lld, the size of axis %d",
                        (long long)in->dims[axis], axis);
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

/* In the place of the gradient of a value that nobody reads: float32, whatever the value is. */
static graphi_value float_zeros(graphi_graph *graph, graphi_value like)
{
    graphi_value zeros = graphi_op(graph, "zeros_like", 1, &like, 0, NULL);
    graphi_attribute dtype = int_attribute("dtype", GRAPHI_F32);
    return graph_value(graph, like)->type.dtype == GRAPHI_F32 ? zeros : graphi_op(graph, "cast", 1, &zeros, 1, &dtype);
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
        part[i] = call->grad_out[i] != GRAPHI_NONE ? call->grad_out[i] : float_zeros(call->graph, call->out[i]);
    graphi_attribute attribute = int_attribute("axis", axis);
    call->grad_in[0] = graphi_op(call->graph, "concat", n, part, 1, &attribute);
    mem_free(part);
}

const struct op_kind ops_concat[] = {
    {.name = "concat",
     .role = IS_CONCAT,
     .summary = "arrays one after the other along an axis",
     .shapes = "sizes equal but along the axis, where they add up",
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
     .shapes = "[...] to the same but along the axis",
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
    {0},
};
