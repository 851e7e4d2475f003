/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes, `sum_to` (the inverse of broadcasting, for gradients) and `rows` (the actual size of a bounded
 * dimension 0). */
#include "kernels/reduce.h"
#include "ops/check.h"
#include "ops/build.h"

#include <string.h>

/* Bit i: dimension i is reduced. */
static graphi_status axes_of(const char *where, const struct node *node, int rank, unsigned *axes)
{
    const int64_t *list;
    int count = attr_ints(node, "axes", &list);
    *axes = count ? 0 : (1u << rank) - 1;
    for (int i = 0; i < count; i++) {
        int64_t axis = list[i] < 0 ? list[i] + rank : list[i];
        if (axis < 0 || axis >= rank || *axes >> axis & 1)
            return fail(GRAPHI_INVALID, where, "found axis %lld, expected each at most once and within rank %d",
                        (long long)list[i], rank);
        *axes |= 1u << axis;
    }
    return GRAPHI_OK;
}

static graphi_status need_f32(const char *where, const struct value_type *in)
{
    if (in->dtype == GRAPHI_F32)
        return GRAPHI_OK;
    char type[96];
    type_text(in, type, sizeof type);
    return fail(GRAPHI_INVALID, where, "found %s, expected float32", type);
}

static graphi_status reduce_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    struct value_type *out = &call->out[0];
    bool keep = attr_int(call->node, "keepdims");
    unsigned axes;
    TRY(need_f32(call->where, in));
    TRY(axes_of(call->where, call->node, in->rank, &axes));
    out->dtype = GRAPHI_F32;
    for (int i = 0; i < in->rank; i++) {
        bool reduced = axes >> i & 1;
        if (!reduced && i == 0)
            out->symbol = in->symbol;
        if (!reduced || keep)
            out->dims[out->rank++] = reduced ? 1 : in->dims[i];
    }
    return GRAPHI_OK;
}

/* Which dimensions of `in` broadcasting from `out` had repeated. */
static graphi_status sum_to_axes(const char *where, const struct value_type *in, const struct value_type *out,
                                 unsigned *axes)
{
    int shift = in->rank - out->rank;
    bool fits = shift >= 0 && (out->symbol < 0 || (shift == 0 && out->symbol == in->symbol));
    *axes = 0;
    for (int i = 0; fits && i < in->rank; i++) {
        bool loses_bound = i == 0 && in->symbol >= 0 && out->symbol < 0;
        if (i < shift || in->dims[i] != out->dims[i - shift] || loses_bound) {
            *axes |= 1u << i;
            fits = i < shift || out->dims[i - shift] == 1;
        }
    }
    if (fits)
        return GRAPHI_OK;
    char found[96], expected[96];
    type_text(in, found, sizeof found);
    type_text(out, expected, sizeof expected);
    return fail(GRAPHI_INVALID, where, "found %s, expected a shape that %s broadcasts to", found, expected);
}

static graphi_status sum_to_shape(const struct shape_call *call)
{
    const int64_t *dims;
    struct value_type type = {.dtype = GRAPHI_F32, .symbol = (int32_t)attr_int(call->node, "symbol")};
    unsigned axes;
    TRY(need_f32(call->where, call->in[0]));
    type.rank = attr_ints(call->node, "dims", &dims);
    if (type.rank > GRAPHI_MAX_RANK)
        return fail(GRAPHI_INVALID, call->where, "found %d dimensions, expected at most %d", type.rank,
                    GRAPHI_MAX_RANK);
    memcpy(type.dims, dims, sizeof *dims * (size_t)type.rank);
    TRY(sum_to_axes(call->where, call->in[0], &type, &axes));
    call->out[0] = type;
    return GRAPHI_OK;
}

static graphi_status rows_shape(const struct shape_call *call)
{
    call->out[0].dtype = GRAPHI_F32;
    if (call->in[0]->rank > 0)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, call->where, "found a scalar, expected at least one dimension");
}

static double reduce_flops(const struct shape_call *call)
{
    return (double)type_count(call->in[0]);
}

/* --- kernels --- */

static graphi_status bind_as(enum reduce_op op, const struct bind_call *call, struct kernel *kernel)
{
    unsigned axes;
    TRY(axes_of(call->where, call->node, call->in[0].rank, &axes));
    return reduce_bind(op, &call->in[0], axes, &call->out[0], call->isa, kernel);
}

static graphi_status bind_sum(const struct bind_call *call, struct kernel *kernel)
{
    return bind_as(REDUCE_SUM, call, kernel);
}
static graphi_status bind_mean(const struct bind_call *call, struct kernel *kernel)
{
    return bind_as(REDUCE_MEAN, call, kernel);
}
static graphi_status bind_max(const struct bind_call *call, struct kernel *kernel)
{
    return bind_as(REDUCE_MAX, call, kernel);
}
static graphi_status bind_squares(const struct bind_call *call, struct kernel *kernel)
{
    return bind_as(REDUCE_SUM_SQUARES, call, kernel);
}

static struct value_type as_type(const struct array_desc *desc)
{
    struct value_type type = {.dtype = desc->dtype, .rank = desc->rank, .symbol = desc->bounded ? 0 : -1};
    memcpy(type.dims, desc->dims, sizeof *desc->dims * (size_t)desc->rank);
    return type;
}

static graphi_status bind_sum_to(const struct bind_call *call, struct kernel *kernel)
{
    struct value_type in = as_type(&call->in[0]), out = as_type(&call->out[0]);
    unsigned axes;
    TRY(sum_to_axes(call->where, &in, &out, &axes));
    TRY(reduce_bind(REDUCE_SUM, &call->in[0], axes, &call->out[0], call->isa, kernel));
    kernel->name = "sum_to";
    return GRAPHI_OK;
}

static graphi_status rows_run(const struct kernel_call *call, int phase, int share)
{
    *(float *)call->out[0].data = (float)call->in[0].rows;
    return GRAPHI_OK;
}

static graphi_status bind_rows(const struct bind_call *call, struct kernel *kernel)
{
    *kernel = (struct kernel){.name = "rows", .run = rows_run, .phases = 1, .shares = {1}, .bytes = sizeof(float)};
    return GRAPHI_OK;
}

/* --- gradients --- */

/* A value of the reduced shape, repeated to the shape of the input. */
static graphi_value repeat(struct gradient_call *call, graphi_value value)
{
    graphi_graph *graph = call->graph;
    if (value == GRAPHI_NONE || graph->status != GRAPHI_OK)
        return GRAPHI_NONE;
    struct value_type type = graph_value(graph, call->in[0])->type;
    int64_t axes[GRAPHI_MAX_RANK];
    unsigned mask = 0;
    int count = 0;
    if (axes_of("gradient", call->op, type.rank, &mask) != GRAPHI_OK)
        return graph_broken(graph, GRAPHI_INVALID);
    for (int i = 0; i < type.rank && !attr_int(call->op, "keepdims"); i++)
        if (mask >> i & 1)
            axes[count++] = i;
    graphi_attribute attributes[] = {
        {.name = "dims", .type = GRAPHI_INTS, .ints = type.dims, .count = type.rank},
        {.name = "symbol", .type = GRAPHI_INT, .i = type.symbol},
        {.name = "axes", .type = GRAPHI_INTS, .ints = axes, .count = count},
    };
    return graphi_op(graph, "expand", 1, &value, 3, attributes);
}

static void sum_gradient(struct gradient_call *call)
{
    call->grad_in[0] = repeat(call, call->grad_out[0]);
}

/* The number of elements behind each result is known but for a bounded dimension, whose actual size `rows` tells. */
static void mean_gradient(struct gradient_call *call)
{
    const struct value_type type = graph_value(call->graph, call->in[0])->type;
    unsigned axes = 0;
    double count = 1;
    axes_of("gradient", call->op, type.rank, &axes);
    bool bounded = type.symbol >= 0 && axes & 1;
    for (int i = 0; i < type.rank; i++)
        if (axes >> i & 1 && !(bounded && i == 0))
            count *= (double)type.dims[i];
    graphi_value g = build2(call->graph, "mul", call->grad_out[0], build_scalar(call->graph, (float)(1 / count)));
    if (bounded)
        g = build2(call->graph, "div", g, build1(call->graph, "rows", call->in[0]));
    call->grad_in[0] = repeat(call, g);
}

/* Elements that equal the maximum share its gradient. */
static void max_gradient(struct gradient_call *call)
{
    graphi_graph *graph = call->graph;
    graphi_value at = build2(graph, "equal", call->in[0], repeat(call, call->out[0]));
    graphi_attribute attributes[2] = {{.name = "axes", .type = GRAPHI_INTS},
                                      {.name = "keepdims", .type = GRAPHI_INT, .i = attr_int(call->op, "keepdims")}};
    attributes[0].count = attr_ints(call->op, "axes", &attributes[0].ints);
    graphi_value ties = graphi_op(graph, "reduce_sum", 1, &at, 2, attributes);
    call->grad_in[0] = build2(graph, "mul", at, repeat(call, build2(graph, "div", call->grad_out[0], ties)));
}

static void squares_gradient(struct gradient_call *call)
{
    graphi_value twice = build2(call->graph, "add", call->in[0], call->in[0]);
    call->grad_in[0] = build2(call->graph, "mul", repeat(call, call->grad_out[0]), twice);
}

static void sum_to_gradient(struct gradient_call *call)
{
    call->grad_in[0] = broadcast_like(call->graph, call->grad_out[0], call->in[0]);
}

/* --- tables --- */

static const struct op_attribute axes_attributes[] = {
    {.name = "axes", .meaning = "each once, negative ones from the end; empty: all", .type = GRAPHI_INTS},
    {.name = "keepdims", .meaning = "1: reduced dimensions stay, with size 1", .type = GRAPHI_INT},
    {0},
};

static const struct op_attribute type_attributes[] = {
    {.name = "dims", .meaning = "the result's shape", .type = GRAPHI_INTS, .required = true},
    {.name = "symbol", .meaning = "that dimension 0 follows", .type = GRAPHI_INT, .internal = true, .i = -1},
    {0},
};

#define LEFT "[...] to the dimensions that are left"
#define ROW(text, about, sizes, list, rule, shape_rule, gradient_rule, ...)                                            \
    {                                                                                                                  \
        .name = text, .summary = about, .shapes = sizes, .min_inputs = 1, .max_inputs = 1, .outputs = 1,               \
        .attributes = list, .flags = OP_STRIDED_IN | OP_BOUNDED, .scalability = "memory", .shape = shape_rule,         \
        .gradient = gradient_rule, .flops = reduce_flops, .bind = rule, __VA_ARGS__                                    \
    }

const struct op_kind ops_reduce[] = {
    ROW("reduce_sum", "sum over axes", LEFT, axes_attributes, bind_sum, reduce_shape, sum_gradient),
    ROW("reduce_mean", "mean over axes", LEFT, axes_attributes, bind_mean, reduce_shape, mean_gradient),
    ROW("reduce_max", "maximum over axes; NaN if any is; equal ones share the gradient", LEFT, axes_attributes,
        bind_max, reduce_shape, max_gradient),
    ROW("reduce_sum_squares", "sum of squares over axes", LEFT, axes_attributes, bind_squares, reduce_shape,
        squares_gradient),
    ROW("sum_to", "sum over what broadcasting from `dims` repeats", "[...] to [dims]", type_attributes, bind_sum_to,
        sum_to_shape, sum_to_gradient, .role = IS_SUM_TO),
    {.name = "rows",
     .summary = "actual size of dimension 0, as float32",
     .shapes = "[rows,...] to []",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .flags = OP_STRIDED_IN | OP_BOUNDED,
     .scalability = "",
     .shape = rows_shape,
     .gradient = no_gradient,
     .bind = bind_rows},
    {0},
};
