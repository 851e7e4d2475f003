/* SPDX-License-Identifier: Apache-2.0 */
/* assign(parameter, value): the parameter's new content. The result takes over the parameter's storage (value.assigns),
 * so the engine gives it no memory of its own; order against readers of the old content comes from graph_order_updates.
 */
#include "graph/op.h"

#include "kernels/kernel.h"

#include <string.h>

static graphi_status assign_shape(const struct shape_call *call)
{
    if (!type_equal(call->in[0], call->in[1])) {
        char found[96], expected[96];
        type_text(call->in[1], found, sizeof found);
        type_text(call->in[0], expected, sizeof expected);
        return fail(GRAPHI_INVALID, call->where, "found a value of type %s, expected %s like the parameter", found,
                    expected);
    }
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

struct assign_params {
    size_t bytes;
};

static graphi_status assign_run(const struct kernel_call *call, int phase, int share)
{
    const struct assign_params *params = call->params;
    if (call->out[0].data != call->in[1].data)
        memmove(call->out[0].data, call->in[1].data, params->bytes);
    return GRAPHI_OK;
}

static graphi_status assign_bind(const struct bind_call *call, struct kernel *kernel)
{
    if (!array_is_dense(&call->in[1]) || !array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a strided argument, expected a dense one");
    struct assign_params params = {(size_t)array_count(&call->out[0]) * graphi_dtype_size(call->out[0].dtype)};
    struct kernel like = {.name = "assign", .run = assign_run, .shares = {1}, .bytes = 2.0 * (double)params.bytes};
    return kernel_make(like, &params, sizeof params, kernel);
}

const struct op_kind ops_assign[] = {
    {.name = "assign", .role = IS_ASSIGN, .summary = "gives a parameter its next content",
     .shapes = "a parameter, a value of its type and shape, to the same",
     .min_inputs = 2, .max_inputs = 2, .outputs = 1,
     .flags = OP_EFFECT | OP_INPLACE, .scalability = "memory", .shape = assign_shape, .bind = assign_bind},
    {0},
};
