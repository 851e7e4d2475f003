/* SPDX-License-Identifier: Apache-2.0 */
/* wait_event(value), signal_event(value): the value itself, after a message has come, or before one is sent. Where the
 * result may be a view of its input nothing is copied. The messages are the executor's business (schedule/messages.c,
 * engine/run/messages.c); here is what the graph sees of them. */
#include "graph/op.h"

#include "kernels/kernel.h"

#include <string.h>

static graphi_status event_shape(const struct shape_call *call)
{
    const int64_t number = attr_int(call->node, "event");
    if (number < 0 || number >= OP_MOST_EVENTS)
        return fail(GRAPHI_INVALID, call->where, "found event %lld, expected 0 to %d", (long long)number,
                    OP_MOST_EVENTS - 1);
    if (graph_value(call->graph, call->node->input[0])->kind == VALUE_PARAMETER)
        return fail(GRAPHI_INVALID, call->where, "found a parameter, expected a result or an input (graphi_identity "
                                                 "copies one)");
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status event_run(const struct kernel_call *call, int phase, int share)
{
    const int64_t row_bytes = *(const int64_t *)call->params;
    if (call->out[0].data != call->in[0].data)
        memcpy(call->out[0].data, call->in[0].data, (size_t)(row_bytes * call->in[0].rows));
    return GRAPHI_OK;
}

static graphi_status event_bind(const struct bind_call *call, struct kernel *kernel)
{
    const struct array_desc *in = &call->in[0];
    if (!array_is_dense(in) || !array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found an array with gaps, expected a dense one");
    const int64_t rows = in->rank && in->dims[0] ? in->dims[0] : 1,
                  row_bytes = array_count(in) / rows * (int64_t)graphi_dtype_size(in->dtype);
    struct kernel like = {.name = "event", .run = event_run, .phases = 1, .shares = {1}, .known_ns = 1e-6};
    return kernel_make(like, &row_bytes, sizeof row_bytes, kernel);
}

static bool event_view(const struct bind_call *call, struct array_desc *out, int64_t *offset)
{
    *offset = 0;
    *out = call->in[0];
    return array_is_dense(&call->in[0]);
}

static const struct op_attribute event_attributes[] = {
    {.name = "event", .meaning = "its number: which event it is a run says (graphi/event.h)", .type = GRAPHI_INT,
     .required = true},
    {0},
};

#define EVENT(NAME, SUMMARY, ROLE)                                                                                     \
    {                                                                                                                  \
        .name = NAME, .summary = SUMMARY, .shapes = "any, to the same", .min_inputs = 1, .max_inputs = 1,              \
        .outputs = 1, .attributes = event_attributes, .flags = OP_EFFECT | OP_VIEW | OP_BOUNDED, .role = ROLE,         \
        .scalability = "", .shape = event_shape, .bind = event_bind, .view = event_view                                \
    }

const struct op_kind ops_event[] = {
    EVENT("wait_event", "the value, once a message has come", IS_WAIT_EVENT),
    EVENT("signal_event", "the value; sends a message when it is there", IS_SIGNAL_EVENT),
    {0},
};
