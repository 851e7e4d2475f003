/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout (output 1 is the mask that its gradient multiplies with) and random arrays, keyed by node, step and global
 * sample. */
#include "kernels/random.h"

#include "ops/build.h"

#include <math.h>
#include <string.h>

static graphi_status dropout_shape(const struct shape_call *call)
{
    double keep = attr_float(call->node, "keep");
    if (!(keep > 0 && keep <= 1))
        return fail(GRAPHI_INVALID, call->where, "found keep %g, expected 0 < keep <= 1", keep);
    if (call->in[0]->dtype != GRAPHI_F32)
        return fail(GRAPHI_INVALID, call->where, "found %s, expected float32", graphi_dtype_name(call->in[0]->dtype));
    call->out[0] = call->out[1] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status dropout_bind_node(const struct bind_call *call, struct kernel *kernel)
{
    return dropout_bind(attr_float(call->node, "keep"), call->key, call->sample_rows, call->in, &call->out[0],
                        &call->out[1], call->isa, kernel);
}

static void dropout_rule(struct gradient_call *call)
{
    if (call->grad_out[0] != GRAPHI_NONE)
        call->grad_in[0] = build2(call->graph, "mul", call->grad_out[0], call->out[1]);
}

static graphi_status random_shape(const struct shape_call *call)
{
    const int64_t *dims;
    struct value_type type = {.dtype = GRAPHI_F32, .symbol = (int32_t)attr_int(call->node, "symbol")};
    type.rank = attr_ints(call->node, "dims", &dims);
    if (type.rank > GRAPHI_MAX_RANK)
        return fail(GRAPHI_INVALID, call->where, "found %d dimensions, expected at most %d", type.rank,
                    GRAPHI_MAX_RANK);
    memcpy(type.dims, dims, sizeof *dims * (size_t)type.rank);
    call->out[0] = type;
    return GRAPHI_OK;
}

/* Without this numbers beyond a would all become a. */
static graphi_status uniform_shape(const struct shape_call *call)
{
    const float a = (float)attr_float(call->node, "a"), b = (float)attr_float(call->node, "b");
    if (!(a <= b) || !isfinite(b - a))
        return fail(GRAPHI_INVALID, call->where, "found a %g and b %g, expected a at most b, and finite they and b - a",
                    (double)a, (double)b);
    return random_shape(call);
}

static graphi_status bind_uniform(const struct bind_call *call, struct kernel *kernel)
{
    return random_fill_bind(RANDOM_UNIFORM, attr_float(call->node, "a"), attr_float(call->node, "b"), call->key,
                            call->sample_rows, call->out, call->isa, kernel);
}

static graphi_status bind_normal(const struct bind_call *call, struct kernel *kernel)
{
    return random_fill_bind(RANDOM_NORMAL, attr_float(call->node, "a"), attr_float(call->node, "b"), call->key,
                            call->sample_rows, call->out, call->isa, kernel);
}

static const struct op_attribute dropout_attributes[] = {
    {.name = "keep", .meaning = "probability of an element to stay", .type = GRAPHI_FLOAT, .f = 0.5},
    {0},
};

static const struct op_attribute random_attributes[] = {
    {.name = "dims", .meaning = "the result's shape", .type = GRAPHI_INTS, .required = true},
    {.name = "symbol", .meaning = "that dimension 0 follows", .type = GRAPHI_INT, .internal = true, .i = -1},
    {.name = "a", .meaning = "least, or mean", .type = GRAPHI_FLOAT},
    {.name = "b", .meaning = "upper bound, or standard deviation", .type = GRAPHI_FLOAT, .f = 1},
    {0},
};

const struct op_kind ops_dropout[] = {
    {.name = "dropout",
     .summary = "a with elements set to zero at random, the others divided by `keep`; and the mask",
     .shapes = "[...] to the same, twice",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 2,
     .attributes = dropout_attributes,
     .flags = OP_RANDOM | OP_BOUNDED,
     .scalability = "memory",
     .shape = dropout_shape,
     .gradient = dropout_rule,
     .bind = dropout_bind_node},
    {.name = "random_uniform",
     .summary = "uniform random numbers from a up to b",
     .shapes = "to [dims]",
     .outputs = 1,
     .attributes = random_attributes,
     .flags = OP_RANDOM | OP_BOUNDED,
     .scalability = "memory",
     .shape = uniform_shape,
     .bind = bind_uniform},
    {.name = "random_normal",
     .summary = "normal random numbers of mean a and standard deviation b",
     .shapes = "to [dims]",
     .outputs = 1,
     .attributes = random_attributes,
     .flags = OP_RANDOM | OP_BOUNDED,
     .scalability = "memory",
     .shape = random_shape,
     .bind = bind_normal},
    {0},
};
