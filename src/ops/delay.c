/* SPDX-License-Identifier: Apache-2.0 */
/* delay(values...): keeps one core busy for `nanoseconds`, 28 hours at most, and gives a zero; 0 is an empty operation.
 * It serves bench scheduling-cost and the scheduler's tests, where operations of a known duration are wanted. */
#include "graph/op.h"

#include "base/clock.h"
#include "kernels/kernel.h"

static const int64_t MOST_NANOSECONDS = 100000000000000; /* as long as any operation of a plan may be */

static graphi_status delay_shape(const struct shape_call *call)
{
    int64_t nanoseconds = attr_int(call->node, "nanoseconds");
    if (nanoseconds < 0 || nanoseconds > MOST_NANOSECONDS)
        return fail(GRAPHI_INVALID, call->where, "found %lld nanoseconds, expected 0 to %lld", (long long)nanoseconds,
                    (long long)MOST_NANOSECONDS);
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
    const double known_ns = nanoseconds ? (double)nanoseconds : 1e-6; /* 0: not known */
    struct kernel like = {.name = "delay", .run = delay_run, .phases = 1, .shares = {1}, .known_ns = known_ns};
    if (nanoseconds)
        return kernel_make(like, &nanoseconds, sizeof nanoseconds, kernel);
    *kernel = like; /* an empty operation touches nothing of its own */
    return GRAPHI_OK;
}

static const struct op_attribute delay_attributes[] = {
    {.name = "nanoseconds", .meaning = "0 (an empty operation) to 10^14", .type = GRAPHI_INT},
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
