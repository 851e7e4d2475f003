/* SPDX-License-Identifier: Apache-2.0 */
/* delay(values...): keeps one core busy for `nanoseconds` and gives a zero; 0 is an empty operation. It serves
 * bench scheduling-cost and the scheduler's tests, where operations of a known duration are wanted. */
#include "graph/op.h"

#include "base/clock.h"
#include "kernels/kernel.h"

static graphi_status delay_shape(const struct shape_call *call)
{
    int64_t nanoseconds = attr_int(call->node, "nanoseconds");
    if (nanoseconds < 0)
        return fail(GRAPHI_INVALID, call->where, "found %lld nanoseconds, expected 0 or more", (long long)nanoseconds);
    for (int i = 0; i < call->node->inputs; i++)
        if (call->in[i]->dtype != GRAPHI_F32)
            return fail(GRAPHI_INVALID, call->where, "found input %d of %s, expected float32", i,
                        graphi_dtype_name(call->in[i]->dtype));
    call->out[0].dtype = GRAPHI_F32;
    return GRAPHI_OK;
}

static graphi_status delay_run(const struct kernel_call *call, int phase, int share)
{
    int64_t nanoseconds = call->params ? *(const int64_t *)call->params : 0;
    *(float *)call->out[0].data = 0;
    if (nanoseconds > 0)
        clock_spin(nanoseconds);
    return GRAPHI_OK;
}

static graphi_status delay_bind(const struct bind_call *call, struct kernel *kernel)
{
    int64_t nanoseconds = attr_int(call->node, "nanoseconds");
    struct kernel like = {
        .name = "delay", .run = delay_run, .phases = 1, .shares = {1}, .known_ns = 1 + (double)nanoseconds};
    if (nanoseconds)
        return kernel_make(like, &nanoseconds, sizeof nanoseconds, kernel);
    *kernel = like; /* an empty operation touches nothing of its own */
    return GRAPHI_OK;
}

static const struct op_attribute delay_attributes[] = {
    {.name = "nanoseconds", .meaning = "0: an empty operation", .type = GRAPHI_INT},
    {0},
};

const struct op_kind ops_delay[] = {
    {.name = "delay",
     .summary = "keeps a core busy for some nanoseconds",
     .shapes = "any, to []",
     .min_inputs = 0,
     .max_inputs = -1,
     .outputs = 1,
     .attributes = delay_attributes,
     .flags = OP_EFFECT,
     .scalability = "",
     .shape = delay_shape,
     .bind = delay_bind},
    {0},
};
